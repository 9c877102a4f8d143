package payload_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
)

func TestConstructors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		advance(1500 * time.Millisecond) // of the bubble's clock, to a time that is not whole
		now := time.Now().Truncate(time.Second)
		test := payload.NewTest("node-a")
		if test.Message == "" {
			t.Error("a test alert has no message")
		}
		for _, c := range []struct {
			got, want payload.Alert
		}{
			{payload.NewSuccess("node-a", "backup"), payload.Alert{Kind: "success", Success: true, Name: "backup"}},
			{payload.NewFailure("node-a", "backup"), payload.Alert{Kind: "failure", Name: "backup"}},
			{
				payload.NewSLA("node-a", "backup", payload.CheckLateAfter, time.Minute, 1500*time.Millisecond),
				payload.Alert{Kind: "sla", Name: "backup", SLACheck: "lateAfter", ThresholdSeconds: new(60.0), ObservedSeconds: new(1.5)},
			},
			{
				payload.NewEvent("node-a", "etl", payload.EventDAGFailure),
				payload.Alert{Kind: "event", Name: "etl", Event: "dag_failure"},
			},
			{test, payload.Alert{Kind: "test", Success: true, Name: "test", Message: test.Message}},
		} {
			c.want.Host, c.want.Time = "node-a", now
			if diff := cmp.Diff(c.want, c.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.want.Kind, diff)
			}
			fitted, err := payload.Fit(c.got, maxPlaintext)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := payload.Parse(fitted.Plaintext)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.got, parsed); diff != "" {
				t.Errorf("%s on the phone (-want +got):\n%s", c.want.Kind, diff)
			}
		}
	})
}

func TestValidate(t *testing.T) {
	success := func(a *payload.Alert) { *a = payload.NewSuccess("node-a", "job") }
	sla := func(a *payload.Alert) { *a = payload.NewSLA("node-a", "job", "lateAfter", 0, 0) }
	event := func(a *payload.Alert) { *a = payload.NewEvent("node-a", "job", "quorum_loss") }
	test := func(a *payload.Alert) { *a = payload.NewTest("node-a") }
	for _, c := range []struct {
		name   string
		change []func(*payload.Alert) // of a failure
		field  string                 // that the error must name, or none
	}{
		{"failure", nil, ""},
		{"success", []func(*payload.Alert){success}, ""},
		{"sla with zero thresholds", []func(*payload.Alert){sla}, ""},
		{"event", []func(*payload.Alert){event}, ""},
		{"test", []func(*payload.Alert){test}, ""},
		{"zero alert", []func(*payload.Alert){func(a *payload.Alert) { *a = payload.Alert{} }}, "kind"},
		{"unknown kind", []func(*payload.Alert){func(a *payload.Alert) { a.Kind = "Failure" }}, "kind"},
		{"no name", []func(*payload.Alert){func(a *payload.Alert) { a.Name = "" }}, "name"},
		{"test with another name", []func(*payload.Alert){test, func(a *payload.Alert) { a.Name = "job" }}, "name"},
		{"successful failure", []func(*payload.Alert){func(a *payload.Alert) { a.Success = true }}, "success"},
		{"failed success", []func(*payload.Alert){success, func(a *payload.Alert) { a.Success = false }}, "success"},
		{"successful sla", []func(*payload.Alert){sla, func(a *payload.Alert) { a.Success = true }}, "success"},
		{"successful event", []func(*payload.Alert){event, func(a *payload.Alert) { a.Success = true }}, "success"},
		{"failed test", []func(*payload.Alert){test, func(a *payload.Alert) { a.Success = false }}, "success"},
		{"no host", []func(*payload.Alert){func(a *payload.Alert) { a.Host = "" }}, "host"},
		{"no time", []func(*payload.Alert){func(a *payload.Alert) { a.Time = time.Time{} }}, "ts"},
		{"year 10000", []func(*payload.Alert){func(a *payload.Alert) { a.Time = date(10000) }}, "ts"},
		{"year 9999", []func(*payload.Alert){func(a *payload.Alert) { a.Time = date(9999) }}, ""},
		{"year 0", []func(*payload.Alert){func(a *payload.Alert) { a.StartedAt = date(0) }}, "started_at"},
		{"year 1", []func(*payload.Alert){func(a *payload.Alert) { a.StartedAt = date(1) }}, ""},
		{"year 10000 in UTC only", []func(*payload.Alert){sla, func(a *payload.Alert) {
			a.LastSuccessAt = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -2*3600))
		}}, "last_success_at"},
		{"event without event", []func(*payload.Alert){event, func(a *payload.Alert) { a.Event = "" }}, "event"},
		{"unheard-of event", []func(*payload.Alert){event, func(a *payload.Alert) { a.Event = "disk_full" }}, ""},
		{"sla without check", []func(*payload.Alert){sla, func(a *payload.Alert) { a.SLACheck = "" }}, "sla_check"},
		{"NaN", []func(*payload.Alert){sla, func(a *payload.Alert) { a.ThresholdSeconds = new(math.NaN()) }}, "threshold_seconds"},
		{"infinity", []func(*payload.Alert){sla, func(a *payload.Alert) { a.ObservedSeconds = new(math.Inf(-1)) }}, "observed_seconds"},
		{"40 lines", []func(*payload.Alert){func(a *payload.Alert) { a.LogTail = make([]string, 40) }}, ""},
		{"log tail on an event", []func(*payload.Alert){event, func(a *payload.Alert) { a.LogTail = []string{""} }}, "log_tail"},
		{"log tail on a test", []func(*payload.Alert){test, func(a *payload.Alert) { a.LogTail = []string{""} }}, "log_tail"},
		{"log tail on an sla", []func(*payload.Alert){sla, func(a *payload.Alert) { a.LogTail = []string{""} }}, "log_tail"},
		{"run context on an event", []func(*payload.Alert){event, func(a *payload.Alert) {
			a.RunID, a.Schedule, a.StartedAt, a.ExitCode, a.FailReason = "r", "s", a.Time, new(0), "f"
		}}, ""},
		{"event on a failure", []func(*payload.Alert){func(a *payload.Alert) { a.Event = "x" }}, "event"},
		{"subject on a failure", []func(*payload.Alert){func(a *payload.Alert) { a.Subject = "x" }}, "subject"},
		{"message on a failure", []func(*payload.Alert){func(a *payload.Alert) { a.Message = "x" }}, "message"},
		{"message on a test", []func(*payload.Alert){test, func(a *payload.Alert) { a.Message = "x" }}, ""},
		{"subject on a test", []func(*payload.Alert){test, func(a *payload.Alert) { a.Subject = "x" }}, "subject"},
		{"dag on a failure", []func(*payload.Alert){func(a *payload.Alert) { a.DAG = "x" }}, "dag"},
		{"run key on a success", []func(*payload.Alert){success, func(a *payload.Alert) { a.RunKey = "x" }}, "run_key"},
		{"task key on an sla", []func(*payload.Alert){sla, func(a *payload.Alert) { a.TaskKey = "x" }}, "taskkey"},
		{"role on a failure", []func(*payload.Alert){func(a *payload.Alert) { a.Role = "x" }}, "role"},
		{"leader on a failure", []func(*payload.Alert){func(a *payload.Alert) { a.Leader = "x" }}, "leader"},
		{"check on an event", []func(*payload.Alert){event, func(a *payload.Alert) { a.SLACheck = "x" }}, "sla_check"},
		{"threshold on a failure", []func(*payload.Alert){func(a *payload.Alert) { a.ThresholdSeconds = new(0.0) }}, "threshold_seconds"},
		{"observed on an event", []func(*payload.Alert){event, func(a *payload.Alert) { a.ObservedSeconds = new(0.0) }}, "observed_seconds"},
		{"last success on a success", []func(*payload.Alert){success, func(a *payload.Alert) { a.LastSuccessAt = a.Time }}, "last_success_at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alert := payload.NewFailure("node-a", "job")
			for _, change := range c.change {
				change(&alert)
			}
			_, fitErr := payload.Fit(alert, maxPlaintext)
			for _, err := range []error{alert.Validate(), fitErr} {
				if c.field == "" {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				requireFieldError(t, err, c.field)
			}
		})
	}
}

