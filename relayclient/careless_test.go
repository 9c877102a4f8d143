package relayclient_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func TestNilOptions(t *testing.T) {
	if _, err := relayclient.New("https://relay.example", nil); err == nil {
		t.Error("a nil Option was accepted")
	}
}

func TestZeroValuesPrint(t *testing.T) {
	for _, zero := range []any{
		relayclient.Outcome{}, relayclient.Push{}, &relayclient.Client{}, &relayclient.Notifier{},
		&relayclient.StatusError{}, &relayclient.TransportError{}, relayclient.Priority(-1),
		&payload.FieldError{}, &payload.SizeError{}, payload.Alert{}, payload.Fitted{}, payload.Trimmed{},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
			if text := fmt.Sprintf(verb, zero); strings.Contains(text, "PANIC") {
				t.Errorf("%s of the zero %T: %s", verb, zero, text)
			}
		}
	}
}

type panickyHandler struct{ slog.Handler }

func (panickyHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panickyHandler) Handle(context.Context, slog.Record) error { panic("boom") }

func TestPanickingLoggerCostsNothing(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay, relayclient.WithLogger(slog.New(panickyHandler{})))
	_, devices := phones(2)
	relay.Script(1, relaytest.Answer{Status: 500})
	outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices[:1])
	if outcomes[0].Status != 500 {
		t.Errorf("%+v", outcomes)
	}
	if outcomes := client.Send(t.Context(), relayclient.Push{}, devices); len(outcomes) != 2 || outcomes[0].Err == nil {
		t.Errorf("%+v", outcomes)
	}
}

type quitter struct{}

func (quitter) RoundTrip(*http.Request) (*http.Response, error) { runtime.Goexit(); return nil, nil }

func TestTransportThatEndsItsGoroutineIsNoSuccess(t *testing.T) {
	client, _ := newClientAt(t, "http://relay.sealpush.test", relayclient.WithHTTPClient(&http.Client{Transport: quitter{}}))
	_, devices := phones(3)
	for _, outcome := range client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices) {
		if outcome.Err == nil {
			t.Errorf("%+v", outcome)
		}
	}
}

func TestAbsurdPushToken(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	_, devices := phones(2)
	devices[0].PushToken = secret.New(strings.Repeat("0123456789abcdef", 1<<20))
	outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	if !errors.Is(outcomes[0].Err, relayclient.ErrUnusableDevice) || relay.Stats().Requests != 1 {
		t.Errorf("%v", outcomes[0].Err)
	}
	wantAllDelivered(t, outcomes[1:], devices[1:])
}

// What a relay quotes, what a transport says and what a careless caller prints.
func TestSecretsStayOutOfEverythingPrinted(t *testing.T) {
	const path, query, user, password = "hooks-capability", "query-capability", "parker-user", "hunter2-password"
	relay := "http://" + user + ":" + password + "@relay.sealpush.test/" + path + "%2Fmore?k=" + query
	_, devices := phones(1)
	token := devices[0].PushToken.Reveal()
	own := &http.Client{Transport: said(func(req *http.Request) error {
		return fmt.Errorf("malformed answer %q\nlevel=INFO forged=yes %s %s %s: %w", token, req.URL, req.Header["Authorization"], strings.ToUpper(token), net.ErrClosed)
	})}
	client, log := newClientAt(t, relay, relayclient.WithHTTPClient(own))
	push := relayclient.Push{Alert: failure(), Salt: salt}
	outcome := client.Send(t.Context(), push, devices)[0]

	var shown bytes.Buffer
	type nested struct {
		Client  *relayclient.Client
		Push    relayclient.Push
		Outcome relayclient.Outcome
		client  *relayclient.Client
	}
	if !errors.Is(outcome.Err, net.ErrClosed) {
		t.Errorf("the cause is lost: %v", outcome.Err)
	}
	things := []any{client, push, &push, outcome, outcome.Err, nested{client, push, outcome, client}}
	for _, err := range within(outcome.Err) {
		things = append(things, err)
	}
	var found interface{ Unwrap() error } // as errors.As finds it, past what hides the text
	for err := outcome.Err; errors.As(err, &found); err = found.Unwrap() {
		things = append(things, found)
	}
	for _, thing := range things {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%08.3f"} {
			fmt.Fprintf(&shown, verb+"\n", thing)
		}
		encoded, err := json.Marshal(thing)
		fmt.Fprintln(&shown, string(encoded), err)
		slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "thing", thing)
		slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "thing", thing)
	}
	text := shown.String() + strings.Join(log.lines(), "\n")
	for _, secret := range []string{path, query, user, password, token[:8], strings.ToUpper(token[:8]), salt.Reveal(), "gave up"} {
		for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret)} {
			if strings.Contains(text, form) {
				line := text[strings.LastIndex(text[:strings.Index(text, form)], "\n")+1:]
				t.Errorf("%q is shown as %q in %.300s", secret, form, line)
			}
		}
	}
	if len(log.lines()) != 1 || !strings.Contains(text, "malformed answer") {
		t.Errorf("log: %q", log.lines())
	}
}

// within returns err and all errors that it wraps.
func within(err error) []error {
	list := []error{err}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			list = append(list, within(cause)...)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			list = append(list, within(cause)...)
		}
	}
	return list
}

type said func(*http.Request) error

func (s said) RoundTrip(req *http.Request) (*http.Response, error) { return nil, s(req) }

func TestEverythingAtOnce(t *testing.T) {
	relay := relaytest.NewRelay(relaytest.WithoutPolicy())
	defer relay.Close()
	client, _ := newClientAt(t, relay.URL)
	_, devices := phones(3)
	devices = append(devices, devices...) // each twice
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			switch i % 4 {
			case 1:
				cancel()
			case 2:
				go cancel()
			case 3:
				if i > 40 {
					client.Close()
				}
			}
			for j, outcome := range client.Send(ctx, relayclient.Push{Alert: failure(), Salt: salt}, devices) {
				if outcome.DeviceID != devices[j].ID || (outcome.Err == nil) != (outcome.Status == http.StatusAccepted) {
					t.Errorf("%+v", outcome)
				}
			}
			_ = fmt.Sprint(client)
		})
	}
	wg.Wait()
	for _, outcome := range client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices) {
		if !errors.Is(outcome.Err, relayclient.ErrClosed) {
			t.Errorf("%+v", outcome)
		}
	}
}

func TestNobodyToSendTo(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	if outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, nil); len(outcomes) != 0 {
		t.Errorf("%v", outcomes)
	}
}

func TestZeroClient(t *testing.T) {
	_, devices := phones(1)
	for _, client := range []*relayclient.Client{nil, {}} {
		outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
		if len(outcomes) != 1 || outcomes[0].Err == nil || !strings.Contains(outcomes[0].Err.Error(), "New") {
			t.Errorf("%v", outcomes)
		}
		client.Close()
		_ = fmt.Sprintf("%v %#v", client, client)
	}
}

type panicky struct{}

func (panicky) RoundTrip(*http.Request) (*http.Response, error) { panic("boom") }

func TestPanickingTransportCostsItsDevice(t *testing.T) {
	client, log := newClientAt(t, "http://relay.sealpush.test", relayclient.WithHTTPClient(&http.Client{Transport: panicky{}}))
	_, devices := phones(2)
	for _, outcome := range client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices) {
		if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), "boom") {
			t.Errorf("%v", outcome.Err)
		}
	}
	for _, line := range log.lines() { // says where it panicked
		if !strings.Contains(line, "stack=") || !strings.Contains(line, "panicky.RoundTrip") {
			t.Errorf("log %q", line)
		}
	}
}
