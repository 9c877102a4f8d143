package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// What a check can find.
const (
	ok   = "ok"
	warn = "warn" // it works, but should not stay so
	fail = "FAIL" // pages do not arrive
)

// A finding is what one check found.
type finding struct {
	Area   string `json:"area"`
	Result string `json:"result"`
	Text   string `json:"text"`
	ToDo   string `json:"toDo,omitempty"`
}

// A report prints findings as they come, so that a check that takes long is seen
// to come after those that did not. Nothing that it is told may hold a secret.
type report struct {
	out      io.Writer
	quiet    bool // until the end, which is then JSON
	area     string
	findings []finding
}

// begin starts the findings about one thing.
func (r *report) begin(area string) {
	if !r.quiet {
		if r.area != "" {
			fmt.Fprintln(r.out)
		}
		fmt.Fprintln(r.out, area)
	}
	r.area = area
}

func (r *report) ok(format string, args ...any) { r.add(ok, fmt.Sprintf(format, args...), "") }

func (r *report) warn(toDo, format string, args ...any) {
	r.add(warn, fmt.Sprintf(format, args...), toDo)
}

func (r *report) fail(toDo, format string, args ...any) {
	r.add(fail, fmt.Sprintf(format, args...), toDo)
}

func (r *report) add(result, text, toDo string) {
	r.findings = append(r.findings, finding{r.area, result, text, toDo})
	if r.quiet {
		return
	}
	fmt.Fprintf(r.out, "  %-4s  %s\n", result, indented(text))
	if toDo != "" {
		fmt.Fprintf(r.out, "        -> %s\n", indented(toDo))
	}
}

// indented keeps further lines below the first.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n        ") }

func (r *report) count(result string) (n int) {
	for _, f := range r.findings {
		if f.Result == result {
			n++
		}
	}
	return n
}

func (r *report) healthy() bool { return r.count(fail) == 0 }

// finish prints the sum, and a note if there is one.
func (r *report) finish(note string) error {
	if r.quiet {
		encoder := json.NewEncoder(r.out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(struct {
			Healthy  bool      `json:"healthy"`
			Findings []finding `json:"findings"`
			Note     string    `json:"note,omitempty"`
		}{r.healthy(), r.findings, note})
	}
	if note != "" {
		note = "\n" + note + "\n"
	}
	_, err := fmt.Fprintf(r.out, "\n%d checks: %d ok, %d to look at, %d failed.\n%s",
		len(r.findings), r.count(ok), r.count(warn), r.count(fail), note)
	return err
}
