package payload_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/secret"
)

// FuzzFit compares Fit with the slow reference for alerts of every kind and for any limit.
func FuzzFit(f *testing.F) {
	seeds := 0
	for _, c := range loadFit(f).Cases {
		if len(c.Alert) > 4000 {
			continue // the reference is slow, and TestFitVectors has them all
		}
		seeds++
		a := build(f, c.Alert)
		f.Add(string(a.Kind), a.Name, a.RunID, a.Schedule, a.FailReason, a.Subject, a.Message, a.Leader,
			strings.Join(a.LogTail, "\n"), a.StartedAt.UnixNano(), uint16(maxPlaintext))
	}
	if seeds == 0 {
		f.Fatal("no vector is small enough to be a seed")
	}
	f.Add("event", "\xf0\x9f", "\x00", "\u2028", "\xff", "é", "🚀", "\"", "", int64(999), uint16(190))
	f.Fuzz(func(t *testing.T, kind, name, runID, schedule, failReason, subject, message, extra, tail string, started int64, bound uint16) {
		limit := int(bound % 4096)
		var a payload.Alert
		switch payload.Kind(kind) {
		case payload.KindSuccess:
			a = payload.NewSuccess("node-a", name)
		case payload.KindEvent:
			a = payload.NewEvent("node-a", name, "e"+extra)
			a.Subject, a.Message, a.DAG, a.Leader = subject, message, extra, extra
		case payload.KindSLA:
			a = payload.NewSLA("node-a", name, "c"+extra, 0, time.Duration(started).Truncate(time.Second)) // whole, as encoding/json and we write it alike
		case payload.KindTest:
			a = payload.NewTest("node-a")
			a.Message = message
		default:
			a = payload.NewFailure("node-a", name)
		}
		if a.Kind == payload.KindSuccess || a.Kind == payload.KindFailure {
			a.LogTail = payload.LogTail(tail)
		}
		a.RunID, a.Schedule, a.FailReason, a.StartedAt = runID, schedule, failReason, time.Unix(0, started)
		if name == "" && a.Kind != payload.KindTest {
			_, err := payload.Fit(a, limit)
			requireFieldError(t, err, "name")
			return
		}
		requireFit(t, a, limit)
	})
}

// FuzzParse checks that what Parse accepts is encoded to something that it reads and encodes the same way.
func FuzzParse(f *testing.F) {
	for _, c := range loadFit(f).Cases {
		f.Add([]byte(c.Alert))
		f.Add([]byte(c.Plaintext))
	}
	f.Add([]byte(common + `,"ts":"2026-07-23T01:02:03.9999999-23:59","v":1e0}`))
	f.Add([]byte(common + `,"threshold_seconds":-0.0,"observed_seconds":1e-5,"log_tail":[null,"\ud800"]}`))
	f.Fuzz(func(t *testing.T, plaintext []byte) {
		alert, err := payload.Parse(plaintext)
		if err != nil {
			if _, ok := errors.AsType[*payload.FieldError](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		first, err := alert.MarshalJSON()
		if err != nil {
			t.Fatalf("what was parsed cannot be encoded: %v", err)
		}
		if len(first) > 64<<10 {
			return // numbers and times can grow, which takes a document at Parse's limit past it
		}
		again, err := payload.Parse(first)
		if err != nil {
			t.Fatalf("%v in %s", err, first)
		}
		second, err := again.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(first), string(second)); diff != "" {
			t.Errorf("not a fixed point (-first +second):\n%s", diff)
		}
		if alert.CollapseID(secret.New("salt")) != again.CollapseID(secret.New("salt")) {
			t.Error("the collapse id changed")
		}
		if alert.Validate() == nil {
			if _, err := payload.Fit(alert, len(first)); err != nil {
				t.Errorf("a valid alert does not fit in its own size: %v", err)
			}
		}
	})
}
