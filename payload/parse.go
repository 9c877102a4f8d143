package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// maxParse bounds the work that a plaintext can cause. A push message has room for 2802 bytes of it.
const maxParse = 64 << 10

// Parse reads a plaintext, as an app does that has just opened a sealed box. It takes at most 64 KiB.
//
// Parse is lenient: a readable alert is shown. It fails, always with a [*FieldError], only when it cannot tell which
// alert this is: the document is not a JSON object, v is not [Version] ([errors.Is] finds [ErrVersion]), or v, kind,
// name or host is missing or of the wrong type. A kind that this version does not know is kept as it stands. Any other
// member that is missing, or that cannot be read, leaves its field zero: success is then false, and without a readable
// ts [Alert.Stale] reports true, so that the alert is shown as an outdated one.
//
// Unknown members are ignored, so that version 1 can be extended; null and empty text count as absent; of a member
// given twice the last counts. A byte order mark is skipped, and a byte that is not part of valid UTF-8 becomes U+FFFD.
// A whole number may be written with a fraction of zero or an exponent. Times may be written with Z or any offset and
// with fractions of a second; they are returned in UTC.
func Parse(plaintext []byte) (Alert, error) {
	if len(plaintext) > maxParse {
		return Alert{}, &FieldError{Field: "plaintext", Reason: fmt.Sprintf("has %d bytes, at most %d are read", len(plaintext), maxParse)}
	}
	// A map keeps to the exact names; encoding/json fills a struct's fields from members that differ in case, too.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(plaintext, []byte("\ufeff")), &members); err != nil {
		return Alert{}, &FieldError{Field: "plaintext", Reason: fmt.Sprintf("is not a JSON object: %v", err), Err: err}
	}
	r := reader{members: members}
	r.version()
	a := Alert{
		Kind:    Kind(r.required("kind")),
		Name:    r.required("name"),
		Success: valueOr[bool](r, "success"),
		Host:    r.required("host"),
		Time:    r.time("ts"),

		RunID:      valueOr[string](r, "run_id"),
		Schedule:   valueOr[string](r, "schedule"),
		StartedAt:  r.time("started_at"),
		ExitCode:   r.exitCode(),
		FailReason: valueOr[string](r, "fail_reason"),
		LogTail:    r.lines("log_tail"),

		Event:   valueOr[string](r, "event"),
		Subject: valueOr[string](r, "subject"),
		Message: valueOr[string](r, "message"),
		DAG:     valueOr[string](r, "dag"),
		RunKey:  valueOr[string](r, "run_key"),
		TaskKey: valueOr[string](r, "taskkey"),
		Role:    valueOr[string](r, "role"),
		Leader:  valueOr[string](r, "leader"),

		SLACheck:         valueOr[string](r, "sla_check"),
		ThresholdSeconds: value[float64](r, "threshold_seconds"),
		ObservedSeconds:  value[float64](r, "observed_seconds"),
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

// reader takes members out of a plaintext and remembers the first that the alert cannot do without.
type reader struct {
	members map[string]json.RawMessage
	err     error
}

func (r *reader) fail(name, reason string, cause error) {
	if r.err == nil {
		r.err = &FieldError{Field: name, Reason: reason, Err: cause}
	}
}

// value reads a member into a T. It returns nil if the member is absent, null or not a T.
func value[T any](r reader, name string) *T {
	raw, ok := r.members[name]
	if !ok || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	v := new(T)
	if json.Unmarshal(raw, v) != nil {
		return nil
	}
	return v
}

// valueOr is value with the zero T in place of nil.
func valueOr[T any](r reader, name string) (v T) {
	if read := value[T](r, name); read != nil {
		v = *read
	}
	return v
}

// required reads a text that every alert must have.
func (r *reader) required(name string) string {
	text := value[string](*r, name)
	switch {
	case text != nil && *text != "":
		return *text
	case text == nil && r.given(name):
		r.fail(name, "must be text", nil)
	default:
		r.fail(name, isMissing, nil)
	}
	return ""
}

func (r *reader) given(name string) bool {
	raw, ok := r.members[name]
	return ok && !bytes.Equal(raw, []byte("null"))
}

func (r *reader) version() {
	switch version := r.integer("v"); {
	case version == nil && r.given("v"):
		r.fail("v", "must be a whole number", nil)
	case version == nil:
		r.fail("v", isMissing, nil)
	case *version != Version:
		r.fail("v", fmt.Sprintf("is %d: %v", *version, ErrVersion), ErrVersion)
	}
}

// integer reads a whole number, which some JSON libraries write as 3.0 or 3e0.
func (r reader) integer(name string) *int64 {
	if i := value[int64](r, name); i != nil {
		return i
	}
	if f := value[float64](r, name); f != nil && *f == math.Trunc(*f) && math.Abs(*f) < 1<<53 {
		return new(int64(*f))
	}
	return nil
}

// exitCode takes 64 bits, for a status such as Windows's 0xC0000005. On a 32-bit machine it becomes a negative number,
// as Windows shows it.
func (r reader) exitCode() *int {
	code := r.integer("exit_code")
	if code == nil {
		return nil
	}
	return new(int(*code))
}

func (r reader) lines(name string) []string {
	if lines := valueOr[[]string](r, name); len(lines) > 0 {
		return lines
	}
	return nil
}

// time returns the zero time for one that it cannot read.
func (r reader) time(name string) time.Time {
	t := valueOr[time.Time](r, name).UTC()
	if year := t.Year(); year < 1 || year > 9999 {
		return time.Time{}
	}
	return t
}
