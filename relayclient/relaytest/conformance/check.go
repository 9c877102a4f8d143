package conformance

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Check is one thing that the suite looks at. It is a plain value.
type Check struct {
	Name     string // unique, in lower case with hyphens
	Part     Part
	Level    Level
	Source   string // where Sentence is from
	Sentence string // what the check stands for, as its source puts it
	Does     string // what is sent and what is expected

	// run returns nil if the relay does as the sentence says, an
	// *unknownError if that cannot be seen, and otherwise what is different.
	run func(context.Context, *session) error
}

// A Part is what a check is about. It is a plain value.
type Part string

// The two parts: a relay of sealed alerts, and a bridge's push relay together
// with the token service that it trusts.
const (
	SealedRelay Part = "sealed relay"
	BridgeRelay Part = "bridge relay"
)

// A Level says how much weight a check has. It is a plain value.
type Level string

const (
	// Must is what the contract demands. Only such a check can fail.
	Must Level = "MUST"
	// Open is what the contract leaves to the relay. The check says whether it
	// does as the hosted one.
	Open Level = "open"
)

// Where sentences come from.
const (
	relayProtocol  = "relay protocol"
	bridgeProtocol = "bridge protocol"
	hostedRelay    = "fact of the hosted relay"
	hostedBridge   = "fact of the hosted bridge services"
	strictReading  = "strict reading of the reference relay"
	growthRule     = "rule for all readers of v1"
)

// Checks returns the checks of the suite, in the order in which they run.
func Checks() []Check {
	return slices.Concat(
		acceptChecks(), sizeChecks(), refuseChecks(), formChecks(), answerChecks(),
		dedupChecks(), burstChecks(), rateChecks(), endureChecks(),
		tokenChecks(), emptyChecks(), bearerChecks(), registerChecks(), pushChecks(),
	)
}

// unknownError says why a check came to no verdict: the relay does not state
// what it would take to judge it.
type unknownError struct{ reason string }

func (e *unknownError) Error() string { return e.reason }

func unknown(format string, args ...any) error {
	return &unknownError{fmt.Sprintf(format, args...)}
}

// WriteMarkdown writes the list of all checks as a page in Markdown:
// docs/conformance.md in this module is such a page.
func WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# What a relay is held to

<!-- Generated: sealpush conformance -list > docs/conformance.md -->

` + "`sealpush conformance -url URL`" + ` holds a relay to these checks, in this order, and so does
` + "`conformance.Run`" + ` in a Go test. A **MUST** is what the contract demands of a relay, and the only kind of
check that can fail. What is **open** is the relay's own business: the check says whether it does as the hosted
services or the reference relay do, and "not stated" if not.

Part of the bridge protocol is written down only as what the hosted services do. What a bridge cannot do
without is a MUST from there.
`)
	for _, part := range []Part{SealedRelay, BridgeRelay} {
		fmt.Fprintf(&b, "\n## The %s\n", part)
		for check := range checksOf(part) {
			fmt.Fprintf(&b, "\n### %s\n\n**%s**, %s:\n\n> %s\n\n%s\n",
				check.Name, check.Level, check.Source, escapeMarkdown(check.Sentence), escapeMarkdown(check.Does))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escapeMarkdown keeps placeholders such as <jwt> and names such as client_id as
// they are.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("<", `\<`, "_", `\_`, "*", `\*`).Replace(text)
}
