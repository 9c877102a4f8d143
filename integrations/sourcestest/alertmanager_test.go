package sourcestest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

const installAlertmanager = "apt-get install prometheus-alertmanager"

// patience is how long anything may take before a test gives up on it.
const patience = time.Minute

// A world is a relay that can go away, a phone, the tool's receiver and Debian's Alertmanager.
type world struct {
	t       *testing.T
	dir     string
	relay   *relaytest.Relay
	server  *http.Server
	address string // the relay's
	phone   *relaytest.Phone

	receiver     *programtest.Program
	process      *os.Process // the receiver's
	receiverAddr string
	manager      string // Alertmanager's URL
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), relay: relaytest.NewUnstartedRelay(), phone: relaytest.NewPhone(), address: "127.0.0.1:0", receiverAddr: "127.0.0.1:0"}
	t.Cleanup(w.relay.Close)
	w.startRelay()
	t.Cleanup(func() { w.server.Close() })
	store, err := pairing.OpenFile(filepath.Join(w.dir, "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		t.Fatal(err)
	}
	request := pairing.Request{Name: "phone", Platform: "ios", PushToken: secret.New(w.phone.PushToken()), PublicKey: w.phone.PublicKey()}
	if _, _, err := registry.Pair(t.Context(), request, ""); err != nil {
		t.Fatal(err)
	}
	w.write("token", "let-me-in-0123456789")
	w.startReceiver()
	w.startAlertmanager()
	return w
}

func (w *world) write(name, content string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// startRelay lets the relay listen, again at the same address.
func (w *world) startRelay() {
	w.t.Helper()
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.address = listener.Addr().String()
	w.server = &http.Server{Handler: w.relay}
	go w.server.Serve(listener)
}

func (w *world) startReceiver() {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(bin, "sealpush"), "alertmanager", "-addr", w.receiverAddr)
	cmd.Env = append(environment(w.dir), "SEALPUSH_RELAY_URL=http://"+w.address, "SEALPUSH_REGISTRY="+filepath.Join(w.dir, "devices.json"),
		"SEALPUSH_ALERTMANAGER_TOKEN_FILE="+filepath.Join(w.dir, "token"))
	w.receiver = programtest.Start(w.t, cmd)
	w.process = cmd.Process
	w.receiverAddr = w.receiver.Await(w.t, `waiting for webhooks.* url=http://([^/\s]+)/`)[1]
}

// startAlertmanager starts it with intervals that are as short as it takes them.
func (w *world) startAlertmanager() {
	w.t.Helper()
	path := need(w.t, "prometheus-alertmanager", installAlertmanager)
	w.write("alertmanager.yml", fmt.Sprintf(`
route:
  receiver: phones
  group_by: [alertname]
  group_wait: 10ms
  group_interval: 1s
  repeat_interval: 2s
receivers:
  - name: phones
    webhook_configs:
      - url: http://%s/
        send_resolved: true
        http_config:
          authorization:
            credentials_file: token
`, w.receiverAddr))
	address := freeAddress(w.t)
	manager := programtest.Start(w.t, exec.CommandContext(w.t.Context(), path, "--config.file="+filepath.Join(w.dir, "alertmanager.yml"),
		"--storage.path="+filepath.Join(w.dir, "data"), "--web.listen-address="+address, "--cluster.listen-address="))
	manager.Await(w.t, "Listening on")
	w.manager = "http://" + address
}

// freeAddress is one of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// alarm is a disk of a host that has been full since a time.
func alarm(host string, since time.Time) map[string]any {
	return map[string]any{
		"labels":      map[string]string{"alertname": "DiskFull", "instance": host + ":9100", "severity": "critical"},
		"annotations": map[string]string{"summary": "disk of " + host + " is full"},
		"startsAt":    since.Format(time.RFC3339Nano),
		"endsAt":      since.Add(time.Hour).Format(time.RFC3339Nano),
	}
}

// resolved is the same alarm when it is over.
func resolved(alarm map[string]any) map[string]any {
	over := map[string]any{"endsAt": time.Now().Format(time.RFC3339Nano)}
	for key, value := range alarm {
		if _, changed := over[key]; !changed {
			over[key] = value
		}
	}
	return over
}

// tell posts alerts to Alertmanager, as Prometheus does.
func (w *world) tell(alarms ...map[string]any) {
	w.t.Helper()
	body, err := json.Marshal(alarms)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := http.Post(w.manager+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("Alertmanager answers %s", response.Status)
	}
}

// shown waits until the phone shows so many pages, and returns them, oldest first.
func (w *world) shown(n int) []payload.Alert {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	if _, err := w.relay.WaitInbox(ctx, w.phone.PushToken(), n); err != nil {
		w.t.Fatalf("the phone does not get %d pages: %v; the receiver says\n%s", n, err, w.receiver.Output())
	}
	received, err := w.phone.Received(w.relay)
	if err != nil || len(received) != n {
		w.t.Fatalf("the phone has %d pages, want %d: %v", len(received), n, err)
	}
	var alerts []payload.Alert
	for _, notification := range received {
		alerts = append(alerts, notification.Alert)
	}
	return alerts
}

func TestAlertmanager(t *testing.T) {
	w := newWorld(t)
	since := time.Now().Add(-time.Minute).Truncate(time.Millisecond)

	db1 := alarm("db1", since)
	w.tell(db1)
	first := w.shown(1)[0]
	if first.Kind != payload.KindFailure || first.Name != "DiskFull" || first.Host != "db1" || first.FailReason != "disk of db1 is full" || !first.StartedAt.Equal(since) {
		t.Errorf("the phone shows %+v", first)
	}

	// Alertmanager repeats itself, and the relay coalesces that.
	w.receiver.Await(t, `(?s)(alert group paged.*){2}`)
	w.shown(1)

	db2 := alarm("db2", since)
	w.tell(db1, db2) // a new member pages
	second := w.shown(2)[1]
	if second.RunID == first.RunID || second.Host != "db1 and 1 more" || second.FailReason != "2 firing" {
		t.Errorf("the phone shows %+v", second)
	}

	// The receiver is started again, and knows the page that is resolved all the same. Right after a repetition there is
	// time, so that Alertmanager takes both alerts as resolved in one go.
	w.receiver.Await(t, fmt.Sprintf(`(?s)(alert group paged.*){%d}`, strings.Count(w.receiver.Output(), "alert group paged")+1))
	if err := w.process.Kill(); err != nil {
		t.Fatal(err)
	}
	w.receiver.ExitCode(t)
	w.startReceiver()
	w.tell(resolved(db1), resolved(db2))
	over := w.shown(3)[2]
	if over.Kind != payload.KindSuccess || over.RunID != second.RunID {
		t.Errorf("the phone shows %+v, which resolves %s", over, second.RunID)
	}

	// While the relay is gone, Alertmanager tries again and again.
	if err := w.server.Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	w.tell(alarm("db3", start))
	w.receiver.Await(t, `alert group not paged: its sender is asked to try again.*status=502`)
	if *outage > 0 {
		<-time.After(time.Until(start.Add(*outage)))
	}
	w.startRelay()
	third := w.shown(4)[3]
	if third.Kind != payload.KindFailure || third.Host != "db3" {
		t.Errorf("the phone shows %+v", third)
	}
	t.Logf("the relay was gone for %v, and %d attempts failed; the page came after %v", *outage, strings.Count(w.receiver.Output(), "alert group not paged"), time.Since(start))
}
