package relay

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"regexp"
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
	return a.Device.Equal(b.Device) && a.Suite == b.Suite && a.Ciphertext == b.Ciphertext && a.CollapseID == b.CollapseID &&
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
		"v": 1, "device": e.Device.Reveal(), "suite": e.Suite, "ciphertext": e.Ciphertext,
		"collapseId": e.CollapseID, "priority": e.Priority, "event": e.Event,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func TestEnvelopeTakesTheDeployedBoxes(t *testing.T) {
	for _, box := range boxes(t) {
		want := Envelope{secret.New("8f3a1b5577990024"), "x25519", box, strings.Repeat("0", 32), Passive, true}
		got, err := ParseEnvelope(wire(t, want))
		if len(box) > 3800 || len(box) < 68 {
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
		e := Envelope{secret.New("8f3a1b5577990024"), "x25519", box, strings.Repeat("c", 32), TimeSensitive, i%2 == 0}
		f.Add(wire(f, e))
	}
	f.Add([]byte(`{"v":1,"v":1}`))
	f.Add([]byte(`{"v":1,"device":"8F3A1B5577990024","Device":"x"}`))
	f.Add([]byte("\xef\xbb\xbf" + `{"v":1.0,"suite":"xwing","device":"8F3A1B5577990024"}`))
	f.Add([]byte(`[]`))
	fields := []string{"body", "v", "device", "suite", "ciphertext", "collapseId", "priority", "event"}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, name, err := parseEnvelope(body, 3800, hexDevice)
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
		if len(body) > 8192 || !json.Valid(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))) {
			t.Error("the body is out of bounds")
		}
		if n := len(name); n < 16 || n > 512 || strings.Trim(name, "0123456789abcdef") != "" || name != strings.ToLower(e.Device.Reveal()) {
			t.Errorf("device of %d digits", n)
		}
		if n := len(e.CollapseID); n != 32 || strings.Trim(e.CollapseID, "0123456789abcdef") != "" {
			t.Errorf("collapse id %q", e.CollapseID)
		}
		if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,15}$`).MatchString(string(e.Suite)) {
			t.Errorf("suite %q", e.Suite)
		}
		shortest := 68
		if e.Suite == "xwing" {
			shortest = 1520
		}
		raw, err := base64.StdEncoding.DecodeString(e.Ciphertext)
		if n := len(e.Ciphertext); err != nil || n != base64.StdEncoding.EncodedLen(len(raw)) || n < shortest || n > 3800 {
			t.Errorf("ciphertext of %d characters: %v", len(e.Ciphertext), err)
		}
		if e.Priority != "time-sensitive" && e.Priority != "passive" {
			t.Errorf("priority %q", e.Priority)
		}
		// What encoding/json makes of it agrees, and so does a second reading.
		var members map[string]any
		if err := json.Unmarshal(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), &members); err != nil {
			t.Fatal(err)
		}
		if suite, named := members["suite"]; named && suite != string(e.Suite) || !named && e.Suite != "x25519" {
			t.Errorf("suite %q, %v", e.Suite, suite)
		}
		if members["v"] != 1.0 || members["device"] != e.Device.Reveal() || members["ciphertext"] != e.Ciphertext ||
			members["collapseId"] != e.CollapseID || members["priority"] != e.Priority || members["event"] != e.Event {
			t.Errorf("read %v of %v", e, members)
		}
		again, _, err := parseEnvelope(wire(t, e), 3800, hexDevice)
		if err != nil || !same(again, e) {
			t.Errorf("re-encoded, it reads %v, %v", again, err)
		}
	})
}
