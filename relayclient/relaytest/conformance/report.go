package conformance

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Report is what an [Evaluate] found. Its JSON has the same members as the struct, and durations in nanoseconds. It
// holds no credentials, and of device tokens only made-up ones, where a relay quotes them.
type Report struct {
	SealedRelay  string        `json:"sealedRelay,omitempty"`  // URL without credentials and query
	TokenService string        `json:"tokenService,omitempty"` // likewise
	BridgeRelay  string        `json:"bridgeRelay,omitempty"`  // likewise
	Results      []Result      `json:"results"`                // in the order of Checks
	Duration     time.Duration `json:"nanoseconds"`
}

// A Result is what one check came to.
type Result struct {
	Check    string        `json:"check"`
	Part     Part          `json:"part"`
	Level    Level         `json:"level"`
	Verdict  Verdict       `json:"verdict"`
	Detail   string        `json:"detail,omitempty"` // what is different, or why there is no verdict; "" for a pass
	Source   string        `json:"source"`
	Sentence string        `json:"sentence"`
	Duration time.Duration `json:"nanoseconds"`
}

func newReport(t Target) Report {
	report := Report{Results: []Result{}}
	if t.URL != "" {
		report.SealedRelay = redactURL(t.URL)
	}
	if !t.Bridge.isZero() {
		report.TokenService, report.BridgeRelay = redactURL(t.Bridge.TokenURL), redactURL(t.Bridge.RelayURL)
	}
	return report
}

// OK reports whether no check failed, which only a [Must] can.
func (r Report) OK() bool { return r.Count(Fail) == 0 }

// Count is how many checks came to a verdict.
func (r Report) Count(v Verdict) (n int) {
	for _, result := range r.Results {
		if result.Verdict == v {
			n++
		}
	}
	return n
}

// WriteText writes a line for each check and, below those that did not pass, why; then the sum. A MUST that failed also
// shows its sentence.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, part := range []struct {
		part  Part
		title string
	}{
		{SealedRelay, "sealed relay " + r.SealedRelay},
		{BridgeRelay, "bridge relay " + r.BridgeRelay + ", token service " + r.TokenService},
	} {
		title := part.title + "\n"
		for _, result := range r.Results {
			if result.Part != part.part {
				continue
			}
			b.WriteString(title)
			title = ""
			result.writeText(&b)
		}
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d not stated\n", r.Count(Pass), r.Count(Fail), r.Count(NotStated))
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Result) writeText(w io.Writer) {
	fmt.Fprintf(w, "  %-10s  %-4s  %s\n", r.Verdict, r.Level, r.Check)
	if r.Detail != "" {
		fmt.Fprintf(w, "              %s\n", r.Detail)
	}
	if r.Verdict == Fail {
		fmt.Fprintf(w, "              %s: %q\n", r.Source, r.Sentence)
	}
}
