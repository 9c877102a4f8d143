package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// maxParse bounds the work that a plaintext can cause. A push message has room for 2802 bytes of it.
const maxParse = 64 << 10

// Parse reads a plaintext, as an app does that has just opened a sealed box. It takes at most 64 KiB.
//
// Unknown members are ignored, so that version 1 can grow; null and empty text count as absent; of a member given twice
// the last counts. Times may be written with Z or any offset and with fractions of a second; they are returned in UTC.
//
// Every error is a [*FieldError]: the document is not a JSON object, v is not [Version] ([errors.Is] finds
// [ErrVersion]), the kind is unknown, one of v, kind, name, success, host and ts is missing, or a known member is of the
// wrong type. A page is worth more than a perfect sender, so Parse does not refuse what else [Alert.Validate] would.
func Parse(plaintext []byte) (Alert, error) {
	if len(plaintext) > maxParse {
		return Alert{}, &FieldError{Err: fmt.Errorf("plaintext of %d bytes, at most %d are read", len(plaintext), maxParse)}
	}
	if !utf8.Valid(plaintext) {
		return Alert{}, &FieldError{Err: errors.New("plaintext is not valid UTF-8")}
	}
	// A map keeps to the exact names; encoding/json fills a struct's fields from members that differ in case, too.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(plaintext, &members); err != nil {
		return Alert{}, &FieldError{Err: fmt.Errorf("plaintext is not a JSON object: %w", err)}
	}
	r := reader{members: members}
	r.version()
	a := Alert{
		Kind:    r.kind(),
		Name:    r.required("name"),
		Success: r.success(),
		Host:    r.required("host"),
		Time:    r.sentAt(),

		RunID:      r.text("run_id"),
		Schedule:   r.text("schedule"),
		StartedAt:  r.time("started_at"),
		ExitCode:   r.exitCode(),
		FailReason: r.text("fail_reason"),
		LogTail:    r.lines("log_tail"),

		Event:   r.text("event"),
		Subject: r.text("subject"),
		Message: r.text("message"),
		DAG:     r.text("dag"),
		RunKey:  r.text("run_key"),
		TaskKey: r.text("taskkey"),
		Role:    r.text("role"),
		Leader:  r.text("leader"),

		SLACheck:         r.text("sla_check"),
		ThresholdSeconds: optional[float64](&r, "threshold_seconds", "must be a number that a float64 can hold"),
		ObservedSeconds:  optional[float64](&r, "observed_seconds", "must be a number that a float64 can hold"),
		LastSuccessAt:    r.time("last_success_at"),
	}
	if r.err != nil {
		return Alert{}, r.err
	}
	return a, nil
}

// UnmarshalJSON reads an alert as [Parse] does.
func (a *Alert) UnmarshalJSON(plaintext []byte) error {
	parsed, err := Parse(plaintext)
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// reader takes members out of a plaintext and remembers the first that is wrong.
type reader struct {
	members map[string]json.RawMessage
	err     error
}

func (r *reader) fail(name string, err error) {
	if r.err == nil {
		r.err = &FieldError{Field: name, Err: err}
	}
}

// optional reads a member into a T, or returns nil if it is absent or null.
func optional[T any](r *reader, name, want string) *T {
	raw, ok := r.members[name]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	value := new(T)
	if json.Unmarshal(raw, value) != nil { // its error may quote the alert
		r.fail(name, errors.New(want))
		return nil
	}
	return value
}

func (r *reader) version() {
	version := optional[int](r, "v", "must be a whole number")
	switch {
	case version == nil:
		r.fail("v", errMissing)
	case *version != Version:
		r.fail("v", fmt.Errorf("%w %d", ErrVersion, *version))
	}
}

func (r *reader) kind() Kind {
	kind := Kind(r.required("kind"))
	if !kind.known() {
		r.fail("kind", errNotOfKinds)
	}
	return kind
}

// exitCode takes 64 bits, since a status such as Windows's 0xC0000005 must not
// cost the page on a 32-bit machine. There it shows as Windows shows it, as a
// negative number.
func (r *reader) exitCode() *int {
	code := optional[int64](r, "exit_code", "must be a whole number")
	if code == nil {
		return nil
	}
	return new(int(*code))
}

func (r *reader) success() bool {
	success := optional[bool](r, "success", "must be true or false")
	if success == nil {
		r.fail("success", errMissing)
		return false
	}
	return *success
}

func (r *reader) sentAt() time.Time {
	t := r.time("ts")
	if t.IsZero() {
		r.fail("ts", errMissing)
	}
	return t
}

func (r *reader) required(name string) string {
	text := r.text(name)
	if text == "" {
		r.fail(name, errMissing)
	}
	return text
}

func (r *reader) text(name string) string {
	if text := optional[string](r, name, "must be text"); text != nil {
		return *text
	}
	return ""
}

func (r *reader) lines(name string) []string {
	if lines := optional[[]string](r, name, "must be an array of text"); lines != nil && len(*lines) > 0 {
		return *lines
	}
	return nil
}

func (r *reader) time(name string) time.Time {
	text := r.text(name)
	if text == "" {
		return time.Time{}
	}
	var t time.Time
	if t.UnmarshalText([]byte(text)) != nil { // its error may quote the alert
		r.fail(name, errors.New("must be a time such as 2026-07-23T01:02:03+00:00"))
		return time.Time{}
	}
	t = t.UTC()
	if year := t.Year(); year < 1 || year > 9999 {
		r.fail(name, errYear)
		return time.Time{}
	}
	return t
}
