package relayclient_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestStatuses(t *testing.T) {
	for status := 200; status <= 599; status++ {
		relay := relaytest.NewRelay(relaytest.InMemory())
		client, _ := newClient(t, relay)
		_, devices := phones(1)
		relay.Script(1, relaytest.Answer{
			Status: status,
			Header: http.Header{"Retry-After": {"7"}, "Location": {"http://elsewhere.sealpush.test/"}},
			Body:   `{"v":1,"error":"no luck"}`,
		})
		outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)[0]
		if outcome.Status != status || relay.Stats().Requests != 1 {
			t.Errorf("%d: status %d after %d requests", status, outcome.Status, relay.Stats().Requests)
		}
		var answer *relayclient.StatusError
		switch isStatus := errors.As(outcome.Err, &answer); {
		case status < 300:
			if outcome.Err != nil {
				t.Errorf("%d: %v", status, outcome.Err)
			}
		case !isStatus || answer.StatusCode != status || answer.RetryAfter != 7*time.Second:
			t.Errorf("%d: %#v", status, outcome.Err)
		case status != http.StatusNotModified && answer.Body != `{"v":1,"error":"no luck"}`:
			t.Errorf("%d: body %q", status, answer.Body)
		}
		if got := errors.Is(outcome.Err, relayclient.ErrRateLimited); got != (status == 429) {
			t.Errorf("%d: ErrRateLimited is %v", status, got)
		}
		if got := errors.Is(outcome.Err, relayclient.ErrDeviceGone); got != (status == 410) {
			t.Errorf("%d: ErrDeviceGone is %v", status, got)
		}
		relay.Close()
	}
}

// What a relay says of an alert that it took is believed, bounded, and logged when the phone stays silent.
func TestRelaySaysWhatBecomesOfAnAlert(t *testing.T) {
	tests := []struct {
		name, body string
		want       relayclient.RelayOutcome
		level      string // of the line in the log; "" for none
	}{
		{"forwarded", `{"v":1,"outcome":"forwarded"}`, relayclient.Forwarded, ""},
		{"coalesced", `{"v":1,"outcome":"coalesced"}`, relayclient.Coalesced, "DEBUG"},
		{"suppressed", `{"v":1,"outcome":"suppressed"}`, relayclient.Suppressed, "WARN"},
		{"digested", `{"v":1,"outcome":"digested","resets":"2026-08-01"}`, relayclient.Digested, "WARN"},
		{"nothing", ``, "", ""},
		{"no outcome", `{"v":1}`, "", ""},
		{"an unknown one", `{"v":1,"outcome":"framed \n level=ERROR"}`, "", ""},
		{"no text", `{"v":1,"outcome":["digested"]}`, "", ""},
		{"no JSON", `<html>digested</html>`, "", ""},
		{"too much", strings.Repeat(" ", 5000) + `{"v":1,"outcome":"digested"}`, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			relay := relaytest.NewRelay(relaytest.InMemory())
			defer relay.Close()
			client, log := newClient(t, relay)
			_, devices := phones(1)
			relay.Script(1, relaytest.Answer{Status: 202, Body: tt.body})
			outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)[0]
			if outcome.Relay != tt.want || outcome.Status != 202 || outcome.Err != nil {
				t.Errorf("%+v", outcome)
			}
			lines := strings.Join(log.lines(), "\n")
			if tt.level == "" && lines != "" || !strings.Contains(lines, "level="+tt.level) && tt.level != "" {
				t.Errorf("log %q", lines)
			}
			if said := fmt.Sprintf("kind=failure name=nightly-backup device=%s status=202 outcome=%s", devices[0].ID, tt.want); lines != "" && !strings.Contains(lines, said) {
				t.Errorf("log %q, want %q", lines, said)
			}
		})
	}
}

func TestNoAnswerIsATransportError(t *testing.T) {
	relay := relaytest.NewRelay()
	client, log := newClientAt(t, relay.URL)
	_, devices := phones(2)
	push := relayclient.Push{Alert: failure(), Salt: salt}

	relay.Script(2, relaytest.Answer{Drop: true})
	for _, outcome := range client.Send(t.Context(), push, devices) {
		var transport *relayclient.TransportError
		if !errors.As(outcome.Err, &transport) || outcome.Status != 0 {
			t.Errorf("a dropped connection: %+v", outcome)
		}
	}
	if n := relay.Stats().Requests; n != 2 {
		t.Errorf("%d requests for 2 devices", n)
	}
	wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)

	relay.Close()
	impatient, more := newClientAt(t, relay.URL, relayclient.WithPatience(100*time.Millisecond))
	for _, outcome := range impatient.Send(t.Context(), push, devices) {
		if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), relay.URL) {
			t.Errorf("a relay that is not there: %+v", outcome)
		}
	}
	if len(log.lines()) != 2 || len(more.lines()) != 2 {
		t.Errorf("log %q, then %q", log.lines(), more.lines())
	}
}

func TestDefaultLoggerIsTheOneOfTheMoment(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, err := relayclient.New(relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	before, log := slog.Default(), &logbook{}
	slog.SetDefault(log.logger())
	defer slog.SetDefault(before)
	relay.Script(1, relaytest.Answer{Status: 500})
	_, devices := phones(1)
	client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], devices[0].ID) || !strings.Contains(lines[0], "level=WARN") {
		t.Errorf("log %q", lines)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	relay := relaytest.NewRelay()
	defer relay.Close()
	own := relay.Client()
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	client, _ := newClientAt(t, relay.URL, relayclient.WithHTTPClient(own))
	_, devices := phones(1)
	location := strings.Replace(other.URL, "//", "//user:hunter2@", 1) + "/v2?key=topsecret#part"
	for _, status := range []int{301, 302, 303, 307, 308} {
		relay.Script(1, relaytest.Answer{Status: status, Header: http.Header{"Location": {location}}})
		outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)[0]
		want := "redirects are not followed: configure the URL it leads to, " + other.URL + "/v2)"
		if outcome.Status != status || !strings.Contains(outcome.Err.Error(), want) {
			t.Errorf("%d: %+v", status, outcome)
		}
	}
	if elsewhere != 0 {
		t.Errorf("the other host saw %d requests", elsewhere)
	}
}
