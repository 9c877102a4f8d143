package relayclient_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// The deployed daemon's alerts, the whole way: fitted, sealed, posted, and
// opened by the phone to the exact bytes.
func TestFitVectorsReachThePhone(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "fit.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Cases []struct {
			Comment    string        `json:"comment"`
			Alert      payload.Alert `json:"alert"`
			Plaintext  string        `json:"plaintext"`
			Salt       secret.Text   `json:"salt"`
			CollapseID string        `json:"collapse_id"`
			Error      string        `json:"error"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Cases) == 0 {
		t.Fatal("fit.json holds no case")
	}
	for _, c := range vectors.Cases {
		t.Run(c.Comment, func(t *testing.T) {
			relay := relaytest.NewRelay(relaytest.InMemory())
			defer relay.Close()
			client, _ := newClient(t, relay)
			key := seal.GenerateKey()
			devices := []pairing.Device{deviceOf(relaytest.NewPhone(relaytest.WithPrivateKey(key)))}
			outcomes := client.Send(t.Context(), relayclient.Push{Alert: c.Alert, Salt: c.Salt}, devices)
			if c.Error != "" {
				var size *payload.SizeError
				if !errors.As(outcomes[0].Err, &size) || relay.Stats().Requests != 0 {
					t.Errorf("%v after %d requests", outcomes[0].Err, relay.Stats().Requests)
				}
				return
			}
			wantAllDelivered(t, outcomes, devices)
			envelope, err := relay.Requests()[0].Envelope()
			if err != nil {
				t.Fatal(err)
			}
			if n := len(envelope.Ciphertext); n > 3000 {
				t.Errorf("ciphertext of %d characters", n)
			}
			if plaintext, err := seal.Open(key, envelope.Ciphertext); err != nil || string(plaintext) != c.Plaintext {
				t.Errorf("the phone opens %q, %v; want %q", plaintext, err, c.Plaintext)
			}
			if c.Alert.Kind != payload.KindTest && envelope.CollapseID != c.CollapseID {
				t.Errorf("collapse id %s, want %s", envelope.CollapseID, c.CollapseID)
			}
			if envelope.Event != (c.Alert.Kind == payload.KindEvent) {
				t.Errorf("event %v on an alert of kind %s", envelope.Event, c.Alert.Kind)
			}
		})
	}
}
