package conformance

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Check is one thing that the suite looks at.
type Check struct {
	Name     string // unique, in lower case with hyphens
	Part     Part
	Level    Level
	Source   string // where Sentence is from
	Sentence string // what the check stands for, as its source puts it
	Does     string // what is sent and what is expected

	// run returns nil if the relay does as the sentence says, an *unknownError if that cannot be seen, an *outageError
	// if the suite cannot go on, and otherwise what is different.
	run func(context.Context, *session) error
}

// A Part is what a check is about.
type Part string

// The two parts: a relay of sealed alerts, and a bridge's push relay together with the token service that it trusts.
const (
	SealedRelay Part = "sealed relay"
	BridgeRelay Part = "bridge relay"
)

// A Level says how much weight a check has.
type Level string

const (
	// Must is what the contract demands. Only such a check can fail.
	Must Level = "MUST"
	// Open is what the contract leaves to the relay. The check says whether it does as the hosted one.
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
	liveProtocol   = "live protocol" // what the deployed services have added to the relay protocol
)

// Checks returns the checks of the suite, in the order in which they run.
func Checks() []Check {
	return slices.Concat(
		acceptChecks(), sizeChecks(), suiteChecks(), refuseChecks(), formChecks(), answerChecks(),
		dedupChecks(), burstChecks(), rateChecks(), endureChecks(),
		tokenChecks(), emptyChecks(), bearerChecks(), registerChecks(), pushChecks(),
	)
}

// An unknownError says why a check came to no verdict: the answers do not show whether the relay does as the sentence
// says.
type unknownError struct{ reason string }

func (e *unknownError) Error() string { return e.reason }

func unknown(format string, args ...any) error {
	return &unknownError{fmt.Sprintf(format, args...)}
}

// An outageError says why the suite cannot go on: see [ErrUnreachable].
type outageError struct{ reason string }

func (e *outageError) Error() string { return e.reason }

// WriteMarkdown writes the list of all checks as a page in Markdown: docs/conformance.md in this module is such a page.
func WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString(`# What a relay is held to

<!-- Generated: sealpush conformance -list > docs/conformance.md -->

` + "`sealpush conformance -url URL`" + ` holds a relay to these checks, in this order, and so does
` + "`conformance.Run`" + ` in a Go test. A **MUST** is what the contract demands of a relay, and the only kind of
check that can fail. What is **open** is left to the relay: the check says whether it does as the hosted services or the
reference relay do, and "not stated" if not.

A relay of the first document, the relay protocol, passes, whether or not it has what the live protocol adds: suites
and ciphertexts of more than 3000 characters. Part of the bridge protocol is written down only as what the hosted
services do. What a bridge cannot do without is a MUST from there.

The device tokens are made up. A relay that answers 410, because its push service does not know them, has accepted the
envelope. A relay that accepts no envelope at all cannot be checked, and so does not fail: its push service may be down,
or refuse the tokens in another way.
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

// escapeMarkdown keeps placeholders such as <jwt> and names such as client_id as they are.
func escapeMarkdown(text string) string {
	return strings.NewReplacer("<", `\<`, "_", `\_`, "*", `\*`).Replace(text)
}
