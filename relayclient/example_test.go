package relayclient_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// Page a phone, and see what it reads.
func ExampleClient_Send() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()

	client, err := relayclient.New(relay.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	alert := payload.NewFailure("node-a", "nightly-backup")
	alert.LogTail = payload.LogTail("rsync: connection reset\ngave up\n")
	push := relayclient.Push{Alert: alert, Salt: secret.New("4cf956b7261a9bc5628f2ffa5544190c")} // payload.NewSalt(), once
	devices := []pairing.Device{{ID: "e692bcf665132031", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}}
	for _, outcome := range client.Send(context.Background(), push, devices) {
		fmt.Println(outcome.DeviceID, outcome.Relay, outcome.Err)
	}

	received, err := phone.Received(relay)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(received[0].Alert.Name, "on", received[0].Alert.Host, received[0].Alert.LogTail)
	// Output:
	// e692bcf665132031 forwarded <nil>
	// nightly-backup on node-a [rsync: connection reset gave up]
}

// What an outcome's error says of a device.
func ExampleOutcome() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	relay.Script(1, relaytest.Answer{Status: 410, Body: `{"v":1,"error":"unregistered"}`})
	phone := relaytest.NewPhone()
	client, err := relayclient.New(relay.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	push := relayclient.Push{Alert: payload.NewTest("node-a")}
	devices := []pairing.Device{{ID: "e692bcf665132031", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}}
	for _, outcome := range client.Send(context.Background(), push, devices) {
		var answer *relayclient.StatusError
		switch {
		case outcome.Err == nil:
			fmt.Println("accepted")
		case errors.Is(outcome.Err, relayclient.ErrDeviceGone):
			fmt.Println("pair this phone again:", outcome.DeviceID)
		case errors.As(outcome.Err, &answer):
			fmt.Println("the relay answered", answer.StatusCode)
		default:
			fmt.Println("no answer:", outcome.Err)
		}
	}
	// Output: pair this phone again: e692bcf665132031
}

// A daemon embeds a Notifier, and reports whatever happens through it.
func ExampleNotifier() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	dir, err := os.MkdirTemp("", "sealpush")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	// Once, when the daemon starts.
	store, err := pairing.OpenFile(filepath.Join(dir, "devices.json"))
	if err != nil {
		fmt.Println(err)
		return
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := relayclient.New(relay.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	notifier, err := relayclient.NewNotifier(client, registry, "node-a")
	if err != nil {
		fmt.Println(err)
		return
	}

	// When somebody pairs a phone (see pairing.Handler).
	_, _, err = registry.Pair(context.Background(), pairing.Request{
		Name: "parker's phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken()),
	}, "parker")
	if err != nil {
		fmt.Println(err)
		return
	}

	// Whenever a job fails.
	if _, err := notifier.Notify(context.Background(), payload.NewFailure("", "nightly-backup")); err != nil {
		fmt.Println("nobody was paged:", err)
		return
	}

	received, err := phone.Received(relay)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(received[0].Alert.Name, "on", received[0].Alert.Host)
	// Output: nightly-backup on node-a
}
