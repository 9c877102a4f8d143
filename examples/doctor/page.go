package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// pagePhones sends a test alert to each phone, as POST /push/devices/{id}/test
// does.
func pagePhones(ctx context.Context, r *report, relayURL, path string) {
	r.begin("Test alerts")
	quiet := slog.New(slog.DiscardHandler) // the report says it
	client, err := relayclient.New(relayURL, relayclient.WithLogger(quiet), relayclient.WithPatience(3*time.Second))
	if err != nil {
		r.fail("Correct the relay's URL first.", "nobody was paged")
		return
	}
	defer client.Close()
	store, err := pairing.OpenFile(path)
	if err != nil {
		r.fail("Correct -devices.", "%v", err)
		return
	}
	snapshot, err := store.Load(ctx)
	devices := usable(snapshot)
	if err != nil || len(devices) == 0 {
		r.fail("See the paired phones above.", "nobody was paged")
		return
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		r.fail("Give the machine a host name.", "the machine does not know its name")
		return
	}
	for i, outcome := range client.Send(ctx, relayclient.Push{Alert: payload.NewTest(host)}, devices) {
		reportPage(r, fmt.Sprintf("phone %q (%q)", devices[i].ID, devices[i].Name), outcome)
	}
}

// reportPage says what became of one phone's test alert, by the relay's own word.
func reportPage(r *report, phone string, outcome relayclient.Outcome) {
	switch {
	case outcome.Err != nil:
		r.fail(outcomeAdvice(outcome.Err), "%s: %v", phone, outcome.Err)
	case outcome.Relay == relayclient.Forwarded:
		r.ok("%s: the relay forwarded a test alert (%d); it should be on the phone in seconds", phone, outcome.Status)
	case outcome.Relay == relayclient.Digested:
		r.warn("The phone has used up what the relay forwards to it in a month: look for a job that pages too much, or ask the relay's operator.",
			"%s: the relay accepted a test alert (%d) and says %s: the phone does not ring", phone, outcome.Status, outcome.Relay)
	case outcome.Relay != "":
		r.warn("Test alerts are all different, and this relay takes them for copies: ask its operator.",
			"%s: the relay accepted a test alert (%d) and says %s: the phone does not ring", phone, outcome.Status, outcome.Relay)
	default:
		r.warn("Look at the phone. A relay says forwarded, coalesced, suppressed or digested; is this one?",
			"%s: the server accepted a test alert (%d) and does not say what becomes of it", phone, outcome.Status)
	}
}

func outcomeAdvice(err error) string {
	if errors.Is(err, relayclient.ErrDeviceGone) {
		return "The app was deleted or its push token replaced: pair the phone again, or revoke it."
	}
	if errors.Is(err, relayclient.ErrUnusableDevice) {
		return "Pair the phone again."
	}
	if refused, ok := errors.AsType[*relayclient.StatusError](err); ok {
		if toDo := statusAdvice(reply{status: refused.StatusCode}, "the relay's URL"); toDo != "" {
			return toDo
		}
		return "The relay refuses this phone's alerts, and its text says why: pair the phone again if it is the token."
	}
	return networkAdvice(err)
}

// pageBridge wakes the phones that are registered with the bridge's relay.
func pageBridge(ctx context.Context, r *report, client *bridge.Client) {
	result := client.Notify(ctx, bridge.Notification{Title: "sealpush doctor", Body: "Test notification"})
	if result.Status == bridge.StatusSent && len(result.Devices) == 0 {
		r.warn("Open the app while it is connected to the bridge, and let it show notifications: it registers then.",
			"no phone is registered with the relay, so nobody was woken")
	}
	for _, d := range result.Devices {
		switch d.Status {
		case bridge.DeviceSent:
			r.ok("notification sent to a phone (%s)", d.Platform)
		case bridge.DeviceRemoved:
			r.warn("Open the app again if the phone is still yours: it registers anew.",
				"the relay forgot a phone (%s) whose token is dead: %q", d.Platform, d.Reason)
		default:
			r.fail("The push service refuses this phone, and its reason says why: ask the relay's operator.",
				"a phone (%s) was not reached: %q", d.Platform, d.Reason)
		}
	}
	if result.Err != nil {
		r.fail(bridgeAdvice(result.Err), "%v", result.Err)
	}
}
