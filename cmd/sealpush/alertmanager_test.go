package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

const diskFull = `{"version":"4","status":"firing","receiver":"phones","groupKey":"{}:{alertname=\"DiskFull\"}","truncatedAlerts":0,
"commonLabels":{"alertname":"DiskFull"},"alerts":[{"status":"firing","startsAt":"2026-12-01T03:00:00Z","fingerprint":"f1",
"labels":{"alertname":"DiskFull","instance":"db1:9100"},"annotations":{"summary":"/ is full"}}]}`

// webhookFixture is a relay, a registry with one phone, and a file of settings.
type webhookFixture struct {
	relay    *relaytest.Relay
	phone    *relaytest.Phone
	settings string
}

func newWebhookFixture(t *testing.T, table string) webhookFixture {
	t.Helper()
	dir := t.TempDir()
	f := webhookFixture{relay: relaytest.NewRelay(), phone: relaytest.NewPhone(), settings: filepath.Join(dir, "sealpush.toml")}
	t.Cleanup(f.relay.Close)
	store, err := pairing.OpenFile(filepath.Join(dir, "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		t.Fatal(err)
	}
	request := pairing.Request{Name: "phone", Platform: "ios", PushToken: secret.New(f.phone.PushToken()), PublicKey: f.phone.PublicKey()}
	if _, _, err := registry.Pair(t.Context(), request, ""); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("relay_url = %q\nregistry = \"devices.json\"\nhost = \"monitor\"\n[alertmanager]\naddr = \"127.0.0.1:0\"\n%s", f.relay.URL, table)
	for name, content := range map[string]string{"sealpush.toml": text, "token": "hunter2-token\n", "page.tmpl": `{{define "name"}}{{.CommonLabels.alertname}}!{{end}}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// start starts the receiver and returns where it waits.
func (f webhookFixture) start(t *testing.T, args ...string) (receiver *programtest.Program, process *os.Process, url string) {
	t.Helper()
	cmd := tool(t, append([]string{"alertmanager", "-config", f.settings}, args...)...)
	receiver = programtest.Start(t, cmd)
	return receiver, cmd.Process, receiver.Await(t, `waiting for webhooks.* url=(\S+)`)[1]
}

// postWebhook posts a payload, without credentials unless change adds some.
func postWebhook(t *testing.T, client *http.Client, url string, change func(*http.Request)) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(diskFull))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if change != nil {
		change(request)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestAlertmanagerPages(t *testing.T) {
	f := newWebhookFixture(t, "token_file = \"token\"\nuser = \"am\"\npassword = \"hunter2-password\"\ntemplate = \"page.tmpl\"\n")
	receiver, _, url := f.start(t)
	if status, _ := postWebhook(t, http.DefaultClient, url, nil); status != http.StatusUnauthorized {
		t.Errorf("a stranger is answered %d", status)
	}
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Authorization", "Bearer hunter2-token") },
		func(r *http.Request) { r.SetBasicAuth("am", "hunter2-password") },
	} {
		if status, text := postWebhook(t, http.DefaultClient, url+"alerts", change); status != http.StatusOK {
			t.Errorf("answered %d: %s", status, text)
		}
	}
	received, err := f.phone.Received(f.relay)
	if err != nil || len(received) != 1 {
		t.Fatalf("the phone received %v, %v", received, err)
	}
	if alert := received[0].Alert; alert.Name != "DiskFull!" || alert.Host != "db1" || alert.FailReason != "/ is full" {
		t.Errorf("the phone shows %+v", alert)
	}
	receiver.Await(t, `alert group paged.* name=DiskFull! `)
	if strings.Contains(receiver.Output(), "hunter2") {
		t.Errorf("it prints a secret:\n%s", receiver.Output())
	}
}

func TestAlertmanagerServesTLS(t *testing.T) {
	f := newWebhookFixture(t, "tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n")
	helper := httptest.NewTLSServer(nil) // for its certificate
	defer helper.Close()
	certificate := helper.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(filepath.Dir(f.settings), name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, url := f.start(t)
	pool := x509.NewCertPool()
	pool.AddCert(helper.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	if status, text := postWebhook(t, client, url, nil); !strings.HasPrefix(url, "https://") || status != http.StatusOK {
		t.Errorf("%s answers %d: %s", url, status, text)
	}
}

// It starts without a phone, says so, and pages the one that is paired later.
func TestAlertmanagerWithoutPhones(t *testing.T) {
	f := newWebhookFixture(t, "")
	receiver, _, url := f.start(t, "-registry", filepath.Join(t.TempDir(), "none.json"))
	receiver.Await(t, "nobody can be paged yet.*sealpush pair")
	if status, text := postWebhook(t, http.DefaultClient, url, nil); status != http.StatusServiceUnavailable {
		t.Errorf("answered %d: %s", status, text)
	}
}

func TestAlertmanagerRefusesWrongSettings(t *testing.T) {
	f := newWebhookFixture(t, "")
	for _, tt := range []struct {
		says string
		args []string
	}{
		{"anybody who can post could page", []string{"-addr", ":0"}},
		{"-user and -password go together", []string{"-user", "am"}},
		{"-tls-cert and -tls-key go together", []string{"-tls-cert", f.settings}},
		{"needs a token without white space", []string{"-token", "a b"}},
		{"WithHostLabels needs names", []string{"-host-labels", "a,,b"}},
		{"-resolved", []string{"-resolved", "loud"}},
		{"no such file", []string{"-template", "/does/not/exist"}},
		{"defines none of name, host, reason, line", []string{"-template", f.settings}},
		{"the relay URL is not usable", []string{"-relay-url", "nowhere"}},
		{"an argument without a flag", []string{"now"}},
	} {
		expect(t, exitUsage, []string{tt.says, "sealpush help alertmanager"}, append([]string{"alertmanager", "-config", f.settings}, tt.args...)...)
	}
	expect(t, exitUsage, []string{"no relay url: set relay_url"}, "alertmanager")
}
