package relayclient_test

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

var salt = secret.New("4cf956b7261a9bc5628f2ffa5544190c")

// phones returns n paired phones and the devices that a daemon knows them by.
func phones(n int) ([]*relaytest.Phone, []pairing.Device) {
	phones := make([]*relaytest.Phone, n)
	devices := make([]pairing.Device, n)
	for i := range n {
		phones[i] = relaytest.NewPhone()
		devices[i] = deviceOf(phones[i])
	}
	return phones, devices
}

func deviceOf(phone *relaytest.Phone) pairing.Device {
	return pairing.Device{ID: randomID(), Name: "phone", Platform: "ios", PushToken: secret.New(phone.PushToken()), PublicKey: phone.PublicKey()}
}

// sharedKeyDevices returns n devices with tokens of their own and one key, where
// making n keys would take longer than the test.
func sharedKeyDevices(n int) []pairing.Device {
	key := seal.GenerateKey().Public()
	devices := make([]pairing.Device, n)
	for i := range devices {
		devices[i] = pairing.Device{ID: randomID(), PushToken: secret.New(randomID() + randomID()), PublicKey: key}
	}
	return devices
}

func randomID() string {
	var id [8]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

func failure() payload.Alert {
	alert := payload.NewFailure("node-a", "nightly-backup")
	code := 3
	alert.ExitCode = &code
	alert.FailReason = "exit code 3"
	alert.LogTail = []string{"rsync: connection reset", "gave up"}
	return alert
}

// newClient returns a client of the relay that logs to the test's logbook.
func newClient(t testing.TB, relay *relaytest.Relay, opts ...relayclient.Option) (*relayclient.Client, *logbook) {
	t.Helper()
	return newClientAt(t, relay.URL, append([]relayclient.Option{relayclient.WithHTTPClient(relay.Client())}, opts...)...)
}

func newClientAt(t testing.TB, url string, opts ...relayclient.Option) (*relayclient.Client, *logbook) {
	t.Helper()
	log := &logbook{}
	client, err := relayclient.New(url, append([]relayclient.Option{relayclient.WithLogger(log.logger())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, log
}

// logbook keeps log lines.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Reset()
}

func (l *logbook) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.TrimSpace(l.buf.String())
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func wantAllDelivered(t *testing.T, outcomes []relayclient.Outcome, devices []pairing.Device) {
	t.Helper()
	if len(outcomes) != len(devices) {
		t.Fatalf("%d outcomes for %d devices", len(outcomes), len(devices))
	}
	for i, outcome := range outcomes {
		if outcome.DeviceID != devices[i].ID {
			t.Fatalf("outcome %d is for %s, want %s", i, outcome.DeviceID, devices[i].ID)
		}
		if outcome.Err != nil || outcome.Status != http.StatusAccepted {
			t.Fatalf("outcome %d: %d, %v", i, outcome.Status, outcome.Err)
		}
	}
}
