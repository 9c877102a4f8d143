package relayclient_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// stored is what is left of a Sealed that a file has kept.
func stored(sealed []relayclient.Sealed) []relayclient.Sealed {
	var read []relayclient.Sealed
	for _, s := range sealed {
		read = append(read, relayclient.Sealed{DeviceID: s.DeviceID, Envelope: s.Envelope})
	}
	return read
}

func TestSealNowPostLater(t *testing.T) {
	for name, opts := range map[string][]relaytest.RelayOption{"HTTP/1.1": nil, "HTTP/2": {relaytest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			relay := relaytest.NewRelay(append(opts, relaytest.WithoutPolicy())...)
			defer relay.Close()
			client, log := newClient(t, relay)
			phones, devices := phones(3)
			sealed, err := client.Seal(relayclient.Push{Alert: failure(), Salt: salt}, devices)
			if err != nil || len(sealed) != 3 || relay.Stats().Requests != 0 {
				t.Fatalf("%d sealed, %v, %d requests", len(sealed), err, relay.Stats().Requests)
			}
			var begun atomic.Int64
			wantAllDelivered(t, client.Post(t.Context(), stored(sealed), func(i int) error { begun.Add(1 << i); return nil }), devices)
			if begun.Load() != 1|2|4 {
				t.Errorf("begin was called for %b", begun.Load())
			}
			for _, phone := range phones {
				got, err := phone.Received(relay)
				if err != nil || len(got) != 1 || got[0].Alert.Name != "nightly-backup" {
					t.Errorf("a phone got %v, %v", got, err)
				}
			}
			if lines := log.lines(); len(lines) != 0 {
				t.Errorf("log: %q", lines)
			}
		})
	}
}

// Each page that is not posted is in the log, under the alert's name.
func TestPostAfterClose(t *testing.T) {
	client, log := newClientAt(t, "https://relay.example")
	_, devices := phones(2)
	sealed, err := client.Seal(relayclient.Push{Alert: failure(), Salt: salt}, devices)
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	for _, outcome := range client.Post(t.Context(), sealed, nil) {
		if !errors.Is(outcome.Err, relayclient.ErrClosed) {
			t.Errorf("outcome %v", outcome.Err)
		}
	}
	lines := log.lines()
	for i, line := range lines {
		if !strings.Contains(line, "name=nightly-backup") || !strings.Contains(line, "device="+devices[i].ID) {
			t.Errorf("logged %s", line)
		}
	}
	if len(lines) != 2 {
		t.Errorf("logged %q", lines)
	}
}

func TestSealRefuses(t *testing.T) {
	client, _ := newClientAt(t, "https://relay.example")
	_, devices := phones(2)
	devices[1].Unusable = errors.New("its key is old")
	sealed, err := client.Seal(relayclient.Push{Alert: failure(), Salt: salt}, devices)
	if len(sealed) != 1 || sealed[0].DeviceID != devices[0].ID || !errors.Is(err, relayclient.ErrUnusableDevice) || !strings.Contains(err.Error(), devices[1].ID) {
		t.Errorf("%v, %v", sealed, err)
	}
	if sealed, err := client.Seal(relayclient.Push{Alert: payload.Alert{}, Salt: salt}, devices); len(sealed) != 0 || !errors.Is(err, relayclient.ErrInvalidAlert) {
		t.Errorf("an alert that is not valid: %v, %v", sealed, err)
	}
	outcomes := client.Post(t.Context(), []relayclient.Sealed{{DeviceID: "a", Envelope: []byte("{}")}, {DeviceID: "b"}}, nil)
	for _, outcome := range outcomes {
		if !errors.Is(outcome.Err, relayclient.ErrInvalidAlert) {
			t.Errorf("no envelope: %v", outcome.Err)
		}
	}
	client.Close()
	if outcomes := client.Post(t.Context(), sealed, nil); !errors.Is(outcomes[0].Err, relayclient.ErrClosed) {
		t.Errorf("closed: %v", outcomes)
	}
	if outcomes := (*relayclient.Client)(nil).Post(t.Context(), sealed, nil); outcomes[0].Err == nil {
		t.Error("no client: no error")
	}
}

// What the relay has not seen is told from what it may have seen.
func TestUnsent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	nobody, _ := newClientAt(t, "http://"+listener.Addr().String(), relayclient.WithPatience(time.Millisecond))
	relay := relaytest.NewRelay()
	defer relay.Close()
	relay.Script(relaytest.Always, relaytest.Answer{Drop: true})
	dropping, _ := newClientAt(t, relay.URL)
	refusing, _ := newClientAt(t, relay.URL)
	taken := errors.New("somebody else posts it")
	for name, tt := range map[string]struct {
		client *relayclient.Client
		begin  func(int) error
		calls  int
		unsent bool
	}{
		"nobody listens":    {client: nobody, unsent: true},
		"drops the POST":    {client: dropping, calls: 1},
		"begin has refused": {client: refusing, begin: func(int) error { return taken }, calls: 1, unsent: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, devices := phones(1)
			sealed, err := tt.client.Seal(relayclient.Push{Alert: failure(), Salt: salt}, devices)
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			before := relay.Stats().Requests
			err = tt.client.Post(t.Context(), sealed, func(i int) error {
				calls++
				if tt.begin != nil {
					return tt.begin(i)
				}
				return nil
			})[0].Err
			lost, ok := errors.AsType[*relayclient.TransportError](err)
			unsent := ok && lost.Unsent || errors.Is(err, relayclient.ErrNotAttempted)
			if err == nil || unsent != tt.unsent || calls != tt.calls {
				t.Errorf("%v: unsent %v, %d calls of begin", err, unsent, calls)
			}
			if tt.begin != nil && (!errors.Is(err, taken) || relay.Stats().Requests != before) {
				t.Errorf("%v, %d requests", err, relay.Stats().Requests-before)
			}
		})
	}
}

// Seal makes what every relay takes, and a POST of it is never repeated.
func TestSealedIsNotFittedAgain(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay, relayclient.WithMaxCiphertext(3800))
	_, devices := phones(1)
	alert := failure()
	alert.LogTail = strings.Split(strings.Repeat(strings.Repeat("x", 99)+"\n", 40), "\n")[:40]
	sealed, err := client.Seal(relayclient.Push{Alert: alert, Salt: salt}, devices)
	if err != nil {
		t.Fatal(err)
	}
	var envelope struct{ Ciphertext string }
	if err := json.Unmarshal(sealed[0].Envelope, &envelope); err != nil || len(envelope.Ciphertext) > 3000 || len(envelope.Ciphertext) < 2000 {
		t.Errorf("%d characters, %v", len(envelope.Ciphertext), err)
	}
	relay.Script(1, relaytest.Answer{Status: 400, Body: `{"error":"ciphertext is too long"}`})
	if outcome := client.Post(t.Context(), sealed, nil)[0]; outcome.Status != 400 || relay.Stats().Requests != 1 {
		t.Errorf("%+v after %d requests", outcome, relay.Stats().Requests)
	}
}

func TestSealedPrintsNoToken(t *testing.T) {
	_, devices := phones(1)
	client, _ := newClientAt(t, "https://relay.example")
	sealed, err := client.Seal(relayclient.Push{Alert: failure(), Salt: salt}, []pairing.Device{devices[0]})
	if err != nil {
		t.Fatal(err)
	}
	encoded, _ := json.Marshal(sealed)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", sealed, sealed, sealed, &sealed[0]), string(encoded)} {
		if strings.Contains(text, devices[0].PushToken.Reveal()) || strings.Contains(text, "ciphertext") {
			t.Errorf("prints %s", text)
		}
	}
}
