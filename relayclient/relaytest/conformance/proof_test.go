package conformance_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
)

func randomHex() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// checksOf returns the checks of one part, of which there must be some.
func checksOf(t *testing.T, part conformance.Part) []conformance.Check {
	t.Helper()
	checks := slices.DeleteFunc(conformance.Checks(), func(c conformance.Check) bool { return c.Part != part })
	if len(checks) == 0 {
		t.Fatalf("no check is about a %s", part)
	}
	return checks
}

// eachIsProved expects that checks are those that have something broken.
func eachIsProved[T any](t *testing.T, checks []conformance.Check, broken map[string][]T) {
	t.Helper()
	var names []string
	for _, c := range checks {
		names = append(names, c.Name)
		if len(broken[c.Name]) == 0 {
			t.Errorf("nothing broken proves the check %s", c.Name)
		}
	}
	for name := range broken {
		if !slices.Contains(names, name) {
			t.Errorf("something is broken for %s, which is no check", name)
		}
	}
}

// findsOnly expects that one check, and no other, finds something.
func findsOnly(t *testing.T, ctx context.Context, target conformance.Target, check conformance.Check) {
	t.Helper()
	report, err := conformance.Evaluate(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		want := conformance.Pass
		if r.Check == check.Name && check.Level == conformance.Must {
			want = conformance.Fail
		} else if r.Check == check.Name {
			want = conformance.NotStated
		}
		if r.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", r.Check, r.Verdict, want, r.Detail)
		}
		if r.Check == check.Name {
			t.Logf("%s: %s: %s", r.Check, r.Verdict, r.Detail)
		}
	}
}

func variantName(check string, i int) string { return fmt.Sprintf("%s/%d", check, i) }

func TestEachCheckFindsItsBrokenRelay(t *testing.T) {
	broken := brokenRelays()
	checks := checksOf(t, conformance.SealedRelay)
	eachIsProved(t, checks, broken)
	for _, check := range checks {
		for i, b := range broken[check.Name] {
			t.Run(variantName(check.Name, i), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					relay := relaytest.NewUnstartedRelay()
					t.Cleanup(relay.Close)
					var wrap func(net.Conn) net.Conn
					if b.serialHeaders {
						wrap = oneHeaderAtATime()
					}
					findsOnly(t, t.Context(), serveInBubble(t, b.over(relay), wrap), check)
				})
			})
		}
	}
}
