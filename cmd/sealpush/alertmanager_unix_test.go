//go:build unix

package main

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A webhook in hand when it is told to stop is answered, and its page is sent.
func TestAlertmanagerStopsGracefully(t *testing.T) {
	f := newWebhookFixture(t, "")
	hold := make(chan struct{})
	f.relay.Script(1, relaytest.Answer{Hold: hold})
	receiver, process, url := f.start(t)
	answered := make(chan int, 1)
	go func() {
		status, _ := postWebhook(t, http.DefaultClient, url, nil)
		answered <- status
	}()
	if err := f.relay.WaitInFlight(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	receiver.Await(t, "stopping when the webhooks that have arrived are answered")
	close(hold)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the webhook is answered %d", status)
	}
	if code := receiver.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, receiver.Output())
	}
	if received, err := f.phone.Received(f.relay); err != nil || len(received) != 1 {
		t.Errorf("the phone received %v, %v", received, err)
	}
}
