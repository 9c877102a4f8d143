package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/secret"
)

func TestPairingResponse(t *testing.T) {
	b := startBridge(t, noPush, "")
	base, _, _ := strings.Cut(b.pairURL, "/pair?")
	if got := get(t, base+"/pair?code=wrong"); got.status != http.StatusForbidden {
		t.Errorf("wrong code: %d, %q", got.status, got.body)
	}
	head, err := http.Head(b.pairURL)
	if err != nil || head.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %v, %v", head, err)
	}
	right := get(t, b.pairURL)
	address := strings.TrimPrefix(base, "http://")
	_, token, _ := strings.Cut(right.body, `"authToken":"`)
	token, _, _ = strings.Cut(token, `"`)
	want := `{"url":"ws://` + address + `","protocol":"acp","version":"1.0.0","authToken":"` + token + `"}` + "\n"
	if right.status != http.StatusOK || right.body != want || len(token) < 26 {
		t.Errorf("right code: %d, %q", right.status, right.body)
	}
	if right.header.Get("Content-Type") != "application/json" || right.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", right.header)
	}
	if got := get(t, b.pairURL); got.status != http.StatusGone || strings.Contains(got.body, token) {
		t.Errorf("second use: %d, %q", got.status, got.body)
	}
}

func TestPairingCodeExpires(t *testing.T) {
	for age, want := range map[time.Duration]int{
		5*time.Minute - 1: http.StatusOK,
		5 * time.Minute:   http.StatusGone,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPairing(bridge.PairingResponse{AuthToken: secret.New("hunter2")})
			url := p.url(&address{base: "http://127.0.0.1:3001"})
			<-time.After(age)
			recorder := httptest.NewRecorder()
			p.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, url, nil))
			if recorder.Code != want || strings.Contains(recorder.Body.String(), "hunter2") != (want == http.StatusOK) {
				t.Errorf("after %v: %d, %q", age, recorder.Code, recorder.Body)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	b := startBridge(t, noPush, "", "-tls").pair(t)
	_, pinned, _ := strings.Cut(b.pairURL, "#")
	if !strings.HasPrefix(b.response.URL, "wss://127.0.0.1:") || b.response.CertFingerprint != pinned {
		t.Errorf("pairing response %v with the fingerprint %q, pinned is %q", b.response, b.response.CertFingerprint, pinned)
	}
	base, _, _ := strings.Cut(b.pairURL, "/pair?")
	certificate := get(t, base).tls.PeerCertificates[0]
	if got := fingerprint(certificate.Raw); got != pinned || len(got) != len("SHA256:")+32*3-1 {
		t.Errorf("the certificate is %q, pinned is %q", got, pinned)
	}
	if err := certificate.VerifyHostname("127.0.0.1"); err != nil {
		t.Error(err)
	}
	phone := b.connect(t)
	b.agent.tell(t, "sealed")
	phone.expect("sealed")
}

func TestOtherURL(t *testing.T) {
	p := start(t, bridgeCommand(t, noPush, "-url", "https://bridge.example/", "--", "go", "version"))
	p.stdout.waitFor(t, "    https://bridge.example/pair?code=")
}
