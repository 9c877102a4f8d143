package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// The process trusts the stand-in for Apple's push service through
// SSL_CERT_FILE, which Go honours on Linux.
func TestForwardsToApple(t *testing.T) {
	forwarded := make(chan *http.Request, 1)
	r, host := startForwarding(t, func(_ http.ResponseWriter, r *http.Request) { forwarded <- r })
	if want := "forwards to   " + host + ", for com.example.app\n"; !strings.Contains(r.guide, want) {
		t.Errorf("%q is not in\n%s", want, r.guide)
	}
	if strings.Contains(r.guide, "inbox") {
		t.Errorf("shows an inbox that stays empty:\n%s", r.guide)
	}
	phone := relaytest.NewPhone()
	if err := sendTest(t, r, phone); err != nil {
		t.Fatalf("%v\n%s", err, &r.logs)
	}
	got := <-forwarded
	if got.URL.Path != "/3/device/"+phone.PushToken() || got.Header.Get("apns-topic") != "com.example.app" ||
		!strings.HasPrefix(got.Header.Get("Authorization"), "bearer ") {
		t.Errorf("Apple saw %s, topic %q", got.URL.Path, got.Header.Get("apns-topic"))
	}
	resp, err := http.Get(strings.TrimSuffix(sealedURL(r), "/relay") + "/.well-known/apple-app-site-association")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if document, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(document), `"DEF7654321.com.example.app"`) {
		t.Errorf("iPhones do not open pairing links in the app: %s %s, %v", resp.Status, document, err)
	}
}

// No daemon posts an alert again, so one that is on its way to Apple gets there
// before the relay stops.
func TestInterruptWaitsForApple(t *testing.T) {
	underway, proceed := make(chan bool), make(chan bool)
	r, _ := startForwarding(t, func(_ http.ResponseWriter, r *http.Request) {
		underway <- true
		select {
		case <-proceed:
		case <-r.Context().Done():
			t.Error("the forward was cut off")
		}
	})
	sent := make(chan error, 1)
	go func() { sent <- sendTest(t, r, relaytest.NewPhone()) }()
	<-underway
	address, err := url.Parse(sealedURL(r))
	if err != nil {
		t.Fatal(err)
	}
	idle, err := net.Dial("tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	fmt.Fprintf(idle, "HEAD / HTTP/1.1\r\nHost: relay\r\n\r\n")
	answers := bufio.NewReader(idle)
	if _, err := http.ReadResponse(answers, &http.Request{Method: http.MethodHead}); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := answers.ReadByte(); err != io.EOF { // until it closes what is idle
		t.Fatal(err)
	}
	close(proceed)
	if err := <-sent; err != nil {
		t.Errorf("the alert that was on its way: %v", err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &r.logs)
	}
}

// startForwarding runs a relay that forwards to a stand-in for Apple at host.
func startForwarding(t *testing.T, apple http.HandlerFunc) (r *relayProcess, host string) {
	t.Helper()
	service := httptest.NewUnstartedServer(apple)
	service.EnableHTTP2 = true
	service.StartTLS()
	t.Cleanup(service.Close)
	certFile := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, certFile, "CERTIFICATE", service.Certificate().Raw)
	t.Setenv("SSL_CERT_FILE", certFile)
	return startRelay(t, "-addr", "127.0.0.1:0", "-apns-key", newKeyFile(t), "-apns-team", "DEF7654321",
		"-topic", "com.example.app", "-apns-host", service.URL), service.URL
}

func sealedURL(r *relayProcess) string {
	_, rest, _ := strings.Cut(r.guide, "Sealed relay    ")
	url, _, _ := strings.Cut(rest, "\n")
	return url
}

func sendTest(t *testing.T, r *relayProcess, phone *relaytest.Phone) error {
	client, err := relayclient.New(sealedURL(r))
	if err != nil {
		return err
	}
	defer client.Close()
	devices := []pairing.Device{{ID: "phone", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}}
	return client.Send(t.Context(), relayclient.Push{Alert: payload.NewTest("node-a")}, devices)[0].Err
}

func TestAppleFlagsGoTogether(t *testing.T) {
	for name, args := range map[string][]string{
		"no key":      {"-topic", "com.example.app"},
		"no team":     {"-apns-key", "AuthKey_ABC1234567.p8", "-topic", "com.example.app"},
		"no key file": {"-apns-key", "AuthKey_ABC1234567.p8", "-apns-team", "DEF7654321", "-topic", "com.example.app"},
	} {
		out, code := output(t, tool(t, append([]string{"relay", "-addr", "127.0.0.1:0"}, args...)...))
		if code == 0 || !strings.HasPrefix(out, "sealpush relay: ") {
			t.Errorf("%s: exit code %d\n%s", name, code, out)
		}
	}
}

func newKeyFile(t *testing.T) string {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "AuthKey_ABC1234567.p8")
	writePEM(t, path, "PRIVATE KEY", der)
	return path
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
