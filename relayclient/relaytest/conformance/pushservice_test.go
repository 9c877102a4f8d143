package conformance_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
	"github.com/sealpush/sealpush/secret"
)

// A pushService answers what it is told to.
type pushService func(context.Context, relay.Envelope) error

func (pushService) Device(token string) (string, error) {
	if !regexp.MustCompile(`^[0-9A-Fa-f]{16,512}$`).MatchString(token) {
		return "", errors.New("is not 16 to 512 digits in hex")
	}
	return token, nil
}

func (pushService) ForwardDigest(context.Context, secret.Text) error { return nil }

func (f pushService) Forward(ctx context.Context, e relay.Envelope) error { return f(ctx, e) }

// reports makes all checks of a relay in a bubble.
func reports(t *testing.T, broken brokenRelay, f pushService, opts ...relay.Option) (report conformance.Report, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, problem := relay.New(append(opts, relay.WithForwarder(f), relay.WithLogger(slog.New(slog.DiscardHandler)))...)
		if problem != nil {
			t.Fatal(problem)
		}
		t.Cleanup(r.Close)
		report, err = conformance.Evaluate(t.Context(), serveInBubble(t, broken.over(r), nil))
	})
	return report, err
}

func takesAll(context.Context, relay.Envelope) error { return nil }

// ofVerdict returns the names of the checks with a verdict.
func ofVerdict(report conformance.Report, v conformance.Verdict) (names []string) {
	for _, r := range report.Results {
		if r.Verdict == v {
			names = append(names, r.Check)
		}
	}
	return names
}

// What a push service makes of the suite's device tokens is no failure of the relay.
func TestPushServiceThatTakesNothing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		service pushService
		relay   brokenRelay
	}{
		{"down", func(context.Context, relay.Envelope) error { return errors.New("no connection") }, brokenRelay{}},
		{"refuses the tokens", func(context.Context, relay.Envelope) error { return &relay.ForwardError{Reason: "BadDeviceToken"} }, brokenRelay{}},
		{"the relay says 400 to them", takesAll, refusesWhere(func(p *post) bool { return p.text("device") != "" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, err := reports(t, tt.relay, tt.service)
			if !errors.Is(err, conformance.ErrUnreachable) || !strings.Contains(err.Error(), "its push service may be down") {
				t.Errorf("the error is %v", err)
			}
			if failed := ofVerdict(report, conformance.Fail); failed != nil || len(report.Results) != 1 {
				t.Errorf("%v failed, of %d checks", failed, len(report.Results))
			}
		})
	}
}

func TestPushServiceThatGoesDown(t *testing.T) {
	for _, tt := range []struct {
		name, says string
		outage     func(context.Context) error
	}{
		{"refuses connections", "answered 502", func(context.Context) error { return errors.New("no connection") }},
		{"is silent", "no answer within 10s", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var forwards atomic.Int64
			report, err := reports(t, brokenRelay{}, func(ctx context.Context, _ relay.Envelope) error {
				if forwards.Add(1) > 30 {
					return tt.outage(ctx)
				}
				return nil
			})
			if !errors.Is(err, conformance.ErrUnreachable) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v", err)
			}
			if failed := ofVerdict(report, conformance.Fail); failed != nil || len(report.Results) < 10 {
				t.Errorf("%v failed, of %d checks", failed, len(report.Results))
			}
		})
	}
}

