package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

// A relay, a program that pairs, and a phone that does what the page does: three that meet at the relay alone.
func TestPairThroughARunningRelay(t *testing.T) {
	const invitation = "an-invitation-of-this-test"
	service := webpushtest.New(t)
	relay := startWeb(t, service, "-state", t.TempDir(), "-invitation", invitation)
	cmd := tool(t, "pair", "-relay-url", sealedURL(relay), "-registry", filepath.Join(t.TempDir(), "devices.json"), "-host", "db1")
	cmd.Env = append(cmd.Env, "SEALPUSH_PAIR_INVITATION="+invitation)
	typed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pair := programtest.Start(t, cmd)

	phone := openPage(t, link(t, pair), seal.X25519)
	resp, err := http.Get(phone.origin + "/phone/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the page that the link leads to: %s", resp.Status)
	}
	token, _ := subscribe(t, relay, phone.link.Invitation, service.Subscribe())
	phone.Phone = relaytest.NewPhone(relaytest.WithPrivateKey(phone.key), relaytest.WithPushToken(token))
	phone.leave(t, phone.sealed(t, phone.request()), 204)
	pair.Await(t, "Fingerprint  "+phone.PublicKey().Fingerprint())
	typeLine(t, typed, "yes")
	if said := phone.answer(t); !said.Paired {
		t.Errorf("the phone is told %+v", said)
	}
	if code := pair.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, pair.Output())
	}
	wantAlert(t, service, phone.key, "test")
	for _, secret := range []string{token, phone.link.Mailbox, invitation, phone.PublicKey().String()} {
		if strings.Contains(pair.Output(), secret) || strings.Contains(relay.logs.String(), secret) {
			t.Errorf("prints %q:\n%s\n%s", secret, pair.Output(), relay.logs.String())
		}
	}
}
