package webpushtest

import (
	"crypto/ecdh"
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

func raw(t *testing.T, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// RFC 8291, section 5.
const (
	exampleKey  = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
	exampleAuth = "BTBZMqHH6r4Tts7J_aSIgg"
	exampleBody = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml" +
		"mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT" +
		"pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)

func TestOpensTheExampleOfTheRFC(t *testing.T) {
	private, err := ecdh.P256().NewPrivateKey(raw(t, exampleKey))
	if err != nil {
		t.Fatal(err)
	}
	const want = "When I grow up, I want to be a watermelon"
	got, err := open(private, raw(t, exampleAuth), raw(t, exampleBody))
	if err != nil || string(got) != want {
		t.Fatalf("%q, %v", got, err)
	}
	for at := range raw(t, exampleBody) {
		body := raw(t, exampleBody)
		body[at] ^= 1
		got, err := open(private, raw(t, exampleAuth), body)
		if inSize := at >= 16 && at < 20; err == nil && !(inSize && string(got) == want) { // the size is not authenticated
			t.Errorf("opened with a wrong bit in byte %d", at)
		}
	}
	for size := range len(raw(t, exampleBody)) {
		if _, err := open(private, raw(t, exampleAuth), raw(t, exampleBody)[:size]); err == nil {
			t.Errorf("opened the first %d bytes", size)
		}
	}
}

// RFC 8292, section 2.4.
func TestChecksTheTokenOfTheRFC(t *testing.T) {
	const (
		token = "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6" +
			"Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA"
		key     = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
		header  = "vapid t=" + token + ", k=" + key
		origin  = "https://push.example.net"
		expires = 1453523768
	)
	now := time.Unix(expires-60, 0)
	got, err := checkVAPID(header, origin, now)
	want := VAPID{PublicKey: key, Audience: origin, Expires: time.Unix(expires, 0), Subject: "mailto:push@example.com"}
	if err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, refused := range map[string]struct {
		header, origin string
		now            time.Time
	}{
		"no scheme":         {strings.TrimPrefix(header, "vapid "), origin, now},
		"no key":            {"vapid t=" + token, origin, now},
		"another key":       {"vapid t=" + token + ",k=BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", origin, now},
		"no token":          {"vapid k=" + key, origin, now},
		"wrong signature":   {strings.Replace(header, "i3CYb", "i3CYc", 1), origin, now},
		"wrong claims":      {strings.Replace(header, "eyJhdWQ", "eyJhdWR", 1), origin, now},
		"another service":   {header, "https://push.example.com", now},
		"expired":           {header, origin, time.Unix(expires, 0)},
		"expires in a week": {header, origin, now.Add(-7 * 24 * time.Hour)},
	} {
		if _, err := checkVAPID(refused.header, refused.origin, refused.now); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestContacts(t *testing.T) {
	for subject, want := range map[string]bool{
		"mailto:ops@example.com":        true,
		"https://example.com/contact":   true,
		"mailto:mailto:ops@example.com": false,
		"mailto:ops":                    false,
		"ops@example.com":               false,
		"https:":                        false,
		"http://example.com":            false,
	} {
		if isContact(subject) != want {
			t.Errorf("%q: %t", subject, !want)
		}
	}
}