func date(year int) time.Time { return time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC) }

// TestErrorsQuoteNothing holds the errors, which end up in logs, to the promise that they carry none of the alert's text.
func TestErrorsQuoteNothing(t *testing.T) {
	const secret = "hunter2"
	tooLarge := payload.NewFailure("node-a", strings.Repeat(secret, 1000))
	_, sizeErr := payload.Fit(tooLarge, maxPlaintext)
	kind := payload.NewFailure(secret, secret)
	kind.Kind = secret
	foreign := payload.NewFailure(secret, secret)
	foreign.Subject = secret
	errs := []error{sizeErr, kind.Validate(), foreign.Validate()}
	for _, member := range []string{
		`"name":["hunter2"]`, `"kind":{"hunter2":1}`, `"host":["hunter2"]`, `"v":"hunter2"`, `hunter2`,
	} {
		_, err := payload.Parse([]byte(`{"v":1,"kind":"failure","name":"n","success":false,"host":"h","ts":"2026-07-23T01:02:03Z",` + member + `}`))
		errs = append(errs, err)
	}
	for _, err := range errs {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("error %v", err)
		}
	}
}

func TestStale(t *testing.T) {
	built := time.Date(2026, 7, 23, 1, 2, 3, 0, time.UTC)
	for _, c := range []struct {
		name string
		age  time.Duration
		want bool
	}{
		{"just built", 0, false},
		{"at the limit", payload.FreshFor, false},
		{"a nanosecond past the limit", payload.FreshFor + 1, true},
		{"a day old", 24 * time.Hour, true},
		{"from the near future", -5 * time.Minute, false},
		{"from the far future", -24 * 365 * time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := built.Add(c.age).In(time.FixedZone("east", 9*3600))
			if got := (payload.Alert{Time: built}).Stale(now); got != c.want {
				t.Errorf("stale: %t at an age of %s", got, c.age)
			}
		})
	}
	if !(payload.Alert{}).Stale(built) {
		t.Error("an alert without a time is fresh")
	}
}

// What Validate takes, a phone reads: an instant that is sent as the zero time is none.
func TestInstantThatIsSentAsZero(t *testing.T) {
	a := payload.NewFailure("node-a", "backup")
	a.Time = time.Time{}.Add(time.Nanosecond)
	var field *payload.FieldError
	if err := a.Validate(); !errors.As(err, &field) || field.Field != "ts" {
		t.Errorf("%v", err)
	}
}

func TestZeroFieldErrorPrints(t *testing.T) {
	if text := (&payload.FieldError{}).Error(); !strings.HasPrefix(text, "payload: ") {
		t.Errorf("%q", text)
	}
}

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }
