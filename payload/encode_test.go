package payload_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
)

func TestText(t *testing.T) {
	var ascii strings.Builder
	for c := range 0x80 {
		ascii.WriteByte(byte(c))
	}
	for _, c := range []struct{ name, text string }{
		{"all of ASCII", ascii.String()},
		{"line separators, HTML, NBSP and a BOM", "\u2028\u2029<>&\u00a0\ufeff\u202e"},
		{"the ends of each UTF-8 length", "\u007f\u0080\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"},
		{"a replacement character", "\ufffd"},
		{"lone continuation", "a\x80b"},
		{"truncated at each length", "\xc3|\xe6\x97|\xf0\x9f\x9a|\xf0\x9f|\xf0"},
		{"an encoded surrogate", "\xed\xa0\x80"},
		{"overlong", "\xc0\xaf\xe0\x80\xaf"},
		{"beyond Unicode", "\xf4\x90\x80\x80\xff\xfe"},
		{"all bytes", func() string {
			b := make([]byte, 256)
			for i := range b {
				b[i] = byte(i)
			}
			return string(b)
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			// At each offset, so that what is looked at eight bytes at a time is met at each of them.
			for shift := range 9 {
				alert := payload.NewFailure("node-a", strings.Repeat("x", shift)+c.text+strings.Repeat("y", shift))
				alert.LogTail = []string{c.text, alert.Name}
				got, err := alert.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(referenceEncode(t, alert), string(got)); diff != "" {
					t.Fatalf("shift %d (-want +got):\n%s", shift, diff)
				}
			}
		})
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		value float64
		want  string
	}{
		{0, "0"},
		{math.Copysign(0, -1), "0"},
		{60, "60"},
		{-60, "-60"},
		{0.5, "0.5"},
		{7201.25, "7201.25"},
		{0.30000000000000004, "0.30000000000000004"},
		{0.0001, "0.0001"},
		{0.00001, "1e-05"},
		{1e15, "1000000000000000"},
		{9007199254740993, "9007199254740992"},
		{1e16, "1e+16"},
		{-1.5e300, "-1.5e+300"},
		{math.MaxFloat64, "1.7976931348623157e+308"},
		{math.SmallestNonzeroFloat64, "5e-324"},
	} {
		t.Run(c.want, func(t *testing.T) {
			alert := payload.NewSLA("node-a", "job", payload.CheckMaxRuntime, 0, 0)
			alert.ObservedSeconds = &c.value
			fitted, err := payload.Fit(alert, maxPlaintext)
			if err != nil {
				t.Fatal(err)
			}
			if want := `"threshold_seconds":0,"observed_seconds":` + c.want + `}`; !strings.HasSuffix(string(fitted.Plaintext), want) {
				t.Errorf("%s, want %s at its end", fitted.Plaintext, want)
			}
			parsed, err := payload.Parse(fitted.Plaintext)
			if err != nil {
				t.Fatal(err)
			}
			if *parsed.ObservedSeconds != c.value {
				t.Errorf("the phone reads %v", *parsed.ObservedSeconds)
			}
		})
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		alert := payload.NewSLA("node-a", "job", payload.CheckMaxRuntime, 0, 0)
		alert.ThresholdSeconds = &bad
		_, err := alert.MarshalJSON()
		requireFieldError(t, err, "threshold_seconds")
	}
}

func TestExitCodes(t *testing.T) {
	for code, want := range map[int]string{0: "0", -9: "-9", 137: "137", math.MinInt32: "-2147483648"} {
		alert := payload.NewFailure("node-a", "job")
		alert.ExitCode = &code
		plaintext, err := alert.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(string(plaintext), `,"exit_code":`+want+`}`) {
			t.Errorf("%s, want exit code %s", plaintext, want)
		}
	}
}

func TestTimes(t *testing.T) {
	east := time.FixedZone("east", 5*3600+1800)
	for _, c := range []struct {
		name        string
		time        time.Time
		ts, started string
	}{
		{"whole seconds", time.Date(2026, 7, 23, 1, 2, 3, 0, time.UTC), "2026-07-23T01:02:03+00:00", "2026-07-23T01:02:03+00:00"},
		{"another zone", time.Date(2026, 7, 23, 1, 2, 3, 0, east), "2026-07-22T19:32:03+00:00", "2026-07-22T19:32:03+00:00"},
		{"a fraction", time.Date(2026, 7, 23, 1, 2, 3, 120_000_000, time.UTC), "2026-07-23T01:02:03+00:00", "2026-07-23T01:02:03.120000+00:00"},
		{"just before the next second", time.Date(2026, 7, 23, 1, 2, 3, 999_999_999, time.UTC), "2026-07-23T01:02:03+00:00", "2026-07-23T01:02:03.999999+00:00"},
		{"less than a microsecond", time.Date(2026, 7, 23, 1, 2, 3, 999, time.UTC), "2026-07-23T01:02:03+00:00", "2026-07-23T01:02:03+00:00"},
		{"before 1970", time.Date(1969, 12, 31, 23, 59, 59, 500_000_000, time.UTC), "1969-12-31T23:59:59+00:00", "1969-12-31T23:59:59.500000+00:00"},
		{"a short year", time.Date(33, 4, 3, 15, 0, 0, 0, time.UTC), "0033-04-03T15:00:00+00:00", "0033-04-03T15:00:00+00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			alert := payload.NewFailure("node-a", "job")
			alert.Time, alert.StartedAt = c.time, c.time
			plaintext, err := alert.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if want := `"ts":"` + c.ts + `","started_at":"` + c.started + `"}`; !strings.HasSuffix(string(plaintext), want) {
				t.Errorf("%s, want %s at its end", plaintext, want)
			}
			if want := referenceEncode(t, alert); string(plaintext) != want {
				t.Errorf("got  %s\nwant %s", plaintext, want)
			}
		})
	}
}

// TestEncodingJSON shows what a caller gets who uses encoding/json: the same alert in other bytes.
func TestEncodingJSON(t *testing.T) {
	alert := payload.NewFailure("node-a", "a<b>&c\u2028")
	alert.RunID, alert.ExitCode = "run-1", new(0)
	data, err := json.Marshal(map[string]payload.Alert{"alert": alert})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]payload.Alert
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(alert, back["alert"]); diff != "" {
		t.Errorf("through encoding/json (-want +got):\n%s", diff)
	}
	err = json.Unmarshal([]byte(`{"alert":{"v":2}}`), &back)
	requireFieldError(t, err, "v")
}
