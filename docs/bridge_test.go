package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// A bridge made of the guide's blocks: a phone registers, and is woken by what
// the agent says while no phone is connected.
func TestBridgeGuide(t *testing.T) {
	service := relaytest.NewBridgeService()
	defer service.Close()
	path := filepath.Join(t.TempDir(), "common.toml")
	config := fmt.Sprintf("[push_relay]\nurl = %q\ntoken_url = %q\nclient_id = %q\nclient_secret = %q\n",
		service.RelayURL, service.TokenURL, "bridge-home-office", service.AddClient("bridge-home-office").Reveal())
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := new(strings.Builder)
	messages := []string{
		`{"method":"bridge/registerPushToken","params":{"deviceToken":"8f3a1bc2d4e5f607","platform":"apns"}}`,
		`{"method":"session/prompt"}`,
	}
	if err := serve(t.Context(), path, "secret", messages, agent); err != nil {
		t.Fatal(err)
	}
	if agent.String() != messages[1] {
		t.Errorf("the agent read %q", agent)
	}
	if devices := service.Devices("bridge-home-office"); len(devices) != 1 {
		t.Errorf("registered: %v", devices)
	}
}

func serve(ctx context.Context, path, authToken string, messages []string, agent *strings.Builder) error {
	config, err := bridge.LoadConfig(path)
	if err != nil {
		return err // names file and line
	}
	client, err := bridge.New(config)
	if err != nil {
		return err
	}

	response := bridge.PairingResponse{
		URL:       "wss://192.168.1.100:3001",
		Protocol:  "acp",
		Version:   "1.0.0",
		AuthToken: secret.New(authToken),
	}.WithPushRelay(config)
	body, err := json.Marshal(response)
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), `"pushRelayUrl"`) {
		return fmt.Errorf("the app is not told of push: %s", body)
	}

	outbox, err := bridge.NewOutbox(client, bridge.Notification{Title: "Agent Name", Body: "New activity"})
	if err != nil {
		return err
	}
	defer outbox.Close()

	fromPhone := make(chan string, len(messages))
	for _, message := range messages {
		fromPhone <- message
	}
	close(fromPhone)
	forward(ctx, client, fromPhone, writerTo{agent})
	return outbox.Send(ctx, []byte("kept until a phone connects"))
}

type writerTo struct{ *strings.Builder }

func (w writerTo) Write(message []byte) { w.Builder.Write(message) }

func forward(ctx context.Context, client *bridge.Client, fromPhone <-chan string, agent writerTo) {
	for text := range fromPhone {
		message := []byte(text)
		if handled, err := client.HandleMessage(ctx, message); handled {
			if err != nil {
				slog.Warn("push registration failed", "error", err)
			}
			continue // never forwarded
		}
		agent.Write(message)
	}
}
