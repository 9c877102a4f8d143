package payload_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/secret"
)

func TestFitVectors(t *testing.T) {
	for _, c := range loadFit(t).Cases {
		t.Run(c.Comment, func(t *testing.T) {
			alert := build(t, c.Alert)
			fitted, err := payload.Fit(alert, maxPlaintext)
			if c.Error != "" {
				if c.Error != "too large" {
					t.Fatalf("unknown kind of error %q", c.Error)
				}
				requireSizeError(t, err, maxPlaintext)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.Plaintext, string(fitted.Plaintext)); diff != "" {
				t.Fatalf("plaintext (-want +got):\n%s", diff)
			}
			if len(fitted.Plaintext) != c.Bytes || c.Bytes > maxPlaintext {
				t.Errorf("%d bytes, want %d", len(fitted.Plaintext), c.Bytes)
			}
			if id := alert.CollapseID(c.Salt); id != c.CollapseID {
				t.Errorf("collapse id %s, want %s", id, c.CollapseID)
			}

			parsed, err := payload.Parse(fitted.Plaintext)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(fitted.Alert, parsed); diff != "" {
				t.Errorf("parsed (-fitted +parsed):\n%s", diff)
			}
			if diff := cmp.Diff(build(t, json.RawMessage(c.Plaintext)), parsed); diff != "" {
				t.Errorf("parsed (-encoding/json +parsed):\n%s", diff)
			}
			if id := parsed.CollapseID(c.Salt); (id == c.CollapseID) != (parsed.RunID == alert.RunID) {
				t.Errorf("collapse id of the parsed alert %s, with run id %q", id, parsed.RunID)
			}
			again, err := parsed.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if string(again) != c.Plaintext {
				t.Errorf("encoded again:\n%s\nwant\n%s", again, c.Plaintext)
			}
		})
	}
}

// TestFitLiveVectors fits each alert to what every suite leaves of a ciphertext of each length. The alert has one collapse
// id, whatever it is fitted to.
func TestFitLiveVectors(t *testing.T) {
	vectors := loadVectors[struct {
		Cases []struct {
			Comment    string          `json:"comment"`
			Alert      json.RawMessage `json:"alert"`
			Salt       secret.Text     `json:"salt"`
			CollapseID string          `json:"collapse_id"`
			Fits       []struct {
				Suite         string `json:"suite"`
				MaxCiphertext int    `json:"max_ciphertext_chars"`
				MaxPlaintext  int    `json:"max_plaintext_bytes"`
				Plaintext     string `json:"plaintext"`
				Error         string `json:"error"`
			} `json:"fits"`
		} `json:"cases"`
	}](t, "fit_live.json")
	fits := 0
	for _, c := range vectors.Cases {
		t.Run(c.Comment, func(t *testing.T) {
			alert := build(t, c.Alert)
			parsed, err := payload.Parse(c.Alert)
			if err != nil {
				t.Fatal(err)
			}
			for name, id := range map[string]string{"built": alert.CollapseID(c.Salt), "parsed": parsed.CollapseID(c.Salt)} {
				if id != c.CollapseID {
					t.Errorf("collapse id of the alert %s is %s, want %s", name, id, c.CollapseID)
				}
			}
			for _, want := range c.Fits {
				fits++
				fitted, err := payload.Fit(alert, want.MaxPlaintext)
				again, againErr := payload.Fit(parsed, want.MaxPlaintext)
				if want.Error != "" {
					requireSizeError(t, err, want.MaxPlaintext)
					requireSizeError(t, againErr, want.MaxPlaintext)
					continue
				}
				if err != nil || againErr != nil {
					t.Fatal(err, againErr)
				}
				for _, got := range []payload.Fitted{fitted, again} {
					if diff := cmp.Diff(want.Plaintext, string(got.Plaintext)); diff != "" {
						t.Errorf("%s, %d characters (-want +got):\n%s", want.Suite, want.MaxCiphertext, diff)
					}
				}
				reread, err := payload.Parse([]byte(want.Plaintext))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(fitted.Alert, reread); diff != "" {
					t.Errorf("parsed (-fitted +parsed):\n%s", diff)
				}
			}
		})
	}
	if len(vectors.Cases) == 0 || fits < 4 {
		t.Errorf("fit_live.json has %d cases and %d fits", len(vectors.Cases), fits)
	}
}

