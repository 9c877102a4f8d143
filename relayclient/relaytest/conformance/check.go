package conformance

import (
	"context"
	"fmt"
	"slices"
)

// A Check is one thing that the suite looks at.
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

// A Part is what a check is about.
type Part string

// The two parts: a relay of sealed alerts, and a bridge's push relay together
// with the token service that it trusts.
const (
	SealedRelay Part = "sealed relay"
	BridgeRelay Part = "bridge relay"
)

// A Level says how much weight a check has.
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
