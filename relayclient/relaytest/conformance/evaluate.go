package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// ErrUnreachable is what an [Evaluate] fails with if there is nobody to ask: no
// connection, no answer in time, or 429 for longer than [Target.MaxWait]. So it
// does if the first request, with which nothing is wrong, is answered with a
// redirect, 401, 403, 404 or 405: the target's URL or its credentials are wrong,
// and hardly the relay.
var ErrUnreachable = errors.New("conformance: no use in checking")

// Evaluate holds a target to all checks about the parts that it names, one
// after the other.
//
// The error is about a target that is not complete, one that does not answer
// the first request to a part ([ErrUnreachable]), or is ctx's cause. The report
// then has the results up to there, and says nothing about conformance.
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
		first := true
		for check := range checksOf(part) {
			result := s.check(ctx, check)
			if err := context.Cause(ctx); err != nil {
				return report, fmt.Errorf("conformance: stopped at %s: %w", check.Name, err)
			}
			if first {
				err = s.unreachable(result)
			}
			if err != nil {
				result.Verdict = NotStated
			}
			report.Results = append(report.Results, result)
			if err != nil {
				return report, err
			}
			first = false
		}
	}
	return report, nil
}

// unreachable says whether the first check of a part shows that there is no use
// in the others.
func (s *session) unreachable(first Result) error {
	switch toDo := s.correction(first.Part); {
	case first.Verdict == Pass:
		return nil
	case s.silent():
		return fmt.Errorf("%w: the %s: %s", ErrUnreachable, first.Part, first.Detail)
	case toDo != "":
		return fmt.Errorf("%w: the %s %s: %s", ErrUnreachable, first.Part, first.Detail, toDo)
	}
	return nil
}

// correction says what is wrong with the target, if the latest answer shows that
// it is the target that is wrong.
func (s *session) correction(part Part) string {
	url, credentials := "the relay's URL", "the credentials in the relay's URL, or what else the relay lets clients in by"
	if part == BridgeRelay {
		url, credentials = "the token service's URL", "the client's id and secret"
	}
	switch {
	case s.status/100 == 3:
		return "redirects are not followed: correct " + url
	case s.status == http.StatusUnauthorized, s.status == http.StatusForbidden:
		return "correct " + credentials
	case s.status == http.StatusNotFound, s.status == http.StatusMethodNotAllowed:
		return "nothing takes requests at this path: correct " + url
	}
	return ""
}

// checksOf is what there is to check about a part.
func checksOf(part Part) func(yield func(Check) bool) {
	return func(yield func(Check) bool) {
		for _, check := range Checks() {
			if check.Part == part && !yield(check) {
				return
			}
		}
	}
}

// check runs one check.
func (s *session) check(ctx context.Context, c Check) Result {
	start := time.Now()
	s.waited = 0
	err := c.run(ctx, s)
	result := Result{
		Check: c.Name, Part: c.Part, Level: c.Level, Source: c.Source, Sentence: c.Sentence,
		Verdict: Pass, Duration: time.Since(start),
	}
	if err == nil {
		return result
	}
	result.Detail = s.redact(err.Error())
	result.Verdict = Fail
	if _, noVerdict := errors.AsType[*unknownError](err); noVerdict || c.Level != Must {
		result.Verdict = NotStated
	}
	return result
}
