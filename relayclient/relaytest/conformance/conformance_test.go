package conformance_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
)

func TestReferences(t *testing.T) {
	for name, options := range map[string][]relaytest.ServerOption{
		"HTTP": nil,
		"TLS":  {relaytest.WithTLS()},
	} {
		t.Run(name, func(t *testing.T) {
			var relayOptions []relaytest.RelayOption
			var bridgeOptions []relaytest.BridgeOption
			for _, o := range options {
				relayOptions, bridgeOptions = append(relayOptions, o), append(bridgeOptions, o)
			}
			relay := relaytest.NewRelay(relayOptions...)
			defer relay.Close()
			service := relaytest.NewBridgeService(bridgeOptions...)
			defer service.Close()
			bridge := conformance.Bridge{
				TokenURL: service.TokenURL, RelayURL: service.RelayURL,
				ClientID: "conformance", ClientSecret: service.AddClient("conformance"),
			}
			passesAll(t, conformance.Target{URL: relay.URL, Client: relay.Client()})
			passesAll(t, conformance.Target{Bridge: bridge, Client: service.Client()})
			if left := service.Devices("conformance"); len(left) > 0 {
				t.Errorf("%d devices are still registered", len(left))
			}
		})
	}
}

func passesAll(t *testing.T, target conformance.Target) {
	t.Helper()
	report, err := conformance.Evaluate(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Results) == 0 {
		t.Error("nothing was checked")
	}
	for _, r := range report.Results {
		if r.Verdict != conformance.Pass {
			t.Errorf("%s: %s: %s", r.Check, r.Verdict, r.Detail)
		}
	}
}

// Run on a right relay reports nothing.
func TestRun(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	conformance.Run(t, conformance.Target{URL: relay.URL})
}

// Run stops at a target that is not there. It runs in a process of its own, for
// it fails its test.
func TestRunStopsAtAWrongURL(t *testing.T) {
	const variable = "SEALPUSH_TEST_WRONG_URL"
	if url := os.Getenv(variable); url != "" {
		conformance.Run(t, conformance.Target{URL: url})
		return
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+server.URL)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "correct the relay's URL") || strings.Count(string(out), "=== RUN") != 2 {
		t.Errorf("%v:\n%s", err, out)
	}
}
