package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// A phone registers through its bridge, and is woken once however much the agent says.
func Example() {
	services := relaytest.NewBridgeService() // in place of a token service and a push relay
	defer services.Close()
	client, err := bridge.New(bridge.Config{ // or what bridge.LoadConfig("common.toml") returns
		URL:          services.RelayURL,
		TokenURL:     services.TokenURL,
		ClientID:     "bridge-home-office",
		ClientSecret: services.AddClient("bridge-home-office"),
	}, bridge.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	for _, message := range []string{
		`{"method":"bridge/registerPushToken","params":{"deviceToken":"a1b2c3d4","platform":"apns"}}`,
		`{"jsonrpc":"2.0","method":"session/prompt","id":1}`,
	} {
		handled, err := client.HandleMessage(ctx, []byte(message))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("kept from the agent:", handled)
	}
	for range 2 {
		result := client.Notify(ctx, bridge.Notification{Title: "Agent Name", Body: "New activity"})
		fmt.Println(result.Status, len(result.Devices))
	}
	// Output:
	// kept from the agent: true
	// kept from the agent: false
	// sent 1
	// debounced 0
}

// What became of a notification, phone by phone. It has been logged; a status page may want it.
func ExampleClient_Notify() {
	services := relaytest.NewBridgeService()
	defer services.Close()
	client, err := bridge.New(bridge.Config{
		URL:          services.RelayURL,
		TokenURL:     services.TokenURL,
		ClientID:     "bridge-home-office",
		ClientSecret: services.AddClient("bridge-home-office"),
	}, bridge.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, device := range []bridge.Device{
		{Token: secret.New("a1b2c3d4"), Platform: "apns", BundleID: "com.example.app"},
		{Token: secret.New("e5f6a7b8"), Platform: "fcm"},
	} {
		if err := client.Register(ctx, device); err != nil {
			log.Fatal(err)
		}
	}
	services.KillDevice("e5f6a7b8") // as if its app had been deleted

	result := client.Notify(ctx, bridge.Notification{Title: "Agent Name", Body: "New activity"})
	fmt.Println(result.Status)
	for _, device := range result.Devices {
		fmt.Printf("%s %s %q\n", device.Platform, device.Status, device.Reason)
	}
	// Output:
	// sent
	// ios sent ""
	// android removed "UNREGISTERED"
}

// A malformed message of the phone's is ours too; one to the agent that speaks of it is not.
func ExampleIsPushMessage() {
	for _, message := range []string{
		`{"method":"bridge/unregisterPushToken","params":{"deviceToken":"a1b2c3d4"}}`,
		`{"method":"bridge/registerPushToken"}`,
		`{"method":"session/prompt","params":{"text":"what does bridge/registerPushToken do?"}}`,
		`hello`,
	} {
		fmt.Println(bridge.IsPushMessage([]byte(message)))
	}
	// Output:
	// true
	// true
	// false
	// false
}

// What an agent says while no phone is connected arrives when one is.
func ExampleOutbox() {
	client, err := bridge.New(bridge.Config{}, bridge.WithLogger(slog.New(slog.DiscardHandler))) // push is not configured
	if err != nil {
		log.Fatal(err)
	}
	outbox, err := bridge.NewOutbox(client, bridge.Notification{Title: "Agent Name", Body: "New activity"})
	if err != nil {
		log.Fatal(err)
	}
	defer outbox.Close()

	ctx := context.Background()
	for _, line := range []string{"compiling", "testing", "done"} {
		if err := outbox.Send(ctx, []byte(line)); err != nil {
			log.Fatal(err)
		}
	}

	connection, hangUp := context.WithCancel(ctx)
	err = outbox.Attach(connection, func(_ context.Context, message []byte) error {
		fmt.Printf("to the phone: %s\n", message)
		if string(message) == "done" {
			hangUp()
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// to the phone: compiling
	// to the phone: testing
	// to the phone: done
	// context canceled
}

// The app learns from pushRelayUrl that push is configured.
func ExamplePairingResponse() {
	config := bridge.Config{
		URL:          "https://push.example",
		TokenURL:     "https://token.example",
		ClientID:     "bridge-home-office",
		ClientSecret: secret.New("hunter2"),
	}
	answer, err := json.MarshalIndent(bridge.PairingResponse{
		URL:             "wss://192.168.1.100:3001",
		Protocol:        "acp",
		Version:         "1.0.0",
		AuthToken:       secret.New("for the app's eyes"),
		CertFingerprint: "SHA256:...",
	}.WithPushRelay(config), "", "  ")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(answer))
	// Output:
	// {
	//   "url": "wss://192.168.1.100:3001",
	//   "protocol": "acp",
	//   "version": "1.0.0",
	//   "authToken": "for the app's eyes",
	//   "certFingerprint": "SHA256:...",
	//   "pushRelayUrl": "https://push.example"
	// }
}

// A misspelt key does not go unnoticed.
func ExampleLoadConfig() {
	_, err := bridge.LoadConfig("testdata/misspelt.toml")
	fmt.Println(err)
	// Output: bridge: testdata/misspelt.toml:7: unknown key "client-secret" in [push_relay]; the keys are url, token_url, client_id, client_secret
}
