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
		{"nothing", "", "plaintext"},
		{"no JSON", "hello", "plaintext"},
		{"cut short", common, "plaintext"},
		{"more after it", common + `}{}`, "plaintext"},
		{"an array", `[` + common + `}]`, "plaintext"},
		{"text", `"v"`, "plaintext"},
		{"a raw control character", common + ",\"color\":\"\n\"}", "plaintext"},
		{"NaN", common + `,"threshold_seconds":NaN}`, "plaintext"},
		{"deep", common + `,"deep":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`, "plaintext"},
		{"huge", common + `,"pad":"` + strings.Repeat("x", 10<<20) + `"}`, "plaintext"},
		{"null", "null", "v"},
		{"no version", without("v"), "v"},
		{"no kind", without("kind"), "kind"},
		{"no name", without("name"), "name"},
		{"no host", without("host"), "host"},
		{"null version", common + `,"v":null}`, "v"},
		{"null kind", common + `,"kind":null}`, "kind"},
		{"empty name", common + `,"name":""}`, "name"},
		{"empty host", common + `,"host":""}`, "host"},
		{"version as text", common + `,"v":"1"}`, "v"},
		{"version 1.5", common + `,"v":1.5}`, "v"},
		{"kind as a number", common + `,"kind":7}`, "kind"},
		{"empty kind", common + `,"kind":""}`, "kind"},
		{"host as an array", common + `,"host":["a"]}`, "host"},
		{"name as a number", common + `,"name":7}`, "name"},
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

// TestParseShowsWhatItCan: a member that is missing or wrong costs that member and nothing else.
func TestParseShowsWhatItCan(t *testing.T) {
	whole := `,"run_id":"r1","exit_code":1,"started_at":"2026-07-23T01:02:00Z","log_tail":["cause"],"threshold_seconds":1.5}`
	want, err := payload.Parse([]byte(common + whole))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, members string
		change        func(*payload.Alert) // what is lost
	}{
		{"a kind of tomorrow", `"kind":"digest"`, func(a *payload.Alert) { a.Kind = "digest" }},
		{"exit code 3.0", `"exit_code":3.0`, func(a *payload.Alert) { a.ExitCode = new(3) }},
		{"exit code 3e0", `"exit_code":3e0`, func(a *payload.Alert) { a.ExitCode = new(3) }},
		{"version 1.0", `"v":1.0`, func(*payload.Alert) {}},
		{"exit code as text", `"exit_code":"1"`, func(a *payload.Alert) { a.ExitCode = nil }},
		{"exit code 1.5", `"exit_code":1.5`, func(a *payload.Alert) { a.ExitCode = nil }},
		{"exit code 1e400", `"exit_code":1e400`, func(a *payload.Alert) { a.ExitCode = nil }},
		{"exit code 1e300", `"exit_code":1e300`, func(a *payload.Alert) { a.ExitCode = nil }},
		{"threshold 1e400", `"threshold_seconds":1e400`, func(a *payload.Alert) { a.ThresholdSeconds = nil }},
		{"threshold true", `"threshold_seconds":true`, func(a *payload.Alert) { a.ThresholdSeconds = nil }},
		{"log tail as text", `"log_tail":"line"`, func(a *payload.Alert) { a.LogTail = nil }},
		{"log tail of numbers", `"log_tail":["a",1]`, func(a *payload.Alert) { a.LogTail = nil }},
		{"run id as a number", `"run_id":7`, func(a *payload.Alert) { a.RunID = "" }},
		{"success null", `"success":null`, func(*payload.Alert) {}},
		{"success as a number", `"success":1`, func(*payload.Alert) {}},
		{"start without an offset", `"started_at":"2026-07-23T01:02:03"`, func(a *payload.Alert) { a.StartedAt = time.Time{} }},
		{"start as a date", `"started_at":"2026-07-23"`, func(a *payload.Alert) { a.StartedAt = time.Time{} }},
		{"start in year 10000", `"started_at":"9999-12-31T23:59:59-14:00"`, func(a *payload.Alert) { a.StartedAt = time.Time{} }},
		{"ts with a leap second", `"ts":"2026-06-30T23:59:60Z"`, func(a *payload.Alert) { a.Time = time.Time{} }},
		{"ts without an offset", `"ts":"2026-07-23T01:02:03"`, func(a *payload.Alert) { a.Time = time.Time{} }},
		{"ts on 30 February", `"ts":"2026-02-30T01:02:03Z"`, func(a *payload.Alert) { a.Time = time.Time{} }},
		{"ts in year 0", `"ts":"0001-01-01T00:00:00+14:00"`, func(a *payload.Alert) { a.Time = time.Time{} }},
		{"ts as a number", `"ts":1784768523`, func(a *payload.Alert) { a.Time = time.Time{} }},
		{"ts null", `"ts":null`, func(a *payload.Alert) { a.Time = time.Time{} }},
		{"bytes that are not UTF-8", "\"run_id\":\"a\xff\"", func(a *payload.Alert) { a.RunID = "a\ufffd" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := want
			c.change(&want)
			got, err := payload.Parse([]byte(strings.TrimSuffix(common+whole, "}") + "," + c.members + "}"))
			if err != nil {
				t.Fatalf("the page is lost: %v", err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if now := time.Date(2026, 7, 23, 1, 2, 4, 0, time.UTC); got.Stale(now) != want.Time.IsZero() {
				t.Errorf("stale: %t, with a time of %v", got.Stale(now), got.Time)
			}
		})
	}
	for name, plaintext := range map[string]string{
		"a byte order mark": "\ufeff" + common + "}",
		"no success, no ts": `{"v":1,"kind":"failure","name":"backup","host":"node-a"}`,
	} {
		got, err := payload.Parse([]byte(plaintext))
		if err != nil || got.Name != "backup" {
			t.Errorf("%s: %q, %v", name, got.Name, err)
		}
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
