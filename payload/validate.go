package payload

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrVersion is the cause of [Parse]'s error when a plaintext is of another payload version than [Version].
var ErrVersion = errors.New("unsupported payload version")

// What is wrong with a field, where more than one place says it.
const (
	isMissing = "is missing"
	isEmpty   = "must not be empty"
)

// FieldError says which member of an alert is wrong, and how. It quotes nothing of the alert except the one character
// at which a document stops being JSON.
type FieldError struct {
	Field  string // the member's name in the plaintext, such as "run_id"; "plaintext" when the whole document is wrong
	Reason string // what is wrong, to be read after the field: "must not be empty"
	Err    error  // the cause, such as ErrVersion; nil when there is none
}

func (e *FieldError) Error() string { return "payload: " + e.Field + " " + e.Reason }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// Validate checks an alert against the protocol and returns a [*FieldError] for the first thing that is wrong: a
// required field that is empty, a field that belongs to another kind, a Success that contradicts the kind, more than
// [MaxLogLines] lines, a time outside the years 0001 to 9999, a number that is not finite. Event names and SLA checks
// that the protocol does not name are allowed.
func (a Alert) Validate() error {
	if !a.Kind.known() {
		return &FieldError{Field: "kind", Reason: "must be success, failure, sla, event or test"}
	}
	return cmp.Or(required(&a), belongs(&a), encodable(&a))
}

func (k Kind) known() bool {
	switch k {
	case KindSuccess, KindFailure, KindSLA, KindEvent, KindTest:
		return true
	}
	return false
}

// required checks the fields that each kind must have.
func required(a *Alert) error {
	good := a.Kind == KindSuccess || a.Kind == KindTest
	switch {
	case a.Name == "":
		return &FieldError{Field: "name", Reason: isEmpty}
	case a.Kind == KindTest && a.Name != string(KindTest):
		return &FieldError{Field: "name", Reason: `must be "test" on a test alert`}
	case a.Success != good:
		return &FieldError{Field: "success", Reason: fmt.Sprintf("must be %t on an alert of kind %s", good, a.Kind)}
	case a.Host == "":
		return &FieldError{Field: "host", Reason: isEmpty}
	case a.Time.Truncate(time.Second).IsZero(): // as it is sent
		return &FieldError{Field: "ts", Reason: "must be set: it decides whether the alert is fresh"}
	case a.Kind == KindEvent && a.Event == "":
		return &FieldError{Field: "event", Reason: isEmpty}
	case a.Kind == KindSLA && a.SLACheck == "":
		return &FieldError{Field: "sla_check", Reason: isEmpty}
	case len(a.LogTail) > MaxLogLines:
		return &FieldError{Field: "log_tail", Reason: fmt.Sprintf("has %d lines, at most %d are allowed", len(a.LogTail), MaxLogLines)}
	}
	return nil
}

// belongs checks that no field is set that only another kind carries.
func belongs(a *Alert) error {
	event, sla := a.Kind == KindEvent, a.Kind == KindSLA
	result := a.Kind == KindSuccess || a.Kind == KindFailure
	for _, f := range [...]struct {
		name     string
		set, may bool
	}{
		{"event", a.Event != "", event},
		{"subject", a.Subject != "", event},
		{"message", a.Message != "", event || a.Kind == KindTest},
		{"dag", a.DAG != "", event},
		{"run_key", a.RunKey != "", event},
		{"taskkey", a.TaskKey != "", event},
		{"role", a.Role != "", event},
		{"leader", a.Leader != "", event},
		{"sla_check", a.SLACheck != "", sla},
		{"threshold_seconds", a.ThresholdSeconds != nil, sla},
		{"observed_seconds", a.ObservedSeconds != nil, sla},
		{"last_success_at", !a.LastSuccessAt.IsZero(), sla},
		{"log_tail", len(a.LogTail) > 0, result},
	} {
		if f.set && !f.may {
			return &FieldError{Field: f.name, Reason: fmt.Sprintf("does not belong on an alert of kind %s", a.Kind)}
		}
	}
	return nil
}

// encodable checks for values that JSON or the protocol's time format cannot express.
func encodable(a *Alert) error {
	for _, f := range [...]struct {
		name  string
		value time.Time
	}{{"ts", a.Time}, {"started_at", a.StartedAt}, {"last_success_at", a.LastSuccessAt}} {
		if year := f.value.UTC().Year(); year < 1 || year > 9999 {
			return &FieldError{Field: f.name, Reason: "must lie in the years 0001 to 9999, UTC"}
		}
	}
	for _, f := range [...]struct {
		name  string
		value *float64
	}{{"threshold_seconds", a.ThresholdSeconds}, {"observed_seconds", a.ObservedSeconds}} {
		if f.value != nil && (math.IsNaN(*f.value) || math.IsInf(*f.value, 0)) {
			return &FieldError{Field: f.name, Reason: "must be a finite number"}
		}
	}
	return nil
}
