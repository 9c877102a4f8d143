package payload_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
)

// requireFit fits a and holds the result to the reference and to everything that Fit promises.
func requireFit(t *testing.T, a payload.Alert, limit int) payload.Fitted {
	t.Helper()
	before := a
	before.LogTail = slices.Clone(a.LogTail)
	fitted, err := payload.Fit(a, limit)
	if diff := cmp.Diff(before, a); diff != "" {
		t.Fatalf("Fit modified its argument (-before +after):\n%s", diff)
	}
	want, ok := referenceFit(t, a, limit)
	if !ok {
		size, isSize := errors.AsType[*payload.SizeError](err)
		if !isSize {
			t.Fatalf("error %v, want a *SizeError", err)
		}
		if diff := cmp.Diff(payload.SizeError{Size: len(referenceEncode(t, want)), Limit: limit}, *size); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		return payload.Fitted{}
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(referenceEncode(t, want), string(fitted.Plaintext)); diff != "" {
		t.Fatalf("plaintext (-want +got):\n%s", diff)
	}
	if size := len(fitted.Plaintext); size > limit || size != cap(fitted.Plaintext) {
		t.Fatalf("%d bytes in a buffer of %d, limit %d", size, cap(fitted.Plaintext), limit)
	}
	if !utf8.Valid(fitted.Plaintext) {
		t.Fatal("the plaintext is not valid UTF-8")
	}
	if changed := !cmp.Equal(fitted.Alert, a, cmp.Comparer(sameLines)); changed == fitted.Trimmed.IsZero() {
		t.Fatalf("alert changed: %t, but trimmed %+v", changed, fitted.Trimmed)
	}

	again, err := payload.Fit(fitted.Alert, limit)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Trimmed.IsZero() || string(again.Plaintext) != string(fitted.Plaintext) {
		t.Fatalf("fitting twice gives\n%s\nafter\n%s", again.Plaintext, fitted.Plaintext)
	}
	if len(fitted.Plaintext) <= 64<<10 {
		parsed, err := payload.Parse(fitted.Plaintext)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := parsed.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if string(encoded) != string(fitted.Plaintext) {
			t.Fatalf("encoded again\n%s\nafter\n%s", encoded, fitted.Plaintext)
		}
	}
	return fitted
}

func sameLines(a, b []string) bool { return slices.Equal(a, b) }

// TestFitEveryLimit fits one alert to every limit from nothing to all of it, for each kind of text.
func TestFitEveryLimit(t *testing.T) {
	for name, text := range map[string]string{
		"ASCII":         "x",
		"two bytes":     "é",
		"emoji":         "🚀",
		"family":        "👩‍👩‍👧‍👦",
		"escapes":       "\x00\n\"\\",
		"invalid UTF-8": "a\xf0\x9f\x9a\xff",
		"mixed":         "aé日🚀\x1b\u2028\xc3",
	} {
		repeat := func(characters int) string {
			return strings.Repeat(text, 1+characters/utf8.RuneCountInString(text))
		}
		t.Run(name, func(t *testing.T) {
			failure := payload.NewFailure("node-a", "job"+text)
			failure.RunID, failure.Schedule, failure.StartedAt = "run-"+text, "* * * * *", failure.Time
			failure.FailReason = repeat(150)
			failure.LogTail = []string{repeat(9), "", text, repeat(20), "last"}
			event := payload.NewEvent("node-a", "dag", payload.EventDAGFailure)
			event.RunID, event.Schedule, event.StartedAt = "run-"+text, "* * * * *", event.Time
			event.Message, event.FailReason, event.Subject = repeat(260), repeat(130), repeat(66)
			for _, alert := range []payload.Alert{failure, event} {
				whole, err := alert.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				fits := 0
				for limit := -1; limit <= len(whole)+1; limit += 1 + limit/200 {
					if requireFit(t, alert, limit).Plaintext != nil {
						fits++
					}
				}
				requireFit(t, alert, len(whole)-1)
				if fitted := requireFit(t, alert, len(whole)); !fitted.Trimmed.IsZero() {
					t.Errorf("trimmed %+v from an alert that fits", fitted.Trimmed)
				}
				if fits == 0 {
					t.Error("no limit was large enough")
				}
			}
		})
	}
}

// TestFitDropsNoLineTooMany puts back one of the lines that were dropped: it must not fit.
func TestFitDropsNoLineTooMany(t *testing.T) {
	alert := longFailure()
	fitted := requireFit(t, alert, maxPlaintext)
	dropped := fitted.Trimmed.LogLines
	if dropped == 0 || dropped+len(fitted.Alert.LogTail) != len(alert.LogTail) {
		t.Fatalf("dropped %d lines, kept %d of %d", dropped, len(fitted.Alert.LogTail), len(alert.LogTail))
	}
	alert.LogTail = alert.LogTail[dropped-1:]
	plaintext, err := alert.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if len(plaintext) <= maxPlaintext {
		t.Errorf("with one line more it would take %d bytes", len(plaintext))
	}
}

// TestFitLeavesShortTextsAlone has nothing to trim but the run id, and must say so.
func TestFitLeavesShortTextsAlone(t *testing.T) {
	alert := payload.NewEvent("node-a", "dag", payload.EventDAGFailure)
	short := strings.Repeat("🚀", 64)
	alert.Message, alert.FailReason, alert.Subject = short, short, short
	alert.RunID = strings.Repeat("r", 2000)
	fitted := requireFit(t, alert, maxPlaintext)
	if diff := cmp.Diff(payload.Trimmed{Dropped: []string{"run_id"}}, fitted.Trimmed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFitSharesNoRoomWithItsArgument(t *testing.T) {
	alert := payload.NewFailure("node-a", "job")
	room := []string{"first", "second", "third"}
	alert.LogTail = room[:2]
	fitted, err := payload.Fit(alert, maxPlaintext)
	if err != nil {
		t.Fatal(err)
	}
	_ = append(fitted.Alert.LogTail, "appended")
	if room[2] != "third" {
		t.Error("appending to the fitted lines wrote into the caller's slice")
	}
}

func TestFitHuge(t *testing.T) {
	huge := strings.Repeat("🚀\x00\xff\u2028x", 10<<20/10)
	event := payload.NewEvent("node-a", "dag", payload.EventDAGFailure)
	event.Message = huge
	failure := payload.NewFailure("node-a", "job")
	failure.FailReason = huge
	failure.LogTail = slices.Repeat([]string{huge}, payload.MaxLogLines)
	failure.LogTail[payload.MaxLogLines-1] = "kept"
	name := payload.NewFailure("node-a", huge)
	for _, c := range []struct {
		name  string
		alert payload.Alert
		fits  bool
	}{
		{"message", event, true},
		{"reason and lines", failure, true},
		{"name", name, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			fitted, err := payload.Fit(c.alert, maxPlaintext)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
				t.Errorf("allocated %d bytes", allocated)
			}
			if !c.fits {
				requireSizeError(t, err, maxPlaintext)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(fitted.Plaintext) > maxPlaintext {
				t.Errorf("%d bytes", len(fitted.Plaintext))
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	alert, salt := longFailure(), payload.NewSalt()
	output := strings.Repeat("pg_dump: error\n", 1000)
	for _, c := range []struct {
		name string
		most float64
		f    func()
	}{
		{"MarshalJSON", 1, func() { _, _ = alert.MarshalJSON() }},
		{"Fit", 1, func() { _, _ = payload.Fit(alert, maxPlaintext) }},
		{"CollapseID", 1, func() { alert.CollapseID(salt) }},
		{"LogTail", 1, func() { payload.LogTail(output) }},
		{"Validate", 0, func() { _ = alert.Validate() }},
	} {
		if got := testing.AllocsPerRun(100, c.f); got > c.most {
			t.Errorf("%s allocates %v times, want at most %v", c.name, got, c.most)
		}
	}
}

// A caller who forgot LogTail must not lose the page over it.
func TestFitTakesMoreLinesThanAreSent(t *testing.T) {
	alert := payload.NewFailure("h", "n")
	alert.LogTail = slices.Repeat([]string{"old"}, 461)
	alert.LogTail = append(alert.LogTail, slices.Repeat([]string{"new"}, payload.MaxLogLines)...)
	requireFieldError(t, alert.Validate(), "log_tail")
	fitted, err := payload.Fit(alert, 2202)
	if err != nil {
		t.Fatal(err)
	}
	if len(fitted.Alert.LogTail) != payload.MaxLogLines || slices.Contains(fitted.Alert.LogTail, "old") || fitted.Trimmed.LogLines != 461 {
		t.Errorf("%d lines, %d dropped", len(fitted.Alert.LogTail), fitted.Trimmed.LogLines)
	}
	if len(alert.LogTail) != 501 {
		t.Errorf("the caller's alert has %d lines", len(alert.LogTail))
	}
	if fitted, err = payload.Fit(alert, 400); err != nil || fitted.Trimmed.LogLines+len(fitted.Alert.LogTail) != 501 {
		t.Errorf("%v, %d dropped and %d left of 501", err, fitted.Trimmed.LogLines, len(fitted.Alert.LogTail))
	}
}
