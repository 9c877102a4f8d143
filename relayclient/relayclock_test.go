package relayclient_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A daemon whose clock is wrong pages nobody in earnest, and hears of it, but not at every alert.
func TestClockFarFromTheRelays(t *testing.T) {
	tests := []struct {
		name  string
		relay time.Duration // how far the relay's clock is ahead
		want  string        // "" for silence
	}{
		{"the same", 0, ""},
		{"five minutes ahead", 5 * time.Minute, ""},
		{"five minutes behind", -5 * time.Minute, ""},
		{"ahead", 5*time.Minute + time.Second, "ahead=-5m1s"},
		{"behind", -time.Hour, "ahead=1h0m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				relay := relaytest.NewRelay(relaytest.InMemory())
				defer relay.Close()
				client, log := newClient(t, relay)
				_, devices := phones(3)
				send := func(alerts int) (told int) {
					before := len(log.lines())
					for range alerts {
						date := time.Now().Add(tt.relay).UTC().Format(http.TimeFormat)
						relay.Script(len(devices), relaytest.Answer{Status: 202, Header: http.Header{"Date": {date}}})
						client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
					}
					return len(log.lines()) - before
				}
				first := send(3)
				time.Sleep(time.Hour - time.Second)
				withinTheHour := send(1)
				time.Sleep(time.Second)
				later := send(1)
				lines := strings.Join(log.lines(), "\n")
				switch {
				case tt.want == "" && lines != "":
					t.Errorf("log %s", lines)
				case tt.want != "" && (first != 1 || withinTheHour != 0 || later != 1 || strings.Count(lines, tt.want) != 2):
					t.Errorf("%d, %d and %d lines: %s", first, withinTheHour, later, lines)
				}
			})
		})
	}
}
