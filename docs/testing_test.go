package docs_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func TestDaemonsTest(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()

	client, err := relayclient.New(relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	device := pairing.Device{ID: "phone-1", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}
	push := relayclient.Push{Alert: payload.NewFailure("node-a", "backup"), Salt: payload.NewSalt()}
	client.Send(t.Context(), push, []pairing.Device{device})

	received, err := phone.Received(relay)
	if err != nil || len(received) != 1 || received[0].Alert.Name != "backup" {
		t.Errorf("the phone received %v, %v", received, err)
	}
}

func TestMisbehaviour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory(), relaytest.WithoutPolicy())
		defer relay.Close()
		phone := relaytest.NewPhone()
		relay.Script(1, relaytest.Answer{Status: 429, Header: http.Header{"Retry-After": {"30"}}})
		relay.ScriptDevice(phone.PushToken(), relaytest.Always, relaytest.Answer{Status: 410})
		relay.Script(3, relaytest.Answer{Drop: true})         // break the connection
		relay.Script(1, relaytest.Answer{Delay: time.Minute}) // then answer as usual

		client, err := relayclient.New(relay.URL, relayclient.WithHTTPClient(relay.Client()), relayclient.WithTimeout(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		send := func(phone *relaytest.Phone) int {
			device := pairing.Device{ID: "phone", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}
			push := relayclient.Push{Alert: payload.NewTest("node-a")}
			return client.Send(t.Context(), push, []pairing.Device{device})[0].Status
		}
		other := relaytest.NewPhone()
		for i, want := range []int{429, 0, 0, 0, 202, 202} {
			if got := send(other); got != want {
				t.Errorf("answer %d is %d, want %d", i, got, want)
			}
		}
		if got := send(phone); got != 410 {
			t.Errorf("the scripted device: %d", got)
		}
	})
}

func TestMinutesThatTakeNoTime(t *testing.T) {
	phone := relaytest.NewPhone()
	devices := []pairing.Device{{ID: "phone-1", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}}
	push := relayclient.Push{Alert: payload.NewTest("node-a")}

	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		relay.Script(1, relaytest.Answer{Delay: time.Hour})
		client, err := relayclient.New(relay.URL, relayclient.WithHTTPClient(relay.Client()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		start := time.Now()
		outcomes := client.Send(t.Context(), push, devices)
		if took := time.Since(start); took != relayclient.DefaultTimeout || outcomes[0].Err == nil {
			t.Errorf("a silent relay took %v: %v", took, outcomes[0].Err)
		}
	})
}

func TestBridgesTest(t *testing.T) {
	service := relaytest.NewBridgeService()
	defer service.Close()
	client, err := bridge.New(bridge.Config{
		URL:          service.RelayURL,
		TokenURL:     service.TokenURL,
		ClientID:     "bridge-home-office",
		ClientSecret: service.AddClient("bridge-home-office"),
	}, bridge.WithHTTPClient(service.Client()))
	if err != nil {
		t.Fatal(err)
	}
	device := bridge.Device{Token: secret.New("8f3a1bc2d4e5f607"), Platform: "ios"}
	if err := client.Register(t.Context(), device); err != nil {
		t.Fatal(err)
	}
	client.Notify(t.Context(), bridge.Notification{Title: "Agent Name", Body: "New activity"})
	if pushes := service.Pushes("bridge-home-office"); len(pushes) != 1 {
		t.Errorf("the relay saw %v", pushes)
	}
}
