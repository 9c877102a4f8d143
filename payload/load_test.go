package payload_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/secret"
)

// maxPlaintext is seal.X25519.MaxPlaintext(3000). This package must not import seal.
const maxPlaintext = 2202

// loadVectors reads a vector file; a missing one is fatal. Its callers make one without cases fatal, too.
func loadVectors[T any](tb testing.TB, name string) T {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", name))
	if err != nil {
		tb.Fatal(err)
	}
	var vectors T
	if err := json.Unmarshal(data, &vectors); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return vectors
}

type fitVectors struct {
	MaxPlaintextBytes int       `json:"max_plaintext_bytes"`
	Cases             []fitCase `json:"cases"`
}

type fitCase struct {
	Comment    string          `json:"comment"`
	Alert      json.RawMessage `json:"alert"`
	Plaintext  string          `json:"plaintext"`
	Bytes      int             `json:"bytes"`
	Salt       secret.Text     `json:"salt"`
	CollapseID string          `json:"collapse_id"`
	Error      string          `json:"error"`
}

func loadFit(tb testing.TB) fitVectors {
	tb.Helper()
	vectors := loadVectors[fitVectors](tb, "fit.json")
	if len(vectors.Cases) == 0 {
		tb.Fatal("fit.json holds no case")
	}
	if vectors.MaxPlaintextBytes != maxPlaintext {
		tb.Fatalf("fit.json is for %d bytes, want %d", vectors.MaxPlaintextBytes, maxPlaintext)
	}
	return vectors
}

type collapseVectors struct {
	Cases []struct {
		Salt       secret.Text     `json:"salt"`
		Alert      json.RawMessage `json:"alert"`
		CollapseID string          `json:"collapse_id"`
	} `json:"cases"`
	InvalidUTF8 []struct {
		Salt       secret.Text  `json:"salt"`
		Kind       payload.Kind `json:"kind"`
		Name       []byte       `json:"name_base64"`
		CollapseID string       `json:"collapse_id"`
	} `json:"invalid_utf8"`
}

func loadCollapse(tb testing.TB) collapseVectors {
	tb.Helper()
	vectors := loadVectors[collapseVectors](tb, "collapse_id.json")
	if len(vectors.Cases) == 0 || len(vectors.InvalidUTF8) == 0 {
		tb.Fatal("collapse_id.json lacks cases")
	}
	return vectors
}

// wire is a reading of the plaintext that shares nothing with Parse.
type wire struct {
	V                int       `json:"v"`
	Kind             string    `json:"kind"`
	Name             string    `json:"name"`
	Success          bool      `json:"success"`
	Host             string    `json:"host"`
	TS               time.Time `json:"ts"`
	RunID            string    `json:"run_id"`
	Schedule         string    `json:"schedule"`
	StartedAt        time.Time `json:"started_at"`
	ExitCode         *int      `json:"exit_code"`
	FailReason       string    `json:"fail_reason"`
	Event            string    `json:"event"`
	Subject          string    `json:"subject"`
	Message          string    `json:"message"`
	DAG              string    `json:"dag"`
	RunKey           string    `json:"run_key"`
	TaskKey          string    `json:"taskkey"`
	Role             string    `json:"role"`
	Leader           string    `json:"leader"`
	SLACheck         string    `json:"sla_check"`
	ThresholdSeconds *float64  `json:"threshold_seconds"`
	ObservedSeconds  *float64  `json:"observed_seconds"`
	LastSuccessAt    time.Time `json:"last_success_at"`
	LogTail          []string  `json:"log_tail"`
}

// build makes the alert as a daemon does: with the constructor of its kind, then field by field.
func (w wire) build(tb testing.TB) payload.Alert {
	tb.Helper()
	var a payload.Alert
	switch payload.Kind(w.Kind) {
	case payload.KindSuccess:
		a = payload.NewSuccess(w.Host, w.Name)
	case payload.KindFailure:
		a = payload.NewFailure(w.Host, w.Name)
	case payload.KindSLA:
		a = payload.NewSLA(w.Host, w.Name, w.SLACheck, seconds(*w.ThresholdSeconds), seconds(*w.ObservedSeconds))
	case payload.KindEvent:
		a = payload.NewEvent(w.Host, w.Name, w.Event)
	case payload.KindTest:
		a = payload.NewTest(w.Host)
	default:
		tb.Fatalf("kind %q", w.Kind)
	}
	a.Time, a.StartedAt, a.LastSuccessAt = w.TS, w.StartedAt, w.LastSuccessAt
	a.RunID, a.Schedule, a.ExitCode, a.FailReason, a.LogTail = w.RunID, w.Schedule, w.ExitCode, w.FailReason, w.LogTail
	a.Subject, a.Message, a.DAG, a.RunKey, a.TaskKey = w.Subject, w.Message, w.DAG, w.RunKey, w.TaskKey
	a.Role, a.Leader = w.Role, w.Leader
	return a
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func build(tb testing.TB, alert json.RawMessage) payload.Alert {
	tb.Helper()
	var w wire
	if err := json.Unmarshal(alert, &w); err != nil {
		tb.Fatal(err)
	}
	return w.build(tb)
}
