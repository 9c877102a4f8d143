package payload

import "time"

// Version is the payload version that every plaintext carries as "v".
const Version = 1

// FreshFor is how long after its Time an alert may be shown as a live page. That allows for the difference between the
// two machines' clocks and for the push service's latency. It is part of the protocol (section "Replay protection"), so
// that every app draws the line at the same age.
const FreshFor = 10 * time.Minute

// testMessage is the fixed message of a test alert.
const testMessage = "Test alert: this phone is paired and can read what this daemon seals."

// Kind says what an alert reports.
type Kind string

// The five kinds of the protocol.
const (
	KindSuccess Kind = "success" // a job run ended well
	KindFailure Kind = "failure" // a job run failed
	KindSLA     Kind = "sla"     // a job broke its service level
	KindEvent   Kind = "event"   // something happened to the daemon, its DAGs or its cluster
	KindTest    Kind = "test"    // somebody asked whether this phone can be reached
)

// The checks that the protocol names for [Alert.SLACheck].
const (
	CheckMaxTimeSinceSuccess = "maxTimeSinceSuccess"
	CheckLateAfter           = "lateAfter"
	CheckMaxRuntime          = "maxRuntime"
)

// The events that the protocol names for [Alert.Event].
const (
	EventDAGFailure      = "dag_failure"
	EventApprovalWaiting = "approval_waiting"
	EventLeaderChange    = "leader_change"
	EventQuorumLoss      = "quorum_loss"
)

// Alert is what a phone decrypts. Start with the constructor of its kind ([NewSuccess], [NewFailure], [NewSLA],
// [NewEvent], [NewTest]), which fills what that kind requires, and set what else is known: a zero field is not sent. A
// nil pointer means unknown and is not sent; a pointer to zero is sent. [Alert.Validate] names a field that the kind
// may not carry. Text is UTF-8. A byte that is not part of valid UTF-8 reaches the phone as U+FFFD.
type Alert struct {
	// Every alert.
	Kind    Kind
	Name    string    // job; DAG or node for events; "test" for tests
	Success bool      // true for KindSuccess and KindTest only
	Host    string    // the machine that reports
	Time    time.Time // when the alert was built, sent in whole seconds; it decides freshness

	// The job run, on any alert where it is known.
	RunID      string    // in the run's durable ledger
	Schedule   string    // as a crontab line
	StartedAt  time.Time // sent to the microsecond
	ExitCode   *int      // 0 is sent
	FailReason string

	// KindSuccess and KindFailure.
	LogTail []string // the last lines of output, oldest first, at most MaxLogLines; see [LogTail]

	// KindEvent; Message also on KindTest.
	Event   string // required for events, for example EventQuorumLoss
	Subject string // the headline, one line
	Message string // detail
	DAG     string
	RunKey  string
	TaskKey string
	Role    string
	Leader  string

	// KindSLA.
	SLACheck         string // required for SLA breaches, for example CheckLateAfter
	ThresholdSeconds *float64
	ObservedSeconds  *float64
	LastSuccessAt    time.Time // sent to the microsecond
}

// NewSuccess returns the alert of a run of the job name that ended well, built now.
func NewSuccess(host, name string) Alert {
	a := newAlert(KindSuccess, host, name)
	a.Success = true
	return a
}

// NewFailure returns the alert of a run of the job name that failed, built now. Set ExitCode, FailReason and LogTail to
// say why.
func NewFailure(host, name string) Alert {
	return newAlert(KindFailure, host, name)
}

// NewSLA returns the alert of the job name that broke its service level, built now: check is what was breached,
// threshold what was configured and observed what was measured. Set LastSuccessAt if there was one.
func NewSLA(host, name, check string, threshold, observed time.Duration) Alert {
	a := newAlert(KindSLA, host, name)
	a.SLACheck = check
	a.ThresholdSeconds = new(threshold.Seconds())
	a.ObservedSeconds = new(observed.Seconds())
	return a
}

// NewEvent returns the alert of a daemon event, built now. The name is the DAG's or the node's. Set Subject and Message
// to what the phone should show.
func NewEvent(host, name, event string) Alert {
	a := newAlert(KindEvent, host, name)
	a.Event = event
	return a
}

// NewTest returns a test alert, built now, with the name "test" and the protocol's fixed message. It is sent under a
// fresh [NewCollapseID], so that a relay that coalesces never swallows it.
func NewTest(host string) Alert {
	a := newAlert(KindTest, host, string(KindTest))
	a.Success = true
	a.Message = testMessage
	return a
}

// newAlert takes the time in the precision that is sent, so that the alert equals the one the phone parses.
func newAlert(kind Kind, host, name string) Alert {
	return Alert{Kind: kind, Host: host, Name: name, Time: time.Now().UTC().Truncate(time.Second)}
}

// Stale reports whether the alert is older than [FreshFor] at now. An app shows a stale alert as an outdated one or
// drops it, never as a live page: a relay can deliver an old ciphertext again, and only the time inside it shows that.
//
// An alert exactly FreshFor old is fresh, and so is one from the future, however far: the protocol limits only the age,
// so that a daemon whose clock runs ahead can still page. An app that wants to refuse alerts from the future compares
// Time itself.
func (a Alert) Stale(now time.Time) bool {
	return now.Sub(a.Time) > FreshFor
}
