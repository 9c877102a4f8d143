package payload

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// minText is the length, in characters, below which fitting shortens no text.
const minText = 64

// Fitted is an alert that fits, with its plaintext.
type Fitted struct {
	Alert     Alert   // as trimmed; its RunID may be gone, so derive the collapse id from the alert before fitting
	Plaintext []byte  // ready to be sealed
	Trimmed   Trimmed // what was removed from the alert
}

// Trimmed says what [Fit] removed. Fields have their names in the plaintext and stand in the order in which they were
// trimmed.
type Trimmed struct {
	LogLines  int      // lines dropped from the start of the log tail
	Shortened []string // of message, fail_reason and subject
	Dropped   []string // of schedule, started_at and run_id
}

// IsZero reports whether nothing was trimmed.
func (t Trimmed) IsZero() bool {
	return t.LogLines == 0 && len(t.Shortened) == 0 && len(t.Dropped) == 0
}

// SizeError is [Fit]'s error for an alert that is still too large after everything that may be trimmed is gone.
type SizeError struct {
	Size  int // bytes that the alert needs after trimming
	Limit int // bytes that were allowed
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("payload: alert still takes %d bytes after trimming, %d are allowed: "+
		"shorten its name, host or other fields that are never trimmed", e.Size, e.Limit)
}

// Fit validates an alert, shrinks it until its plaintext takes at most maxBytes, and encodes it. For an alert that will
// be sealed, seal.Suite.MaxPlaintext tells maxBytes. Fit shrinks in the protocol's order and stops as soon as the alert
// fits:
//
//  1. The oldest lines of LogTail are dropped, as few as necessary; those before the last [MaxLogLines] are always
//     dropped.
//  2. Message, then FailReason, then Subject is cut to half its length, again and again, never below 64 characters. A
//     character is a Unicode code point and is never split.
//  3. Schedule, StartedAt and RunID are dropped, one at a time, in that order.
//
// An alert that breaks the protocol is a [*FieldError], as of [Alert.Validate]. One that cannot be made to fit is a
// [*SizeError]. The alert that was passed in is not modified; the result shares its strings and log lines.
func Fit(a Alert, maxBytes int) (Fitted, error) {
	excess := max(0, len(a.LogTail)-MaxLogLines) // too many lines are dropped, not refused
	a.LogTail = a.LogTail[excess:]
	if err := a.Validate(); err != nil {
		return Fitted{}, err
	}
	f := fitter{Fitted: Fitted{Alert: a}, size: headSize(&a), limit: maxBytes}
	f.Trimmed.LogLines = excess
	f.keepNewestLines()
	f.shorten("message", &f.Alert.Message)
	f.shorten("fail_reason", &f.Alert.FailReason)
	f.shorten("subject", &f.Alert.Subject)
	f.dropContext()
	if f.tooLarge() {
		return Fitted{}, &SizeError{Size: f.size, Limit: f.limit}
	}
	f.Plaintext = encode(&f.Alert, f.size)
	return f.Fitted, nil
}

// fitter keeps count of the size of an alert that is being trimmed.
type fitter struct {
	Fitted
	size, limit int
}

func (f *fitter) tooLarge() bool { return f.size > f.limit }

// keepNewestLines drops the oldest lines. It measures them from the newest backwards and stops at the first that has no
// room, so that dropped lines cost no time.
func (f *fitter) keepNewestLines() {
	lines := f.Alert.LogTail
	first, size := len(lines), f.size+tailFrame
	for first > 0 {
		line := lines[first-1]
		if len(line) > f.limit { // a line of megabytes need not be measured
			break
		}
		if size += lineSize(line); size > f.limit {
			break
		}
		first--
		f.size = size
	}
	f.Trimmed.LogLines += first
	f.Alert.LogTail = nil
	if first < len(lines) {
		f.Alert.LogTail = slices.Clip(lines[first:])
	}
}

// shorten halves a text until the alert fits or the text is at its minimum.
func (f *fitter) shorten(name string, text *string) {
	if !f.tooLarge() {
		return
	}
	length := utf8.RuneCountInString(*text)
	if length <= minText {
		return
	}
	rest := f.size - textSize(*text)
	for f.tooLarge() && length > minText {
		length = max(minText, length/2)
		*text = firstRunes(*text, length)
		f.size = rest + textSize(*text)
	}
	f.Trimmed.Shortened = append(f.Trimmed.Shortened, name)
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// dropContext drops optional members. No log line is left by now, so the plaintext is the head alone.
func (f *fitter) dropContext() {
	dropped := func(name string) {
		f.size = headSize(&f.Alert)
		f.Trimmed.Dropped = append(f.Trimmed.Dropped, name)
	}
	if f.tooLarge() && f.Alert.Schedule != "" {
		f.Alert.Schedule = ""
		dropped("schedule")
	}
	if f.tooLarge() && !f.Alert.StartedAt.IsZero() {
		f.Alert.StartedAt = time.Time{}
		dropped("started_at")
	}
	if f.tooLarge() && f.Alert.RunID != "" {
		f.Alert.RunID = ""
		dropped("run_id")
	}
}
