package pairing_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

type linkCase struct{ Name, URL, Token, Base, JSON, Link string }

func loadLinks(t testing.TB) []linkCase {
	t.Helper()
	data, err := os.ReadFile("../../testdata/vectors/pair_link.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []linkCase }
	if err := json.Unmarshal(data, &file); err != nil || len(file.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(file.Cases), err)
	}
	return file.Cases
}

func sameLink(t *testing.T, got, want pairing.Link) {
	t.Helper()
	if got.Name != want.Name || got.URL != want.URL || !got.Token.Equal(want.Token) {
		t.Errorf("name %q, URL %q, token %q; want %q, %q, %q", got.Name, got.URL, got.Token.Reveal(), want.Name, want.URL, want.Token.Reveal())
	}
}

func TestLinkVectors(t *testing.T) {
	for _, c := range loadLinks(t) {
		t.Run(c.Name, func(t *testing.T) {
			link := pairing.Link{Name: c.Name, URL: c.URL, Token: secret.New(c.Token)}
			if got := link.JSON(); got != c.JSON {
				t.Errorf("JSON %s, want %s", got, c.JSON)
			}
			origin := strings.TrimSuffix(c.Base, "/pair")
			scheme, host, _ := strings.Cut(origin, "://")
			for _, relay := range []string{c.Base, origin, origin + "/v1/push?x=1#y", scheme + "://user:password@" + host + "/alerts"} {
				if got, err := link.At(relay); err != nil || got != c.Link {
					t.Errorf("at %s: %s, %v; want %s", relay, got, err, c.Link)
				}
			}
			_, fragment, _ := strings.Cut(c.Link, "#")
			for _, text := range []string{c.Link, fragment, c.JSON, " \n" + c.Link + "\r\n", "cronstable://pair#" + fragment, fragment + "=="} {
				got, err := pairing.ParseLink(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				sameLink(t, got, link)
			}
		})
	}
}

func TestLinkCharacters(t *testing.T) {
	link := pairing.Link{Name: "a\x7f\u00a0\u200d\U000e0001\x00\n\"\\é", URL: "http://h", Token: secret.New("t")}
	want := `{"v":1,"name":"a\u007f\u00a0\u200d\udb40\udc01\u0000\n\"\\é","url":"http://h","token":"t"}`
	if got := link.JSON(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	got, err := pairing.ParseLink(want)
	if err != nil {
		t.Fatal(err)
	}
	sameLink(t, got, link)
}

func TestLinkURLs(t *testing.T) {
	for given, want := range map[string]string{
		"https://user:secret@daemon.lan:8080/cron/?q=1#f": "https://daemon.lan:8080/cron",
		"http://daemon.lan//":                             "http://daemon.lan",
		"http://daemon.lan/a%20b/é":                       "http://daemon.lan/a%20b/%C3%A9",
		"http://daemon.lan:65535":                         "http://daemon.lan:65535",
	} {
		link := pairing.Link{Name: "n", URL: given}
		text, err := link.At("https://relay.example")
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if got, err := pairing.ParseLink(text); err != nil || got.URL != want {
			t.Errorf("%s: %s, %v; want %s", given, got.URL, err, want)
		}
	}
	for _, given := range []string{
		"", "daemon.lan:8080", "ftp://daemon.lan", "https://", "http://:8080", "http://daemon.lan:0", "http://daemon.lan:65536",
		"http://daemon.lan:", "http://dae mon.lan", "http://daemon\x00.lan", "http://daemon\u00a0.lan", "javascript:alert(1)",
	} {
		link := pairing.Link{Name: "n", URL: given}
		wantLinkError(t, given, "url", func() error { _, err := link.At("https://relay.example"); return err })
		wantLinkError(t, given, "url", func() error { _, err := pairing.ParseLink(link.JSON()); return err })
		wantLinkError(t, given, "relay URL", func() error {
			_, err := pairing.Link{Name: "n", URL: "http://daemon.lan"}.At(given)
			return err
		})
	}
	wantLinkError(t, "a URL that is not UTF-8", "url", func() error {
		_, err := pairing.Link{Name: "n", URL: "http://\xff.lan"}.At("https://relay.example")
		return err
	})
	wantLinkError(t, "a link that nobody would read", "link", func() error {
		_, err := pairing.Link{Name: strings.Repeat("n", pairing.MaxLink), URL: "http://daemon.lan"}.At("https://relay.example")
		return err
	})
	wantLinkError(t, "a web link that nobody would read", "link", func() error {
		link := pairing.WebLink{Name: strings.Repeat("n", pairing.MaxLink), Mailbox: strings.Repeat("0", 32), Key: seal.GenerateKey().Public()}
		_, err := link.At("https://relay.example")
		return err
	})
	wantLinkError(t, "a name that is not UTF-8", "name", func() error {
		_, err := pairing.Link{Name: "\xff", URL: "http://daemon.lan"}.At("https://relay.example")
		return err
	})
}

func wantLinkError(t *testing.T, name, field string, call func() error) {
	t.Helper()
	err := call()
	wrong, ok := errors.AsType[*pairing.FieldError](err)
	if !ok || wrong.Field != field {
		t.Errorf("%q: %v, want a FieldError about %s", name, err, field)
	}
}

func TestParseLinkRefuses(t *testing.T) {
	encode := func(document string) string {
		return "https://relay.example/pair#" + base64.RawURLEncoding.EncodeToString([]byte(document))
	}
	for name, c := range map[string]struct{ text, field string }{
		"nothing":             {"", "link"},
		"no link":             {"https://example.com", "link"},
		"a fragment of text":  {"https://relay.example/pair#hello world", "link"},
		"no JSON":             {encode("hello"), "link"},
		"null":                {encode("null"), "link"},
		"an array":            {encode("[]"), "link"},
		"not UTF-8":           {encode("{\"v\":1,\"name\":\"\xff\"}"), "link"},
		"too long":            {strings.Repeat("a", pairing.MaxLink+1), "link"},
		"no version":          {`{"name":"n","url":"http://h","token":"t"}`, "v"},
		"another version":     {`{"v":2,"name":"n","url":"http://h","token":"t"}`, "v"},
		"version as text":     {`{"v":"1","name":"n","url":"http://h","token":"t"}`, "v"},
		"no name":             {`{"v":1,"url":"http://h","token":"t"}`, "name"},
		"name null":           {`{"v":1,"name":null,"url":"http://h","token":"t"}`, "name"},
		"no URL":              {`{"v":1,"name":"n","token":"t"}`, "url"},
		"URL in another case": {`{"v":1,"name":"n","URL":"http://h","token":"t"}`, "url"},
		"a link to a page":    {`{"v":1,"name":"n","mailbox":"00112233445566778899aabbccddeeff","key":"k"}`, "link"},
		"token as a number":   {`{"v":1,"name":"n","url":"http://h","token":7}`, "token"},
	} {
		wantLinkError(t, name, c.field, func() error {
			_, err := pairing.ParseLink(c.text)
			if err != nil && strings.Contains(err.Error(), "hello") {
				t.Errorf("%s: the error quotes the link: %v", name, err)
			}
			return err
		})
	}
}

func TestThisMachineOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"http://localhost:8787": true, "http://LOCALHOST.": true, "http://x.localhost": true, "http://127.0.0.1": true, "http://127.8.9.1": true,
		"http://[::1]:80": true, "http://[::ffff:127.0.0.1]": true, "http://0.0.0.0:80": true,
		"http://192.168.1.7": false, "http://daemon.lan": false, "http://localhost.example": false, "": false,
	} {
		if got := (pairing.Link{URL: address}).ThisMachineOnly(); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// FuzzParseLink: what is accepted makes a link that is read the same way.
func FuzzParseLink(f *testing.F) {
	for _, c := range loadLinks(f) {
		f.Add(c.Link)
		f.Add(c.JSON)
	}
	f.Add(`{"v":1e0,"name":"\ud800","url":"http://[::1%25eth0]:1/%2f/..//","token":""}`)
	f.Fuzz(func(t *testing.T, text string) {
		link, err := pairing.ParseLink(text)
		if err != nil {
			if _, ok := errors.AsType[*pairing.FieldError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		again, err := link.At("https://relay.example")
		if tooLong, ok := errors.AsType[*pairing.FieldError](err); ok && tooLong.Field == "link" {
			return // as JSON it was shorter
		}
		if err != nil {
			t.Fatalf("%q was read and cannot be made: %v", text, err)
		}
		got, err := pairing.ParseLink(again)
		if err != nil {
			t.Fatal(err)
		}
		sameLink(t, got, link)
	})
}
