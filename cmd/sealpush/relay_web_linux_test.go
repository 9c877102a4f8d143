package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// startWeb runs a relay for the browsers of a push service. The process trusts that
// through SSL_CERT_FILE, which Go honours on Linux.
func startWeb(t *testing.T, service *webpushtest.Service, args ...string) *relayProcess {
	t.Helper()
	t.Setenv("SSL_CERT_FILE", writeFile(t, filepath.Join(t.TempDir(), "ca.pem"), string(service.Certificate())))
	return startRelay(t, append([]string{"-web", "-addr", "127.0.0.1:0", "-push-network", "127.0.0.0/8",
		"-push-service", strings.TrimPrefix(service.URL, "https://")}, args...)...)
}

// invitationOf reads the link that the relay prints.
func invitationOf(t *testing.T, r *relayProcess) string {
	t.Helper()
	_, link, _ := strings.Cut(r.guide, "Invitation ")
	link, _, _ = strings.Cut(strings.TrimSpace(link), "\n")
	if base, _, _ := strings.Cut(link, "/phone#"); base+"/relay" != sealedURL(r) {
		t.Fatalf("no link to the page of this relay: %q", link)
	}
	parsed, err := pairing.ParseWebLink(link)
	if err != nil || parsed.Invitation.IsZero() {
		t.Fatalf("%q: %v", link, err)
	}
	return parsed.Invitation.Reveal()
}

// ask makes a request and returns the members of the answer.
func ask(t *testing.T, r *relayProcess, method, path, bearer, body string) (status int, members map[string]string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, strings.TrimSuffix(sealedURL(r), "/relay")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	json.Unmarshal(text, &members)
	return resp.StatusCode, members
}

func subscribe(t *testing.T, r *relayProcess, invitation string, s webpushtest.Subscription) (token, password string) {
	t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := ask(t, r, http.MethodPost, "/subscriptions", invitation, string(body))
	if status != http.StatusCreated {
		t.Fatalf("subscribing: %d %v", status, answer)
	}
	return answer["deviceToken"], answer["secret"]
}

// sendAlert pages the phone and returns what became of it.
func sendAlert(t *testing.T, r *relayProcess, phone *relaytest.Phone, alert payload.Alert) relayclient.Outcome {
	t.Helper()
	client, err := relayclient.New(sealedURL(r))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	devices := []pairing.Device{{ID: "phone", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}}
	return client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: secret.New("4cf956b7261a9bc5628f2ffa5544190c")}, devices)[0]
}

// wantAlert opens the next message of the push service with the phone's key.
func wantAlert(t *testing.T, service *webpushtest.Service, key seal.PrivateKey, name string) {
	t.Helper()
	m, err := service.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var message struct{ Suite, Ciphertext string }
	if err := json.Unmarshal(m.Plaintext, &message); err != nil {
		t.Fatal(err)
	}
	alert, err := seal.Open(key, message.Ciphertext)
	if err != nil || !bytes.Contains(alert, []byte(`"name":"`+name+`"`)) {
		t.Errorf("the phone reads %s, %v", alert, err)
	}
}