// TestFitVectorsTrimmed checks the account of what was trimmed against the two alerts in the vector.
func TestFitVectorsTrimmed(t *testing.T) {
	var lines, shortened, dropped int
	for _, c := range loadFit(t).Cases {
		if c.Error != "" {
			continue
		}
		t.Run(c.Comment, func(t *testing.T) {
			before, after := build(t, c.Alert), build(t, json.RawMessage(c.Plaintext))
			want := payload.Trimmed{LogLines: len(before.LogTail) - len(after.LogTail)}
			for _, f := range []struct{ name, before, after string }{
				{"message", before.Message, after.Message},
				{"fail_reason", before.FailReason, after.FailReason},
				{"subject", before.Subject, after.Subject},
			} {
				if f.before != f.after {
					want.Shortened = append(want.Shortened, f.name)
				}
			}
			for _, f := range []struct {
				name    string
				dropped bool
			}{
				{"schedule", before.Schedule != after.Schedule},
				{"started_at", before.StartedAt != after.StartedAt},
				{"run_id", before.RunID != after.RunID},
			} {
				if f.dropped {
					want.Dropped = append(want.Dropped, f.name)
				}
			}
			fitted, err := payload.Fit(before, maxPlaintext)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, fitted.Trimmed); diff != "" {
				t.Errorf("trimmed (-want +got):\n%s", diff)
			}
			lines, shortened, dropped = lines+want.LogLines, shortened+len(want.Shortened), dropped+len(want.Dropped)
		})
	}
	if lines == 0 || shortened == 0 || dropped == 0 {
		t.Error("the vectors exercise less than all of the trimming")
	}
}

// TestUnfittedVectors encodes and parses the alerts as they are before fitting.
func TestUnfittedVectors(t *testing.T) {
	alerts := make(map[string]json.RawMessage)
	for _, c := range loadFit(t).Cases {
		alerts[c.Comment] = c.Alert
	}
	for _, c := range loadCollapse(t).Cases {
		alerts[c.CollapseID] = c.Alert
	}
	for name, raw := range alerts {
		t.Run(name, func(t *testing.T) {
			want := build(t, raw)
			if err := want.Validate(); err != nil {
				t.Error(err)
			}
			parsed, err := payload.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, parsed); diff != "" {
				t.Errorf("parsed (-encoding/json +parsed):\n%s", diff)
			}
			plaintext, err := want.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(referenceEncode(t, want), string(plaintext)); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCollapseIDVectors(t *testing.T) {
	vectors := loadCollapse(t)
	for _, c := range vectors.Cases {
		t.Run(c.CollapseID, func(t *testing.T) {
			alert := build(t, c.Alert)
			if id := alert.CollapseID(c.Salt); id != c.CollapseID {
				t.Errorf("got %s for %s", id, c.Alert)
			}
			fitted, err := payload.Fit(alert, maxPlaintext)
			if err != nil {
				t.Fatal(err)
			}
			if !fitted.Trimmed.IsZero() {
				t.Errorf("trimmed %+v from an alert that needs no fitting", fitted.Trimmed)
			}
			if id := fitted.Alert.CollapseID(c.Salt); id != c.CollapseID {
				t.Errorf("got %s after fitting", id)
			}
		})
	}
	for _, c := range vectors.InvalidUTF8 {
		t.Run(c.CollapseID, func(t *testing.T) {
			alert := payload.NewFailure("node-a", string(c.Name))
			alert.Kind = c.Kind
			fitted, err := payload.Fit(alert, maxPlaintext)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range []payload.Alert{alert, fitted.Alert} {
				if id := a.CollapseID(c.Salt); id != c.CollapseID {
					t.Errorf("got %s for the name %q", id, c.Name)
				}
			}
			parsed, err := payload.Parse(fitted.Plaintext)
			if err != nil {
				t.Fatal(err)
			}
			if want := string([]rune(string(c.Name))); parsed.Name != want { // U+FFFD for each such byte
				t.Errorf("the phone reads %q, want %q", parsed.Name, want)
			}
		})
	}
}

func TestLogTailVectors(t *testing.T) {
	vectors := loadVectors[struct {
		MaxLines int `json:"max_lines"`
		Cases    []struct {
			Text  string   `json:"text"`
			Lines []string `json:"lines"`
		} `json:"cases"`
	}](t, "log_tail.json")
	if len(vectors.Cases) == 0 || vectors.MaxLines != payload.MaxLogLines {
		t.Fatalf("log_tail.json has %d cases of %d lines", len(vectors.Cases), vectors.MaxLines)
	}
	for _, c := range vectors.Cases {
		lines := payload.LogTail(c.Text)
		if diff := cmp.Diff(append([]string{}, c.Lines...), append([]string{}, lines...)); diff != "" {
			t.Errorf("LogTail(%q) (-want +got):\n%s", c.Text, diff)
		}
		if lines == nil {
			continue
		}
		alert := payload.NewFailure("node-a", "job")
		alert.LogTail = lines
		fitted, err := payload.Fit(alert, 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := payload.Parse(fitted.Plaintext)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Lines, parsed.LogTail); diff != "" {
			t.Errorf("%q on the phone (-want +got):\n%s", c.Text, diff)
		}
	}
}