// One outage in each check: the check is made once more.
func TestPushServiceThatIsDownForAMoment(t *testing.T) {
	var forwards atomic.Int64
	report, err := reports(t, brokenRelay{}, func(context.Context, relay.Envelope) error {
		if forwards.Add(1)%150 == 20 {
			return errors.New("no connection")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if failed := ofVerdict(report, conformance.Fail); failed != nil {
		t.Errorf("%v failed", failed)
	}
	if forwards.Load() < 170 {
		t.Errorf("%d forwards, too few for two outages", forwards.Load())
	}
}

// A push service that knows none of the suite's devices hides how often an alert is forwarded, but not that two alerts
// are taken for one.
func TestAlertsTakenForOneAreFoundWithDeadDevices(t *testing.T) {
	dead := func(context.Context, relay.Envelope) error {
		return &relay.ForwardError{Status: http.StatusGone, Reason: "Unregistered"}
	}
	for _, check := range []string{"dedup-other-device", "dedup-other-id"} {
		for i, broken := range brokenRelays()[check] {
			t.Run(variantName(check, i), func(t *testing.T) {
				report, err := reports(t, broken, dead)
				if err != nil {
					t.Fatal(err)
				}
				if failed := ofVerdict(report, conformance.Fail); !slices.Equal(failed, []string{check}) {
					t.Errorf("%v failed, want %s", failed, check)
				}
			})
		}
	}
}

// A relay of the relay protocol as it was before suites.
func TestOlderRelayPasses(t *testing.T) {
	older := brokenRelay{before: func(_ http.ResponseWriter, p *post) bool {
		if _, has := p.members["suite"]; has {
			delete(p.members, "suite")
			p.set("v", p.members["v"])
		}
		return false
	}}
	report, err := reports(t, older, takesAll, relay.WithMaxCiphertext(3000))
	if err != nil {
		t.Fatal(err)
	}
	if failed := ofVerdict(report, conformance.Fail); failed != nil {
		t.Errorf("%v failed", failed)
	}
	want := []string{"size-3800", "suite-grammar", "suite-shorter-refused", "answer-order"}
	if diff := cmp.Diff(want, ofVerdict(report, conformance.NotStated)); diff != "" {
		t.Errorf("not stated: -want +got\n%s", diff)
	}
}

// Past its quota, a relay takes an alert and sends a digest.
func TestQuotaIsNoFailure(t *testing.T) {
	report, err := reports(t, brokenRelay{}, takesAll, relay.WithPolicy(relay.Policy{MonthlyQuota: 1}))
	if err != nil {
		t.Fatal(err)
	}
	if failed := ofVerdict(report, conformance.Fail); failed != nil {
		t.Errorf("%v failed", failed)
	}
	want := []string{"dedup-other-id", "rate-limit-429", "rate-limit-retry-after", "rate-limit-per-device"}
	if diff := cmp.Diff(want, ofVerdict(report, conformance.NotStated)); diff != "" {
		t.Errorf("not stated: -want +got\n%s", diff)
	}
}

func TestPlatformsThatABridgeRelayDoesNotServe(t *testing.T) {
	type broken func(*bridgeFixture) brokenRelay
	refuses := func(status int, platforms ...string) broken {
		return func(f *bridgeFixture) brokenRelay {
			return f.request(http.MethodPost, "/register", func(w http.ResponseWriter, p *post) bool {
				return slices.Contains(platforms, p.text("platform")) && answer(w, status, `{"ok":false,"error":"not served"}`)
			})
		}
	}
	failsPushes := func(platforms ...string) broken {
		return func(*bridgeFixture) brokenRelay {
			return brokenRelay{after: func(p *post, a *httptest.ResponseRecorder) {
				for _, platform := range platforms {
					if p.URL.Path == "/push" && strings.Contains(a.Body.String(), `"platform":"`+platform+`"`) {
						a.Code = http.StatusInternalServerError
					}
				}
			}}
		}
	}
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	for _, tt := range []struct {
		name      string
		broken    broken
		failed    []string
		notStated map[string]string // with what the detail says
		outage    bool
	}{
		{"registers no android", refuses(http.StatusBadRequest, "android"), nil, map[string]string{
			"register-android": "ios devices and not android", "push-devices": "not to android (answered 400",
		}, false},
		{"registers no ios", refuses(http.StatusBadRequest, "ios"), nil, map[string]string{
			"register-ios": "android devices and not ios", "push-devices": "not to ios (answered 400",
		}, false},
		{"fails at android", refuses(http.StatusInternalServerError, "android"), []string{"register-android"}, map[string]string{
			"push-devices": "not to android (answered 500",
		}, false},
		{"serves neither", refuses(http.StatusBadRequest, "ios", "android"), []string{"register-ios", "register-android"}, nil, false},
		{"FCM takes nothing", failsPushes("android"), nil, map[string]string{"push-devices": "not to android (answered 500"}, false},
		{"nobody takes anything", failsPushes("ios", "android"), nil, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newBridgeFixture(service, nil)
			report, err := conformance.Evaluate(t.Context(), f.serve(t, brokenBridge{relay: tt.broken(f)}))
			if errors.Is(err, conformance.ErrUnreachable) != tt.outage || err != nil && !tt.outage {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(tt.failed, ofVerdict(report, conformance.Fail)); diff != "" {
				t.Errorf("failed: -want +got\n%s", diff)
			}
			said := map[string]string{}
			for _, r := range report.Results {
				said[r.Check] = r.Detail
				if want := tt.notStated[r.Check]; want != "" && r.Verdict != conformance.NotStated {
					t.Errorf("%s: %s", r.Check, r.Verdict)
				}
			}
			for check, want := range tt.notStated {
				if !strings.Contains(said[check], want) {
					t.Errorf("%s says %q, want %q", check, said[check], want)
				}
			}
		})
	}
}
