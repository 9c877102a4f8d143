package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func doctorCommand() command {
	return command{
		name:    "doctor",
		summary: "check a configuration from end to end, and say what to do about each problem",
		usage:   "[flags]",
		text: `A daemon's or this tool's configuration, and a bridge's:

    sealpush doctor -relay-url URL -registry devices.json
    sealpush doctor -bridge common.toml

It pages nobody unless asked, changes nothing, and prints no secret. With -page it also sends a test alert to each phone, and a
notification through the bridge's relay. It exits with 1 when a check failed; warnings do not count.

When there is no relay, registry or bridge in the flags, the environment and the configuration, it checks what examples/daemon
and sealpush phone keep, or else a reference setup in this process, to show what a good run looks like. A file with settings
that names none of them is an error.`,
		setup: func(s *settings) runFunc {
			var opts doctorOptions
			s.relayURL(&opts.relay)
			s.registry(&opts.registry)
			s.flags.StringVar(&opts.bridge, "bridge", "", "a bridge's common.toml: the `file` with its [push_relay] table")
			s.flags.BoolVar(&opts.page, "page", false, "send a test alert to each phone, and a notification through the bridge's relay")
			s.flags.BoolVar(&opts.json, "json", false, "print one JSON document instead of text")
			return func(ctx context.Context, args []string) error {
				if len(args) > 0 { // not quoted: it may be a URL with a password
					return usagef("an argument without a flag: the relay's URL belongs after -relay-url, files after -registry and -bridge")
				}
				for _, name := range []string{"relay-url", "registry", "bridge"} {
					if s.emptied(name) {
						return usagef("-%s is empty: set the variable that it is taken from", name)
					}
				}
				if _, err := os.Stat(opts.registry); err != nil && s.origin["registry"] == "" {
					opts.registry = "" // the user's own, which nobody named, and which is not there
				}
				if opts.page && opts.bridge == "" && (opts.relay == "") != (opts.registry == "") {
					return usagef("-page takes both -relay-url and -registry, or -bridge")
				}
				if opts.relay+opts.registry+opts.bridge == "" {
					if err := s.nothingToCheck(); err != nil {
						return err
					}
				}
				healthy, err := opts.run(ctx, os.Stdout)
				if err == nil && !healthy {
					err = exitError(exitFailed)
				}
				return err
			}
		},
	}
}

// nothingToCheck returns an error if the settings name nothing to check and the reference setup would be misleading:
// there is a file with settings, or the place of the user's file is unknown.
func (s *settings) nothingToCheck() error {
	_, err := os.UserConfigDir()
	switch {
	case len(s.read) > 0:
		return usagef("nothing to check: no relay and no registry in %s: set relay_url and registry there, "+
			"or pair a phone: sealpush pair -relay-url URL", strings.Join(s.read, ", "))
	case len(s.unread) > 0, err != nil:
		return usagef("nothing to check: %w", s.missing("relay-url"))
	}
	return nil
}

type doctorOptions struct {
	relay    string
	registry string
	bridge   string
	page     bool
	json     bool
}

// run checks what the options name, and says whether nothing failed.
func (opts doctorOptions) run(ctx context.Context, out io.Writer) (healthy bool, err error) {
	note := ""
	switch {
	case opts.relay == "" && opts.registry == "" && opts.bridge == "":
		what, cleanUp, err := opts.fillIn(ctx)
		if err != nil {
			return false, err
		}
		defer cleanUp()
		if note = yours; opts.json {
			note = what + "\n\n" + yours
		} else {
			fmt.Fprintln(out, what+"\n")
		}
	case opts.relay == "" && opts.registry != "":
		note = "The relay was not checked: pass its URL with -relay-url."
	case opts.relay != "" && opts.registry == "":
		note = "The paired phones were not checked: pass the registry with -registry."
	}
	r := &report{out: out, quiet: opts.json}
	otherServer := opts.relay != "" && checkRelay(ctx, r, opts.relay)
	if opts.registry != "" {
		checkRegistry(ctx, r, opts.registry)
	}
	switch {
	case !opts.page || opts.relay == "" || opts.registry == "":
	case otherServer:
		r.begin("Test alerts")
		r.fail("Correct the relay's URL first.", "nobody was paged: an envelope names its phone, and is for a relay alone")
	default:
		pagePhones(ctx, r, opts.relay, opts.registry)
	}
	if opts.bridge != "" {
		checkBridge(ctx, r, opts.bridge, opts.page)
	}
	if ctx.Err() != nil {
		return false, errors.New("interrupted")
	}
	return r.healthy(), r.finish(note)
}

// What a check can find.
const (
	resultOK   = "ok"
	resultWarn = "warn" // it works, but should not stay so
	resultFail = "FAIL" // pages do not arrive
)

// A finding is what one check found.
type finding struct {
	Area   string `json:"area"`
	Result string `json:"result"`
	Text   string `json:"text"`
	ToDo   string `json:"toDo,omitempty"`
}

// A report prints each finding at once, so that the user sees progress while a check takes long. Nothing that it is
// told may hold a secret.
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

func (r *report) ok(format string, args ...any) { r.add(resultOK, fmt.Sprintf(format, args...), "") }

func (r *report) warn(toDo, format string, args ...any) {
	r.add(resultWarn, fmt.Sprintf(format, args...), toDo)
}

func (r *report) fail(toDo, format string, args ...any) {
	r.add(resultFail, fmt.Sprintf(format, args...), toDo)
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

func (r *report) healthy() bool { return r.count(resultFail) == 0 }

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
		len(r.findings), r.count(resultOK), r.count(resultWarn), r.count(resultFail), note)
	return err
}
