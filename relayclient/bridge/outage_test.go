package bridge_test

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A relay that cannot have the token service's keys refuses a good token: the deployed one with 401, which looks like the
// token's fault, others with 503. Either way the client survives it, and what it costs is bounded.
func TestOutageOfTheKeys(t *testing.T) {
	for _, tt := range []struct {
		status int
		tokens int // that are fetched before the keys are back
		pushes int // that are tried
	}{
		{401, 2, 2}, // the second token is refused too, and no third one is fetched
		{503, 1, 1}, // the token is good
	} {
		t.Run(strconv.Itoa(tt.status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, config := newService(t, relaytest.WithBridge(relay.WithOutageStatus(tt.status)))
				client, err := bridge.New(config, quiet, bridge.WithHTTPClient(service.Client()))
				if err != nil {
					t.Fatal(err)
				}
				service.Script(relaytest.EndpointJWKS, relaytest.Always, relaytest.Answer{Delay: 2 * time.Second, Drop: true}) // late: two tokens of one second are the same
				result := client.Notify(t.Context(), notification)
				if failed, ok := errors.AsType[*bridge.RelayError](result.Err); !ok || failed.StatusCode != tt.status || result.Status != bridge.StatusFailed {
					t.Errorf("result %+v", result)
				}
				if tokens, pushes := service.RequestCount(relaytest.EndpointToken), service.RequestCount(relaytest.EndpointPush); tokens != tt.tokens || pushes != tt.pushes {
					t.Errorf("%d tokens and %d pushes, want %d and %d", tokens, pushes, tt.tokens, tt.pushes)
				}
				for range 28 { // the agent goes on talking
					advance(time.Second)
					client.Notify(t.Context(), notification)
				}
				if got := service.RequestCount(relaytest.EndpointToken); got != tt.tokens {
					t.Errorf("%d tokens within 30 s, want %d", got, tt.tokens)
				}
				service.ClearScript()
				advance(bridge.DefaultCooldown)
				wantStatus(t, client, bridge.StatusSent)
				mustRegister(t, client, phone)
				if tokens := service.RequestCount(relaytest.EndpointToken); tokens > tt.tokens+1 {
					t.Errorf("%d tokens in all", tokens)
				}
			})
		})
	}
}
