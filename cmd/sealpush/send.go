package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/seal"
)

// maxAlertJSON is in bytes: what payload.Parse takes.
const maxAlertJSON = 64 << 10

type sendOptions struct {
	pager    pagerOptions
	kind     string
	name     string
	event    string
	subject  string
	message  string
	exitCode exitCodeFlag
	log      string
	json     bool
	verbose  bool
}

func sendCommand() command {
	return command{
		name:    "send",
		summary: "send one alert to the phones",
		usage:   "[flags]",
		text: `The alert is made of the flags:

    sealpush send -name backup -message "no space left" -log-tail /var/log/backup.log
    journalctl -u backup -n 40 | sealpush send -name backup -log-tail -
    sealpush send -kind event -event deployed -name web -subject "Version 12 is live" -priority passive

With -json it is read from standard input, with the members that docs/protocol.md lists for the sealed plaintext: kind and
name, and what else is known. v, host, ts and success are filled in where they are missing, and a member that cannot be used
is an error. -log-tail adds the end of a file to it.

    echo '{"kind":"failure","name":"backup","exit_code":3,"fail_reason":"no space left"}' | sealpush send -json

The exit code is 0 when the relay has accepted the alert for every phone that is paired, 1 when it has not for one of them,
and 2 when the alert, a flag or the configuration is wrong: then nothing was sent. Standard error says what went wrong, and
-v says on standard output what became of the alert for each phone. An accepted alert is not yet one that a phone has shown.

While a relay cannot be reached, send waits for it, for as long as -patience says. With -spool, what could not be posted goes
out with the next send or run that has the same spool, as 'sealpush help run' describes; the exit code is 1 all the same.`,
		setup: func(s *settings) runFunc {
			o := sendOptions{kind: string(payload.KindFailure)}
			s.pager(&o.pager)
			s.spool(&o.pager.spool)
			kinds := []string{string(payload.KindFailure), string(payload.KindSuccess), string(payload.KindEvent)}
			s.flags.Var(choice{&o.kind, kinds}, "kind", "`kind` of the alert: failure, success or event")
			s.flags.StringVar(&o.name, "name", "", "`name` of the job, or of what the event is about")
			s.flags.StringVar(&o.event, "event", "", "with -kind event: a `word` for what happened, the same whenever it happens again")
			s.flags.StringVar(&o.subject, "subject", "", "with -kind event: the headline, one `line`")
			s.flags.StringVar(&o.message, "message", "", "why a job failed, or the `text` below an event's headline")
			s.flags.Var(&o.exitCode, "exit-code", "the job's exit `code`")
			s.flags.StringVar(&o.log, "log-tail", "", "`file` whose last lines the phone shows, or - for standard input")
			s.flags.BoolVar(&o.json, "json", false, "read the alert as JSON from standard input")
			s.flags.BoolVar(&o.verbose, "v", false, "print what became of the alert for each phone")
			return func(ctx context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				return o.run(ctx, s)
			}
		},
	}
}

func (o sendOptions) run(ctx context.Context, s *settings) error {
	p := s.newPager(o.pager)
	defer p.close()
	if p.err != nil {
		return usageError{p.err}
	}
	var alert payload.Alert
	var err error
	read := make(chan struct{})
	go func() {
		defer close(read)
		alert, err = o.alert()
	}()
	select {
	case <-read:
	case <-ctx.Done(): // standard input may never end
		return errors.New("interrupted: nothing was sent")
	}
	if err != nil {
		return err
	}
	if alert.Host == "" {
		alert.Host = p.host
	}
	// A phone with a larger key takes a little less, and says so by itself.
	if _, err := payload.Fit(alert, seal.X25519.MaxPlaintext(3000)); err != nil {
		return usageError{fmt.Errorf("the alert cannot be sent: %w", err)}
	}
	outcomes, accepted := p.page(ctx, alert)
	for _, outcome := range outcomes {
		if outcome.Relay == relayclient.Coalesced { // package relayclient logs the others that do not ring
			p.say("phone %s does not show this alert: within the last 75 seconds the relay got one with the same %s, "+
				"so it treats this one as a repetition", outcome.DeviceID, identity(alert))
		}
	}
	if o.verbose {
		for _, outcome := range outcomes {
			what := "not accepted"
			if outcome.Err == nil {
				what = strings.TrimSuffix("accepted, "+string(outcome.Relay), ", ")
			}
			fmt.Printf("%s  %s\n", outcome.DeviceID, what)
		}
	}
	if !accepted {
		return exitError(exitFailed)
	}
	return nil
}

