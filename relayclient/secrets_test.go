package relayclient_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestRelayURLs(t *testing.T) {
	for _, url := range []string{
		"", "relay.example", "ftp://relay.example", "https://", "https:///path", "//relay.example/", "https://:443/",
		"http://relay.example:port/", "mailto:a@b", "https://user:pa ss@relay.example/", "https://user:pass%zz@relay.example",
		"https://user:hunter2/x@relay.example/", "https://relay.example/hunter2 path",
		"https://relay.example/hunter2\u200B", "https://relay.example/\x00hunter2", "https://relay.example/\xffhunter2",
	} {
		_, err := relayclient.New(url)
		if err == nil {
			t.Errorf("%q was accepted", url)
			continue
		}
		for _, secret := range []string{"hunter2", "pass%", "pa ss"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q: %v", url, err)
			}
		}
	}
	for _, url := range []string{"http://relay.example", "https://relay.example:8443/v1/push?x=1", " https://[::1]:8443/ \n", "\uFEFFhttps://relay.example\r\n"} {
		if _, err := relayclient.New(url); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for name, option := range map[string]relayclient.Option{
		"no time":        relayclient.WithTimeout(0),
		"none in flight": relayclient.WithMaxInFlight(0),
		"101 in flight":  relayclient.WithMaxInFlight(101),
		"nil client":     relayclient.WithHTTPClient(nil),
	} {
		if _, err := relayclient.New("https://relay.example", option); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := relayclient.New("https://relay.example", relayclient.WithLogger(nil)); err != nil {
		t.Errorf("a nil logger is the default one: %v", err)
	}
}

// A client that the caller uses elsewhere must go on following its redirects.
func TestTheCallersHTTPClientStaysAsItIs(t *testing.T) {
	own := &http.Client{}
	if _, err := relayclient.New("https://relay.example", relayclient.WithHTTPClient(own)); err != nil {
		t.Fatal(err)
	}
	if own.CheckRedirect != nil || own.Transport != nil {
		t.Error("New changed the client that it was given")
	}
}

// The path of a webhook can be all the secret there is.
func TestPathIsNeverShown(t *testing.T) {
	const path = "/hooks/capability-4711"
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, log := newClientAt(t, relay.URL+path)
	_, devices := phones(1)
	relay.Script(1, relaytest.Answer{Status: 400, Body: "no hook at " + path})
	outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)[0]
	if got := relay.Requests()[0].Path; got != path {
		t.Errorf("posted to %s", got)
	}
	shown := fmt.Sprintf("%v %+v %s", outcome, client, log.lines())
	if strings.Contains(shown, "capability") || !strings.Contains(shown, "no hook at") {
		t.Errorf("%s", shown)
	}
}

// Words are no secrets, though the relay's path has one of them.
func TestWordsOfThePathDoNotShredErrors(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, log := newClientAt(t, relay.URL+"/notifications")
	_, devices := phones(1)
	const said = "the notification topic takes no notifications"
	relay.Script(1, relaytest.Answer{Status: 400, Body: said})
	outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)[0]
	if !strings.Contains(outcome.Err.Error(), said) || !strings.Contains(strings.Join(log.lines(), ""), said) {
		t.Errorf("%v", outcome.Err)
	}
}

// A value of a character or three is in every other word.
func TestShortQueryValuesDoNotShredErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := newClientAt(t, "http://relay.sealpush.test/?v=1&format=on&key=topsecretquery")
		relayclient.SetDial(client, func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, Err: syscall.ECONNREFUSED}
		}, nil)
		err := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, sharedKeyDevices(1))[0].Err
		if !strings.Contains(err.Error(), "dial tcp 192.0.2.1:80: con") {
			t.Errorf("%v", err)
		}
		if strings.Contains(err.Error(), "topsecretquery") {
			t.Errorf("%v", err)
		}
		client.Close()
	})
}

func TestCredentialsAreSentAndNeverShown(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	url := strings.Replace(relay.URL, "http://", "http://parker:correct%20horse@", 1) + "/?key=topsecretquery"
	client, log := newClientAt(t, url)
	_, devices := phones(2)
	push := relayclient.Push{Alert: failure(), Salt: salt}

	wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
	request := relay.Requests()[0]
	user, password, ok := (&http.Request{Header: request.Header}).BasicAuth()
	if !ok || user != "parker" || password != "correct horse" || request.Query != "key=topsecretquery" {
		t.Errorf("the relay saw user %q, query %q", user, request.Query)
	}

	// A relay that quotes all it was sent, and one that is not there.
	basic := base64.StdEncoding.EncodeToString([]byte("parker:correct horse"))
	relay.Script(2, relaytest.Answer{Status: 400, Body: strings.Join([]string{
		"you sent", url, basic, devices[0].PushToken.Reveal(), strings.ToUpper(devices[1].PushToken.Reveal()), devices[0].PushToken.Reveal()[10:30], "correct horse",
	}, " ")})
	outcomes := client.Send(t.Context(), push, devices)
	relay.Close()
	impatient, more := newClientAt(t, url, relayclient.WithPatience(100*time.Millisecond))
	outcomes = append(outcomes, impatient.Send(t.Context(), push, devices)...)

	var shown bytes.Buffer
	for _, outcome := range outcomes {
		if outcome.Err == nil {
			t.Fatal("an error was expected")
		}
		fmt.Fprintf(&shown, "%v %+v %#v %s\n", outcome, outcome, outcome, outcome.Err)
		if status := (*relayclient.StatusError)(nil); errors.As(outcome.Err, &status) {
			fmt.Fprintf(&shown, "%#v\n", *status)
		}
		if err := json.NewEncoder(&shown).Encode(outcome); err != nil {
			t.Error(err)
		}
	}
	fmt.Fprintf(&shown, "%v %+v %#v %s\n", client, client, client, strings.Join(append(log.lines(), more.lines()...), "\n"))
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "client", client, "outcomes", outcomes)
	for _, secret := range []string{
		"parker", "correct", "horse", "topsecretquery", basic[:8], salt.Reveal()[:8],
		devices[0].PushToken.Reveal()[:8], devices[1].PushToken.Reveal()[20:28], strings.ToUpper(devices[1].PushToken.Reveal()[:8]),
	} {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("%q is shown:\n%s", secret, shown.String())
		}
	}
	if !strings.Contains(shown.String(), "you sent") || !strings.Contains(shown.String(), devices[0].ID) {
		t.Errorf("the log should say what happened to which device:\n%s", shown.String())
	}
}
