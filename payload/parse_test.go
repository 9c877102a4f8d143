package payload_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
)

// common are the members that every alert has, without the closing brace.
const common = `{"v":1,"kind":"failure","name":"backup","success":false,"host":"node-a","ts":"2026-07-23T01:02:03+00:00"`

func TestParseAccepts(t *testing.T) {
	ts := time.Date(2026, 7, 23, 1, 2, 3, 0, time.UTC)
	base := payload.Alert{Kind: payload.KindFailure, Name: "backup", Host: "node-a", Time: ts}
	with := func(change func(*payload.Alert)) payload.Alert {
		a := base
		change(&a)
		return a
	}
	for _, c := range []struct {
		name, plaintext string
		want            payload.Alert
	}{
		{"common members", common + `}`, base},
		{"white space", " \n" + strings.ReplaceAll(common, ",", " ,\t") + "\r} \n", base},
		{"unknown members", common + `,"color":"red","deep":{"v":2,"name":[1,{}]},"badge":null}`, base},
		{"names in another case are unknown", common + `,"V":2,"NAME":"x","Run_Id":"x","LOG_TAIL":1}`, base},
		{"null is absent", common + `,"run_id":null,"exit_code":null,"log_tail":null,"started_at":null,"threshold_seconds":null}`, base},
		{"empty is absent", common + `,"run_id":"","log_tail":[],"started_at":""}`, base},
		{"the last of a member counts", common + `,"name":"first","name":"second"}`, with(func(a *payload.Alert) { a.Name = "second" })},
		{"zeros are values", common + `,"exit_code":0,"threshold_seconds":0,"observed_seconds":0}`, with(func(a *payload.Alert) {
			a.ExitCode, a.ThresholdSeconds, a.ObservedSeconds = new(0), new(0.0), new(0.0)
		})},
		{"an escaped name", common + `,"name":"\u0062\ud83d\ude80\/\u2028"}`, with(func(a *payload.Alert) { a.Name = "b🚀/\u2028" })},
		{"a lone surrogate", common + `,"name":"\ud800"}`, with(func(a *payload.Alert) { a.Name = "\ufffd" })},
		{"Z", common + `,"ts":"2026-07-23T01:02:03Z"}`, base},
		{"an offset", common + `,"ts":"2026-07-23T06:32:03+05:30"}`, base},
		{"fractions", common + `,"ts":"2026-07-23T01:02:03.5+00:00","started_at":"2026-07-22T23:02:03.000250-02:00"}`, with(func(a *payload.Alert) {
			a.Time, a.StartedAt = ts.Add(500*time.Millisecond), ts.Add(250*time.Microsecond)
		})},
		{"nanoseconds and beyond", common + `,"started_at":"2026-07-23T01:02:03.0000000019Z"}`, with(func(a *payload.Alert) { a.StartedAt = ts.Add(1) })},
		{"an event nobody knows", strings.Replace(common, "failure", "event", 1) + `,"event":"disk_full"}`, with(func(a *payload.Alert) {
			a.Kind, a.Event = payload.KindEvent, "disk_full"
		})},
		{"what Validate would refuse", common + `,"subject":"x"}`, with(func(a *payload.Alert) { a.Subject = "x" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := payload.Parse([]byte(c.plaintext))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Time.Location() != time.UTC {
				t.Errorf("time in %s", got.Time.Location())
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	without := func(member string) string {
		var members map[string]any
		if err := json.Unmarshal([]byte(common+"}"), &members); err != nil {
			t.Fatal(err)
		}
		if _, ok := members[member]; !ok {
			t.Fatalf("no member %s", member)
		}
		delete(members, member)
		data, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct{ name, plaintext, field string }{
		{"nothing", "", ""},
		{"no JSON", "hello", ""},
		{"cut short", common, ""},
		{"more after it", common + `}{}`, ""},
		{"an array", `[` + common + `}]`, ""},
		{"text", `"v"`, ""},
		{"a BOM", "\ufeff" + common + `}`, ""},
		{"not UTF-8", common + ",\"color\":\"\xff\"}", ""},
		{"a raw control character", common + ",\"color\":\"\n\"}", ""},
		{"NaN", common + `,"threshold_seconds":NaN}`, ""},
		{"deep", common + `,"deep":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`, ""},
		{"huge", common + `,"pad":"` + strings.Repeat("x", 10<<20) + `"}`, ""},
		{"null", "null", "v"},
		{"no version", without("v"), "v"},
		{"no kind", without("kind"), "kind"},
		{"no name", without("name"), "name"},
		{"no success", without("success"), "success"},
		{"no host", without("host"), "host"},
		{"no time", without("ts"), "ts"},
		{"null version", common + `,"v":null}`, "v"},
		{"null kind", common + `,"kind":null}`, "kind"},
		{"null success", common + `,"success":null}`, "success"},
		{"null time", common + `,"ts":null}`, "ts"},
		{"empty name", common + `,"name":""}`, "name"},
		{"empty host", common + `,"host":""}`, "host"},
		{"version as text", common + `,"v":"1"}`, "v"},
		{"version 1.5", common + `,"v":1.5}`, "v"},
		{"unknown kind", common + `,"kind":"FAILURE"}`, "kind"},
		{"success as a number", common + `,"success":0}`, "success"},
		{"name as a number", common + `,"name":7}`, "name"},
		{"exit code as text", common + `,"exit_code":"1"}`, "exit_code"},
		{"exit code 1.5", common + `,"exit_code":1.5}`, "exit_code"},
		{"exit code 1e400", common + `,"exit_code":1e400}`, "exit_code"},
		{"threshold 1e400", common + `,"threshold_seconds":1e400}`, "threshold_seconds"},
		{"observed true", common + `,"observed_seconds":true}`, "observed_seconds"},
		{"log tail as text", common + `,"log_tail":"line"}`, "log_tail"},
		{"log tail of numbers", common + `,"log_tail":[1]}`, "log_tail"},
		{"time as a number", common + `,"ts":1784768523}`, "ts"},
		{"time without a zone", common + `,"ts":"2026-07-23T01:02:03"}`, "ts"},
		{"30 February", common + `,"ts":"2026-02-30T01:02:03Z"}`, "ts"},
		{"year 0 in UTC", common + `,"ts":"0001-01-01T00:00:00+14:00"}`, "ts"},
		{"year 10000 in UTC", common + `,"started_at":"9999-12-31T23:59:59-14:00"}`, "started_at"},
		{"the zero time", common + `,"ts":"0001-01-01T00:00:00Z"}`, "ts"},
		{"last success as a date", common + `,"last_success_at":"2026-07-23"}`, "last_success_at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := payload.Parse([]byte(c.plaintext))
			requireFieldError(t, err, c.field)
			if diff := cmp.Diff(payload.Alert{}, got); diff != "" {
				t.Errorf("an alert beside the error:\n%s", diff)
			}
			if errors.Is(err, payload.ErrVersion) {
				t.Errorf("%v is taken for another version", err)
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	for _, v := range []string{"2", "0", "-1"} {
		_, err := payload.Parse([]byte(`{"v":` + v + `,"kind":"hologram"}`))
		requireFieldError(t, err, "v")
		if !errors.Is(err, payload.ErrVersion) {
			t.Errorf("version %s: %v is not ErrVersion", v, err)
		}
	}
}
