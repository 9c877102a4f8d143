package conformance

import "testing"

// Run holds a target to the suite, with a subtest for each check about the
// parts that the target names. A check that fails fails its subtest; one that
// comes to no verdict skips it, with the reason. Checks are picked as subtests
// are, say with -run 'TestRelay/refuse-'.
//
// A target that is not complete stops the test, and so does one that is
// [ErrUnreachable].
func Run(t *testing.T, target Target) {
	t.Helper()
	s, err := newSession(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	for _, part := range s.target.parts() {
		first := true
		for check := range checksOf(part) {
			var unreachable error
			t.Run(check.Name, func(t *testing.T) {
				result := s.check(t.Context(), check)
				if first {
					unreachable = s.unreachable(result)
				}
				switch {
				case unreachable != nil: // as the parent says
					t.FailNow()
				case result.Verdict == Fail:
					t.Errorf("%s\n%s: %q\n%s", result.Detail, check.Source, check.Sentence, check.Does)
				case result.Verdict == NotStated:
					t.Skipf("not stated: %s", result.Detail)
				}
			})
			if unreachable != nil {
				t.Fatal(unreachable)
			}
			first = false
		}
	}
}