// identity names the members that make two alerts the same for a relay, as in Alert.CollapseID.
func identity(alert payload.Alert) string {
	switch {
	case alert.Event != "":
		return "event and name"
	case alert.RunID != "":
		return "name and run id"
	}
	return "name"
}

// alert is what the flags or standard input say. Its host may be empty.
func (o sendOptions) alert() (alert payload.Alert, err error) {
	if o.json {
		if o.kind != string(payload.KindFailure) || o.name+o.event+o.subject+o.message+o.exitCode.String() != "" || o.log == "-" {
			return alert, usagef("-json goes with -log-tail FILE, and with no other flag that says what is in the alert")
		}
		if alert, err = readAlert(os.Stdin); err != nil {
			return alert, usageError{fmt.Errorf("the alert on standard input: %w", err)}
		}
	} else {
		if o.name == "" {
			return alert, usagef("-name is missing: the job, or what the event is about")
		}
		switch payload.Kind(o.kind) {
		case payload.KindEvent:
			alert = payload.NewEvent("", o.name, o.event)
			alert.Subject, alert.Message = o.subject, o.message
		case payload.KindSuccess:
			alert = payload.NewSuccess("", o.name)
		default:
			alert = payload.NewFailure("", o.name)
		}
		if alert.Kind != payload.KindEvent {
			if o.event+o.subject != "" {
				return alert, usagef("-event and -subject go with -kind event")
			}
			if alert.Success && o.message != "" {
				return alert, usagef("-message goes with a failure or an event")
			}
			alert.FailReason = o.message
		}
		alert.ExitCode = o.exitCode.value
	}
	if o.log != "" {
		if alert.LogTail, err = readTail(o.log); err != nil {
			return alert, usageError{err}
		}
	}
	return alert, nil
}

// readTail returns the last lines of a file, or of standard input.
func readTail(path string) ([]string, error) {
	file := os.Stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return nil, err
		}
		defer file.Close()
		file.Seek(-tailSize, io.SeekEnd) // fails where the file is shorter, or a pipe
	}
	var end tail
	if _, err := io.Copy(&end, file); err != nil {
		return nil, err
	}
	return end.lines(), nil
}

// readAlert reads a JSON document as payload.Parse does, but refuses members that it cannot use.
func readAlert(from io.Reader) (payload.Alert, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxAlertJSON+1))
	if err != nil {
		return payload.Alert{}, err
	}
	if len(text) > maxAlertJSON {
		return payload.Alert{}, fmt.Errorf("it has more than %d bytes", maxAlertJSON)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return payload.Alert{}, errors.New(`it is no JSON object such as {"kind":"failure","name":"backup"}`)
	}
	fill := func(member string, value any) {
		if _, given := members[member]; !given {
			members[member], _ = json.Marshal(value)
		}
	}
	_, named := members["host"]
	fill("v", payload.Version)
	fill("host", "-")
	fill("ts", time.Now().UTC().Format(time.RFC3339))
	kind := payload.Kind(strings.Trim(string(members["kind"]), `"`))
	fill("success", kind == payload.KindSuccess || kind == payload.KindTest)
	filled, err := json.Marshal(members)
	if err != nil {
		return payload.Alert{}, err
	}
	alert, err := payload.Parse(filled)
	if err != nil {
		return payload.Alert{}, err
	}
	if len(alert.LogTail) > payload.MaxLogLines {
		alert.LogTail = alert.LogTail[len(alert.LogTail)-payload.MaxLogLines:]
	}
	taken, err := alert.MarshalJSON()
	if err != nil {
		return payload.Alert{}, err
	}
	used := map[string]json.RawMessage{}
	if err := json.Unmarshal(taken, &used); err != nil {
		return payload.Alert{}, err
	}
	var unused []string
	for member, value := range members {
		if _, ok := used[member]; !ok && !slices.Contains([]string{"null", `""`, "[]"}, string(value)) {
			unused = append(unused, member)
		}
	}
	if len(unused) > 0 {
		slices.Sort(unused)
		return payload.Alert{}, fmt.Errorf("%q: no such member, or not of its type: see docs/protocol.md", unused)
	}
	if !named {
		alert.Host = ""
	}
	return alert, nil
}

// An exitCodeFlag is a number, or none.
type exitCodeFlag struct{ value *int }

// String returns what Set takes.
func (f exitCodeFlag) String() string {
	if f.value == nil {
		return ""
	}
	return fmt.Sprint(*f.value)
}

// Set takes a number.
func (f *exitCodeFlag) Set(text string) error {
	var code int
	if _, err := fmt.Sscanf(text, "%d", &code); err != nil || fmt.Sprint(code) != text {
		return errors.New("it takes a number")
	}
	f.value = &code
	return nil
}
