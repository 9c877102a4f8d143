package conformance

import (
	"context"
	"errors"
	"fmt"
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
// connection, no answer in time, or 429 for longer than [Target.MaxWait].
var ErrUnreachable = errors.New("conformance: no use in checking")

// Evaluate holds a target to all checks about the parts that it names, one
// after the other.
//
// The error is about a target that is not complete, one that does not answer
// the first request to a part ([ErrUnreachable]), or is ctx's cause. The report
// then has the results up to there, and says nothing about conformance.
func Evaluate(ctx context.Context, target Target) (report Report, err error) {
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
			report.Results = append(report.Results, result)
			if first && s.silent() {
				return report, fmt.Errorf("%w: the %s: %s", ErrUnreachable, part, result.Detail)
			}
			first = false
		}
	}
	return report, nil
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
