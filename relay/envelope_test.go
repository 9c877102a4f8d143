package relay

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/secret"
)

// boxes are the deployed daemon's sealed boxes.
func boxes(tb testing.TB) []string {
	tb.Helper()
	raw, err := os.ReadFile("../testdata/vectors/sealed_box.json")
	if err != nil {
		tb.Fatal(err)
	}
	var vectors struct {
		Open []struct {
			Ciphertext string `json:"ciphertext"`
		} `json:"open"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		tb.Fatal(err)
	}
	if len(vectors.Open) == 0 {
		tb.Fatal("no sealed boxes in the vectors")
	}
	var boxes []string
	for _, v := range vectors.Open {
		boxes = append(boxes, v.Ciphertext)
	}
	return boxes
}

// same compares envelopes, whose device tokens == would not.
func same(a, b Envelope) bool {
	return a.Device.Equal(b.Device) && a.Ciphertext == b.Ciphertext && a.CollapseID == b.CollapseID &&
		a.Priority == b.Priority && a.Event == b.Event
}

// hexDevice is a push service's idea of a device token.
func hexDevice(token string) (string, error) {
	if len(token) < 16 || len(token) > 512 || strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return "", errors.New("is not hex")
	}
	return strings.ToLower(token), nil
}

// wire writes an envelope as a daemon does.
func wire(tb testing.TB, e Envelope) []byte {
	tb.Helper()
	body, err := json.Marshal(map[string]any{
		"v": 1, "device": e.Device.Reveal(), "ciphertext": e.Ciphertext,
		"collapseId": e.CollapseID, "priority": e.Priority, "event": e.Event,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func TestEnvelopeTakesTheDeployedBoxes(t *testing.T) {
	for _, box := range boxes(t) {
		want := Envelope{secret.New("8f3a1b5577990024"), box, strings.Repeat("0", 32), Passive, true}
		got, err := ParseEnvelope(wire(t, want))
		if len(box) > maxCiphertext {
			if err == nil {
				t.Errorf("a box of %d characters was taken", len(box))
			}
			continue
		}
		if err != nil || !same(got, want) {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	for i, box := range boxes(f) {
		e := Envelope{secret.New("8f3a1b5577990024"), box, strings.Repeat("c", 32), TimeSensitive, i%2 == 0}
		f.Add(wire(f, e))
	}
	f.Add([]byte(`{"v":1,"v":1}`))
	f.Add([]byte(`{"v":1,"device":"8F3A1B5577990024","Device":"x"}`))
	f.Add([]byte(`[]`))
	fields := []string{"body", "v", "device", "ciphertext", "collapseId", "priority", "event"}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, name, err := parseEnvelope(body, hexDevice)
		if err != nil {
			if !same(e, Envelope{}) || name != "" {
				t.Error("an error comes with half an envelope")
			}
			if errors.Is(err, errOversize) != (len(body) > maxBody) {
				t.Errorf("%d bytes: %v", len(body), err)
			}
			var wrong *fieldError
			if !errors.Is(err, errOversize) && (!errors.As(err, &wrong) || !slices.Contains(fields, wrong.field)) {
				t.Errorf("the error names no field: %v", err)
			}
			return
		}

		// Taken: every member is within the protocol's bounds, by other means
		// than the reader's own.
		if len(body) > 8192 || !json.Valid(body) {
			t.Error("the body is out of bounds")
		}
		if n := len(name); n < 16 || n > 512 || strings.Trim(name, "0123456789abcdef") != "" || name != strings.ToLower(e.Device.Reveal()) {
			t.Errorf("device of %d digits", n)
		}
		if n := len(e.CollapseID); n != 32 || strings.Trim(e.CollapseID, "0123456789abcdef") != "" {
			t.Errorf("collapse id %q", e.CollapseID)
		}
		raw, err := base64.StdEncoding.DecodeString(e.Ciphertext)
		if err != nil || len(raw) < 48 || base64.StdEncoding.EncodeToString(raw) != e.Ciphertext || len(e.Ciphertext) > 3000 {
			t.Errorf("ciphertext of %d characters: %v", len(e.Ciphertext), err)
		}
		if e.Priority != "time-sensitive" && e.Priority != "passive" {
			t.Errorf("priority %q", e.Priority)
		}
		// What encoding/json makes of it agrees, and so does a second reading.
		var members map[string]any
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatal(err)
		}
		if members["v"] != 1.0 || members["device"] != e.Device.Reveal() || members["ciphertext"] != e.Ciphertext ||
			members["collapseId"] != e.CollapseID || members["priority"] != e.Priority || members["event"] != e.Event {
			t.Errorf("read %v of %v", e, members)
		}
		again, _, err := parseEnvelope(wire(t, e), hexDevice)
		if err != nil || !same(again, e) {
			t.Errorf("re-encoded, it reads %v, %v", again, err)
		}
	})
}
