package conformance

import (
	"fmt"
	"io"
	"strings"
)

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
