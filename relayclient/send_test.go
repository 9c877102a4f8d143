package relayclient_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

func TestPhoneReadsWhatTheDaemonSent(t *testing.T) {
	for _, opts := range [][]relaytest.RelayOption{nil, {relaytest.WithTLS()}} {
		relay := relaytest.NewRelay(opts...)
		defer relay.Close()
		phones, devices := phones(2)
		client, log := newClient(t, relay)

		alert := failure()
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices), devices)
		for _, phone := range phones {
			messages := relay.Inbox(phone.PushToken())
			if len(messages) != 1 {
				t.Fatalf("%d messages for a phone", len(messages))
			}
			got, err := phone.Open(messages[0])
			if err != nil {
				t.Fatal(err)
			}
			if got.Alert.Name != alert.Name || got.Alert.LogTail[1] != "gave up" || *got.Alert.ExitCode != 3 || got.Stale {
				t.Errorf("the phone reads %+v", got)
			}
		}
		if lines := log.lines(); len(lines) != 0 {
			t.Errorf("success was logged: %q", lines)
		}
	}
}

func TestEnvelope(t *testing.T) {
	sla := payload.NewSLA("node-a", "etl", payload.CheckLateAfter, 0, time.Minute)
	tests := []struct {
		name string
		push relayclient.Push
		want func(relay.Envelope) bool
	}{
		{"derived collapse id", relayclient.Push{Alert: failure(), Salt: salt}, func(e relay.Envelope) bool {
			return e.CollapseID == failure().CollapseID(salt) && e.Priority == "time-sensitive" && !e.Event
		}},
		{"collapse id of the caller's", relayclient.Push{Alert: failure(), CollapseID: strings.Repeat("ab", 16)}, func(e relay.Envelope) bool {
			return e.CollapseID == strings.Repeat("ab", 16)
		}},
		{"passive", relayclient.Push{Alert: sla, Salt: salt, Priority: relayclient.Passive}, func(e relay.Envelope) bool {
			return e.Priority == "passive" && !e.Event
		}},
		{"event", relayclient.Push{Alert: payload.NewEvent("node-a", "node-a", payload.EventQuorumLoss), Salt: salt}, func(e relay.Envelope) bool {
			return e.Event
		}},
	}
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, devices := phones(1)
			devices[0].PushToken = secret.New(strings.ToUpper(devices[0].PushToken.Reveal())) // it goes out as the phone registered it
			wantAllDelivered(t, client.Send(t.Context(), tt.push, devices), devices)
			requests := relay.Requests()
			last := requests[len(requests)-1]
			if last.Header.Get("Content-Type") != "application/json" {
				t.Errorf("Content-Type %q", last.Header.Get("Content-Type"))
			}
			envelope, err := last.Envelope()
			if err != nil {
				t.Fatal(err)
			}
			if !envelope.Device.Equal(devices[0].PushToken) {
				t.Error("the device token is not the one that the phone registered")
			}
			if !tt.want(envelope) {
				t.Errorf("collapse id %s, priority %s, event %v", envelope.CollapseID, envelope.Priority, envelope.Event)
			}
		})
	}
}

func TestCollapseIDIsDerivedBeforeFitting(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, log := newClient(t, relay)
	_, devices := phones(1)
	alert := failure()
	alert.RunID = strings.Repeat("r", 3000)
	fitted, err := payload.Fit(alert, seal.X25519.MaxPlaintext(3000))
	if err != nil {
		t.Fatal(err)
	}
	wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices), devices)
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "alert shortened to fit") || !strings.Contains(lines[0], "run_id") {
		t.Errorf("log %q, want what was dropped", lines)
	}
	envelope, err := relay.Requests()[0].Envelope()
	if err != nil {
		t.Fatal(err)
	}
	if envelope.CollapseID != alert.CollapseID(salt) || envelope.CollapseID == fitted.Alert.CollapseID(salt) {
		t.Error("the id lacks a run id that did not fit")
	}
}

func TestTestAlertsAreNeverCoalesced(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	_, devices := phones(1)
	seen := map[string]bool{}
	for range 3 {
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: payload.NewTest("node-a"), Salt: salt}, devices), devices)
	}
	for _, request := range relay.Requests() {
		envelope, err := request.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		seen[envelope.CollapseID] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d collapse ids for 3 test alerts", len(seen))
	}
}

func TestAlertsThatCannotBeSent(t *testing.T) {
	huge := failure()
	huge.Name = strings.Repeat("n", 5000)
	tests := []struct {
		name string
		push relayclient.Push
		want func(error) bool
	}{
		{"untrimmable", relayclient.Push{Alert: huge, Salt: salt}, func(err error) bool {
			var size *payload.SizeError
			return errors.As(err, &size)
		}},
		{"zero alert", relayclient.Push{Salt: salt}, func(err error) bool {
			var field *payload.FieldError
			return errors.As(err, &field)
		}},
		{"no salt", relayclient.Push{Alert: failure()}, func(err error) bool { return strings.Contains(err.Error(), "NewSalt") }},
		{"bad collapse id", relayclient.Push{Alert: failure(), CollapseID: strings.Repeat("AB", 16)}, func(err error) bool {
			return strings.Contains(err.Error(), "CollapseID")
		}},
		{"bad priority", relayclient.Push{Alert: failure(), Salt: salt, Priority: 7}, func(err error) bool {
			return strings.Contains(err.Error(), "Priority(7)")
		}},
	}
	relay := relaytest.NewRelay()
	defer relay.Close()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, log := newClient(t, relay)
			_, devices := phones(3)
			outcomes := client.Send(t.Context(), tt.push, devices)
			for i, outcome := range outcomes {
				if outcome.DeviceID != devices[i].ID || outcome.Status != 0 || outcome.Err == nil || !tt.want(outcome.Err) {
					t.Errorf("outcome %d: %+v", i, outcome)
				}
			}
			if len(outcomes) != 3 || len(log.lines()) != 1 {
				t.Errorf("%d outcomes, log %q", len(outcomes), log.lines())
			}
		})
	}
	if n := relay.Stats().Requests; n != 0 {
		t.Errorf("the relay saw %d requests", n)
	}
}

func TestOneBadDeviceCostsOnlyItself(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, log := newClient(t, relay)
	_, devices := phones(4)
	devices[0].PushToken = secret.Text{}
	devices[1].PublicKey = seal.PublicKey{}
	devices[2].PushToken = secret.New("\xff\xfe")
	outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	for i := range 3 {
		if !errors.Is(outcomes[i].Err, relayclient.ErrUnusableDevice) || outcomes[i].DeviceID != devices[i].ID {
			t.Errorf("outcome %d: %+v", i, outcomes[i])
		}
	}
	if !errors.Is(outcomes[1].Err, seal.ErrInvalidKey) {
		t.Errorf("an unusable key: %v", outcomes[1].Err)
	}
	wantAllDelivered(t, outcomes[3:], devices[3:])
	if len(log.lines()) != 3 || relay.Stats().Requests != 1 {
		t.Errorf("%d requests, log %q", relay.Stats().Requests, log.lines())
	}
	for i, line := range log.lines() {
		if !strings.Contains(strings.Join(log.lines(), "\n"), devices[i].ID) {
			t.Errorf("device %s is not named: %s", devices[i].ID, line)
		}
	}
}
