package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// show prints what a phone would. A stale alert is marked, so that nobody takes an old page that somebody delivers
// again for a live one (relay protocol, "Replay protection").
func show(w io.Writer, n relaytest.Notification) {
	a := n.Alert
	when := a.Time.Local().Format(time.TimeOnly) + " "
	if n.Stale {
		when = a.Time.Local().Format(time.DateTime) + "  STALE"
	}
	fmt.Fprintf(w, "%s %-8s %s on %s%s\n", when, printable(strings.ToUpper(string(a.Kind))),
		printable(a.Name), printable(a.Host), printable(detail(a)))
	lines := a.LogTail
	if a.Message != "" {
		lines = strings.Split(a.Message, "\n")
	}
	for _, line := range lines {
		fmt.Fprintf(w, "          | %s\n", printable(line))
	}
}

// detail is what an alert has to say beside its name.
func detail(a payload.Alert) string {
	switch {
	case a.Kind == payload.KindSLA && a.ThresholdSeconds != nil && a.ObservedSeconds != nil:
		return fmt.Sprintf(": %s of %g s, observed %.3g s", a.SLACheck, *a.ThresholdSeconds, *a.ObservedSeconds)
	case a.Kind == payload.KindSLA:
		return ": " + a.SLACheck
	case a.Kind == payload.KindEvent:
		return ": " + a.Event + ", " + a.Subject
	case a.FailReason != "":
		return ": " + a.FailReason
	}
	return ""
}

// printable keeps what others wrote from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		if r == '\t' {
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}