// A relay that was killed pages the phones that it had, under the same key, and
// remembers what it has forwarded.
func TestRestartLosesNoSubscription(t *testing.T) {
	service := webpushtest.New(t)
	state := filepath.Join(t.TempDir(), "state")
	r := startWeb(t, service, "-state", state, "-show-invitation")
	invitation := invitationOf(t, r)
	_, first := ask(t, r, http.MethodGet, "/subscriptions", "", "")
	token, password := subscribe(t, r, invitation, service.Subscribe())
	key := seal.GenerateKey()
	phone := relaytest.NewPhone(relaytest.WithPrivateKey(key), relaytest.WithPushToken(token))
	backup := payload.NewFailure("db1", "backup")
	if outcome := sendAlert(t, r, phone, backup); outcome.Err != nil {
		t.Fatalf("%v\n%s", outcome.Err, &r.logs)
	}
	wantAlert(t, service, key, "backup")
	r.cmd.Process.Kill()
	r.cmd.Wait()

	again := startWeb(t, service, "-state", state, "-show-invitation")
	if invitationOf(t, again) != invitation {
		t.Error("another invitation")
	}
	if _, second := ask(t, again, http.MethodGet, "/subscriptions", "", ""); first["publicKey"] == "" || second["publicKey"] != first["publicKey"] {
		t.Error("another VAPID key: every browser would have to subscribe anew")
	}
	outcome := sendAlert(t, again, phone, backup)
	if outcome.Err != nil || outcome.Relay != relayclient.Coalesced {
		t.Errorf("the same alert after a restart: %+v", outcome)
	}
	backup.Name = "report"
	if outcome := sendAlert(t, again, phone, backup); outcome.Err != nil {
		t.Errorf("another alert after a restart: %v", outcome.Err)
	}
	wantAlert(t, service, key, "report")
	if status, answer := ask(t, again, http.MethodDelete, "/subscriptions/"+token, password, ""); status != http.StatusNoContent {
		t.Errorf("forgetting the phone: %d %v", status, answer)
	}
	again.stop(t)
	if strings.Contains(again.logs.String(), token) || !strings.Contains(again.logs.String(), "path=/subscriptions/… status=204") {
		t.Errorf("the log:\n%s", &again.logs)
	}
	for path, want := range map[string]os.FileMode{state: 0o700, filepath.Join(state, "relay.db"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// stop interrupts the relay and waits for its end.
func (r *relayProcess) stop(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &r.logs)
	}
}

// One address serves all that the page and sealpush pair ask for, and nothing of the
// services for bridges, which are for trying out.
func TestOneAddressServesTheWebPhone(t *testing.T) {
	r := startWeb(t, webpushtest.New(t), "-state", t.TempDir(), "-metrics", "127.0.0.1:0")
	if strings.Contains(r.guide, "/phone#") || !strings.Contains(r.guide, "-show-invitation") {
		t.Errorf("an invitation goes where nobody asked for it:\n%s", r.guide)
	}
	for path, want := range map[string]int{
		"/": http.StatusOK, "/phone": http.StatusOK, "/phone/": http.StatusOK, "/subscriptions": http.StatusOK, "/pair": http.StatusOK,
		"/inbox": http.StatusNotFound, "/token-service/health": http.StatusNotFound, "/push-relay/health": http.StatusNotFound,
		"/subscriptionsx": http.StatusNotFound, "/mailboxes": http.StatusNotFound, "/.well-known/apple-app-site-association": http.StatusNotFound,
	} {
		if status, _ := ask(t, r, http.MethodGet, path, "", ""); status != want {
			t.Errorf("GET %s: %d, want %d", path, status, want)
		}
	}
	_, metrics, _ := strings.Cut(r.guide, "Metrics ")
	metrics, _, _ = strings.Cut(strings.TrimSpace(metrics), "\n")
	resp, err := http.Get(metrics)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !bytes.Contains(text, []byte("sealpush_relay_posts_total")) || bytes.Contains(text, []byte("sealpush_relay_devices")) {
		t.Errorf("%s: %v\n%s", metrics, err, text)
	}
	id := make([]byte, 16)
	rand.Read(id)
	box := "/mailboxes/" + hex.EncodeToString(id)
	if status, _ := ask(t, r, http.MethodPut, box, rand.Text(), ""); status != http.StatusCreated {
		t.Errorf("opening a mailbox: %d", status)
	}
	// Somebody waits for mail when the relay is stopped, and does not hold it up.
	asked, ended := make(chan struct{}), make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(asked) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(sealedURL(r), "/relay")+box+"/answer", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		client := &http.Client{Transport: &http.Transport{}} // with a connection of its own
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-asked
	r.stop(t)
	<-ended
}

func TestInvitationOfTheOperator(t *testing.T) {
	service := webpushtest.New(t)
	t.Setenv("SEALPUSH_RELAY_INVITATION", "of-the-operator-himself")
	t.Setenv("SEALPUSH_RELAY_STATE", t.TempDir())
	r := startWeb(t, service)
	if strings.Contains(r.guide, "of-the-operator") {
		t.Errorf("shows it:\n%s", r.guide)
	}
	subscribe(t, r, "of-the-operator-himself", service.Subscribe())
}

// One relay serves browsers and Apple's phones.
func TestBrowsersAndApple(t *testing.T) {
	service := webpushtest.New(t)
	forwarded := make(chan string, 1)
	apple := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { forwarded <- r.URL.Path }))
	apple.EnableHTTP2 = true
	apple.StartTLS() // with the certificate that the push service has
	defer apple.Close()
	r := startWeb(t, service, "-state", t.TempDir(), "-show-invitation", "-apns-key", newKeyFile(t), "-apns-team", "DEF7654321",
		"-topic", "com.example.app", "-apns-host", apple.URL)
	if want := "forwards to   browsers, by Web Push, and to " + apple.URL + ", for com.example.app\n"; !strings.Contains(r.guide, want) {
		t.Errorf("%q is not in\n%s", want, r.guide)
	}
	key := seal.GenerateKey()
	token, _ := subscribe(t, r, invitationOf(t, r), service.Subscribe())
	browser := relaytest.NewPhone(relaytest.WithPrivateKey(key), relaytest.WithPushToken(token))
	iPhone := relaytest.NewPhone() // whose token has 64 hex digits, too
	for _, phone := range []*relaytest.Phone{browser, iPhone} {
		if outcome := sendAlert(t, r, phone, payload.NewFailure("db1", "backup")); outcome.Err != nil {
			t.Fatalf("%v\n%s", outcome.Err, &r.logs)
		}
	}
	wantAlert(t, service, key, "backup")
	if got := <-forwarded; got != "/3/device/"+iPhone.PushToken() {
		t.Errorf("Apple saw %s", got)
	}
	if status, _ := ask(t, r, http.MethodGet, "/.well-known/apple-app-site-association", "", ""); status != http.StatusOK {
		t.Errorf("iPhones do not open pairing links in the app: %d", status)
	}
}

// Somebody at a terminal sees the invitation without asking.
func TestTerminalsSeeTheInvitation(t *testing.T) {
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer controller.Close()
	if err := unix.IoctlSetPointerInt(int(controller.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(controller.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	r := &relayProcess{cmd: tool(t, "relay", "-web", "-addr", "127.0.0.1:0", "-state", t.TempDir())}
	r.cmd.Stdout, r.cmd.Stderr = terminal, &r.logs
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer r.cmd.Process.Kill()
	terminal.Close() // so that reading ends with the process
	for lines := bufio.NewScanner(controller); lines.Scan() && !strings.HasPrefix(lines.Text(), "Ready."); {
		r.guide += strings.TrimSuffix(lines.Text(), "\r") + "\n"
	}
	invitationOf(t, r)
	r.stop(t)
}
