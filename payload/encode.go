package payload

import (
	"math"
	"strconv"
	"time"
)

// MarshalJSON returns the plaintext in the protocol's exact form: members in a fixed order, no white space, strings in
// raw UTF-8. It fails, with a [*FieldError], only for a value that has no encoding. [Fit] and [Alert.Validate] check
// the rest of the protocol's rules.
//
// Call it, or Fit, when the bytes matter: [encoding/json.Marshal] of an Alert returns an equivalent document in which
// <, >, &, U+2028 and U+2029 are escaped too, which takes more bytes.
//
// A number of seconds is written as the deployed daemon writes it: without a fraction when it is whole and below 1e16,
// otherwise as the shortest text that reads back as the same float64, with an exponent below 1e-4 and from 1e16.
func (a Alert) MarshalJSON() ([]byte, error) {
	if err := encodable(&a); err != nil {
		return nil, err
	}
	return encode(&a, headSize(&a)+tailSize(a.LogTail)), nil
}

// encode returns the plaintext of a. It allocates once when size is the exact size of the plaintext in bytes.
func encode(a *Alert, size int) []byte {
	w := writer{buf: make([]byte, 0, size)}
	w.head(a)
	w.tail(a.LogTail)
	return append(w.buf, '}')
}

// headSize returns the size of a's plaintext without its log tail.
func headSize(a *Alert) int {
	w := writer{measure: true}
	w.head(a)
	return w.size + len(`}`)
}

const (
	tailKey   = `,"log_tail":`
	tailFrame = len(tailKey) + len(`[`) // what a log tail adds besides its lines
)

// tailSize returns what the lines add to a plaintext.
func tailSize(lines []string) int {
	if len(lines) == 0 {
		return 0
	}
	size := tailFrame
	for _, line := range lines {
		size += lineSize(line)
	}
	return size
}

// lineSize returns what one line adds to a log tail: its text and the comma or the bracket that follows.
func lineSize(line string) int { return textSize(line) + len(`,`) }

// writer writes an alert's members or, with measure set, only adds up their size, so that one list of the members
// serves both.
type writer struct {
	buf     []byte
	measure bool
	size    int
}

// head writes everything up to the log tail, in the protocol's order.
func (w *writer) head(a *Alert) {
	w.raw(`{"v":1,"kind":`)
	w.text(string(a.Kind))
	w.raw(`,"name":`)
	w.text(a.Name)
	w.raw(`,"success":`)
	w.raw(strconv.FormatBool(a.Success))
	w.raw(`,"host":`)
	w.text(a.Host)
	w.raw(`,"ts":`)
	w.instant(a.Time.Truncate(time.Second))

	w.textMember(`,"run_id":`, a.RunID)
	w.textMember(`,"schedule":`, a.Schedule)
	w.timeMember(`,"started_at":`, a.StartedAt)
	if a.ExitCode != nil {
		w.raw(`,"exit_code":`)
		w.integer(*a.ExitCode)
	}
	w.textMember(`,"fail_reason":`, a.FailReason)

	w.textMember(`,"event":`, a.Event)
	w.textMember(`,"subject":`, a.Subject)
	w.textMember(`,"message":`, a.Message)
	w.textMember(`,"dag":`, a.DAG)
	w.textMember(`,"run_key":`, a.RunKey)
	w.textMember(`,"taskkey":`, a.TaskKey)
	w.textMember(`,"role":`, a.Role)
	w.textMember(`,"leader":`, a.Leader)

	w.textMember(`,"sla_check":`, a.SLACheck)
	w.numberMember(`,"threshold_seconds":`, a.ThresholdSeconds)
	w.numberMember(`,"observed_seconds":`, a.ObservedSeconds)
	w.timeMember(`,"last_success_at":`, a.LastSuccessAt)
}

func (w *writer) tail(lines []string) {
	if len(lines) == 0 {
		return
	}
	w.raw(tailKey)
	separator := `[`
	for _, line := range lines {
		w.raw(separator)
		w.text(line)
		separator = `,`
	}
	w.raw(`]`)
}

func (w *writer) textMember(key, value string) {
	if value != "" {
		w.raw(key)
		w.text(value)
	}
}

func (w *writer) timeMember(key string, value time.Time) {
	if !value.IsZero() {
		w.raw(key)
		w.instant(value)
	}
}

func (w *writer) numberMember(key string, value *float64) {
	if value != nil {
		w.raw(key)
		w.number(*value)
	}
}

func (w *writer) raw(s string) {
	if w.measure {
		w.size += len(s)
		return
	}
	w.buf = append(w.buf, s...)
}

func (w *writer) text(s string) {
	if w.measure {
		w.size += textSize(s)
		return
	}
	w.buf = appendText(w.buf, s)
}

func (w *writer) integer(i int) {
	var scratch [20]byte
	w.raw(string(strconv.AppendInt(scratch[:0], int64(i), 10)))
}

func (w *writer) number(f float64) {
	var scratch [32]byte
	if f == 0 {
		f = 0 // not -0
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && abs < 1e-4 || abs >= 1e16 {
		format = 'e'
	}
	w.raw(string(strconv.AppendFloat(scratch[:0], f, format, -1, 64)))
}

// instant writes a time as Python's isoformat does: six digits of a second, or none if all are zero.
func (w *writer) instant(t time.Time) {
	layout := "2006-01-02T15:04:05"
	if t.Nanosecond() >= int(time.Microsecond) {
		layout = "2006-01-02T15:04:05.000000"
	}
	if w.measure {
		w.size += len(layout) + len(`"+00:00"`)
		return
	}
	w.buf = append(w.buf, '"')
	w.buf = t.UTC().AppendFormat(w.buf, layout)
	w.buf = append(w.buf, `+00:00"`...)
}
