package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// A Verdict is what a check came to.
type Verdict string

const (
	// Pass: the relay does as the check's sentence says.
	Pass Verdict = "pass"
	// Fail: it does not, and it must.
	Fail Verdict = "fail"
	// NotStated: it need not do so, or its answers do not show whether it does.
	NotStated Verdict = "not stated"
)

// ErrUnreachable is in the chain of the error of an [Evaluate] that had to stop, because the target cannot be checked:
//
//   - Nothing answers: no connection, no answer in time, or 429 for longer than [Target.MaxWait].
//   - The first request, with which nothing is wrong, is answered with a redirect, 401, 403, 404 or 405. The URL or the
//     credentials are wrong.
//   - The sealed relay accepts no envelope, from the start or since some check. Its push service is down, or refuses
//     made-up device tokens, or the relay does not work at all. The answers do not show which.
//   - The bridge relay answers each push to a device with a 5xx, for the same reasons.
var ErrUnreachable = errors.New("conformance: the target cannot be checked")

// Evaluate makes all checks about the parts that a target names, one after the other.
//
// The error says that the target is incomplete or cannot be checked ([ErrUnreachable]), or is ctx's cause. The report
// then has the results up to there. It does not say whether the relay follows the protocol.
func Evaluate(ctx context.Context, target Target) (report Report, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	s, err := newSession(target)
	if err != nil {
		return Report{}, err
	}
	defer s.close()
	start := time.Now()
	report = newReport(s.target)
	defer func() { report.Duration = time.Since(start) }()
	for _, part := range s.target.parts() {
		for check := range checksOf(part) {
			result, stop := s.check(ctx, check)
			if err := context.Cause(ctx); err != nil {
				return report, fmt.Errorf("conformance: stopped at %s: %w", check.Name, err)
			}
			report.Results = append(report.Results, result)
			if stop != nil {
				return report, stop
			}
		}
	}
	return report, nil
}

// Run makes the checks about the parts that a target names, each as a subtest. A check that fails fails its subtest.
// One without a verdict skips its subtest and logs the reason. Checks are picked as subtests are, say with -run
// 'TestRelay/refuse-'.
//
// A target that is incomplete or cannot be checked ([ErrUnreachable]) ends the test as failed.
func Run(t *testing.T, target Target) {
	t.Helper()
	s, err := newSession(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	for _, part := range s.target.parts() {
		for check := range checksOf(part) {
			var stop error
			t.Run(check.Name, func(t *testing.T) {
				var result Result
				result, stop = s.check(t.Context(), check)
				switch {
				case stop != nil: // as the parent says
					t.FailNow()
				case result.Verdict == Fail:
					t.Errorf("%s\n%s: %q\n%s", result.Detail, check.Source, check.Sentence, check.Does)
				case result.Verdict == NotStated:
					t.Skipf("not stated: %s", result.Detail)
				}
			})
			if stop != nil {
				t.Fatal(stop)
			}
		}
	}
}

// checksOf yields the checks about a part.
func checksOf(part Part) func(yield func(Check) bool) {
	return func(yield func(Check) bool) {
		for _, check := range Checks() {
			if check.Part == part && !yield(check) {
				return
			}
		}
	}
}

// check makes one check. The error is an ErrUnreachable.
func (s *session) check(ctx context.Context, c Check) (Result, error) {
	start := time.Now()
	first := !s.begun[c.Part]
	s.begun[c.Part] = true
	found := s.attempt(ctx, c)
	var stop error
	if found != nil {
		stop = s.unreachable(ctx, c, first, found)
	}
	if found != nil && stop == nil && c.Part == SealedRelay && s.failed.Load() {
		// The relay works now: once more, without what was found out while it did not.
		s.limited = nil
		found = s.attempt(ctx, c)
	}
	result := Result{
		Check: c.Name, Part: c.Part, Level: c.Level, Source: c.Source, Sentence: c.Sentence,
		Verdict: Pass, Duration: time.Since(start),
	}
	if found == nil {
		return result, nil
	}
	result.Detail = s.redact(found.Error())
	result.Verdict = Fail
	if _, noVerdict := errors.AsType[*unknownError](found); noVerdict || c.Level != Must || stop != nil {
		result.Verdict = NotStated
	}
	return result, stop
}

// attempt runs a check from a clean start.
func (s *session) attempt(ctx context.Context, c Check) error {
	s.waited, s.status, s.quiet = 0, 0, false
	s.failed.Store(false)
	return c.run(ctx, s)
}

// unreachable returns the error to stop with, or nil, after a check that found something.
func (s *session) unreachable(ctx context.Context, c Check, first bool, found error) error {
	stop := func(reason string) error {
		return fmt.Errorf("%w: the %s: %s", ErrUnreachable, c.Part, s.redact(reason))
	}
	if outage, is := errors.AsType[*outageError](found); is {
		return stop(outage.reason)
	}
	if first && s.quiet {
		return stop(found.Error())
	}
	if toDo := s.correction(c.Part); first && toDo != "" {
		return stop(fmt.Sprintf("%s: answered %d", toDo, s.status))
	}
	if c.Part != SealedRelay || !first && !s.failed.Load() {
		return nil
	}
	failed := s.failed.Load()
	s.waited = 0
	plain := s.accepts(ctx, newEnvelope().encode())
	s.failed.Store(failed)
	if _, limited := errors.AsType[*unknownError](plain); plain == nil || limited {
		return nil
	}
	return stop(fmt.Sprintf("it accepts no envelope: its push service may be down, or refuse the made-up device tokens of the checks: %v", plain))
}

// correction says what is wrong with the target, if the latest answer shows that the target is wrong.
func (s *session) correction(part Part) string {
	url, credentials := "the relay's URL", "the credentials in the relay's URL, or what else the relay lets clients in by"
	if part == BridgeRelay {
		url, credentials = "the token service's URL", "the client's id and secret"
	}
	switch {
	case s.status/100 == 3:
		return "redirects are not followed, correct " + url
	case s.status == http.StatusUnauthorized, s.status == http.StatusForbidden:
		return "correct " + credentials
	case s.status == http.StatusNotFound, s.status == http.StatusMethodNotAllowed:
		return "nothing takes requests at this path, correct " + url
	}
	return ""
}
