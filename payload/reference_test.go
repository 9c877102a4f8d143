package payload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sealpush/sealpush/payload"
)

// A backslash is always the first of a pair in JSON, so a replacer that eats pairs meets \u2028 only as an escape.
var unescapeSeparators = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")

// referenceEncode writes a plaintext with encoding/json, the slow way round, to hold MarshalJSON to.
func referenceEncode(tb testing.TB, a payload.Alert) string {
	tb.Helper()
	// The conversion to runes puts U+FFFD in the place of each byte that is not UTF-8.
	text := func(s string) string { return string([]rune(s)) }
	instant := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		if t = t.UTC().Truncate(time.Microsecond); t.Nanosecond() == 0 {
			return t.Format("2006-01-02T15:04:05+00:00")
		}
		return t.Format("2006-01-02T15:04:05.000000+00:00")
	}
	var lines []string
	for _, line := range a.LogTail {
		lines = append(lines, text(line))
	}
	members := struct {
		V                int      `json:"v"`
		Kind             string   `json:"kind"`
		Name             string   `json:"name"`
		Success          bool     `json:"success"`
		Host             string   `json:"host"`
		TS               string   `json:"ts"`
		RunID            string   `json:"run_id,omitempty"`
		Schedule         string   `json:"schedule,omitempty"`
		StartedAt        string   `json:"started_at,omitempty"`
		ExitCode         *int     `json:"exit_code,omitempty"`
		FailReason       string   `json:"fail_reason,omitempty"`
		Event            string   `json:"event,omitempty"`
		Subject          string   `json:"subject,omitempty"`
		Message          string   `json:"message,omitempty"`
		DAG              string   `json:"dag,omitempty"`
		RunKey           string   `json:"run_key,omitempty"`
		TaskKey          string   `json:"taskkey,omitempty"`
		Role             string   `json:"role,omitempty"`
		Leader           string   `json:"leader,omitempty"`
		SLACheck         string   `json:"sla_check,omitempty"`
		ThresholdSeconds *float64 `json:"threshold_seconds,omitempty"`
		ObservedSeconds  *float64 `json:"observed_seconds,omitempty"`
		LastSuccessAt    string   `json:"last_success_at,omitempty"`
		LogTail          []string `json:"log_tail,omitempty"`
	}{
		1, text(string(a.Kind)), text(a.Name), a.Success, text(a.Host), instant(a.Time.Truncate(time.Second)),
		text(a.RunID), text(a.Schedule), instant(a.StartedAt), a.ExitCode, text(a.FailReason),
		text(a.Event), text(a.Subject), text(a.Message), text(a.DAG), text(a.RunKey), text(a.TaskKey), text(a.Role), text(a.Leader),
		text(a.SLACheck), a.ThresholdSeconds, a.ObservedSeconds, instant(a.LastSuccessAt),
		lines,
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(members); err != nil {
		tb.Fatal(err)
	}
	return unescapeSeparators.Replace(strings.TrimSuffix(b.String(), "\n"))
}

// referenceFit trims as the protocol's words say, encoding the whole alert after each step.
func referenceFit(tb testing.TB, a payload.Alert, limit int) (payload.Alert, bool) {
	tb.Helper()
	tooLarge := func() bool { return len(referenceEncode(tb, a)) > limit }
	for tooLarge() && len(a.LogTail) > 0 {
		a.LogTail = a.LogTail[1:]
	}
	for _, text := range []*string{&a.Message, &a.FailReason, &a.Subject} {
		for tooLarge() && utf8.RuneCountInString(*text) > 64 {
			length := utf8.RuneCountInString(*text)
			for range length - max(64, length/2) {
				_, n := utf8.DecodeLastRuneInString(*text)
				*text = (*text)[:len(*text)-n]
			}
		}
	}
	if tooLarge() {
		a.Schedule = ""
	}
	if tooLarge() {
		a.StartedAt = time.Time{}
	}
	if tooLarge() {
		a.RunID = ""
	}
	return a, !tooLarge()
}

func requireSizeError(t *testing.T, err error, limit int) {
	t.Helper()
	size, ok := errors.AsType[*payload.SizeError](err)
	if !ok {
		t.Fatalf("error %v, want a *SizeError", err)
	}
	if size.Limit != limit || size.Size <= size.Limit {
		t.Errorf("size %d, limit %d", size.Size, size.Limit)
	}
}

func requireFieldError(t *testing.T, err error, field string) {
	t.Helper()
	got, ok := errors.AsType[*payload.FieldError](err)
	if !ok {
		t.Fatalf("error %v, want a *FieldError for %q", err, field)
	}
	if got.Field != field {
		t.Fatalf("error %v names %q, want %q", err, got.Field, field)
	}
}
