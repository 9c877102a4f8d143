package main

import (
	"fmt"
	"strings"
	"testing"
)

const deviceToken = "hunter2-device-token"

func TestPushFromPairingToUnregistering(t *testing.T) {
	relay := startRelay(t)
	b := startBridge(t, noPush+relay.pushRelay, "", "-name", "My Agent", "-verbose").pair(t)
	if !strings.Contains(relay.pushRelay, " url = \""+b.response.PushRelayURL+"\"\n") {
		t.Errorf("pushRelayUrl %q is not that of\n%s", b.response.PushRelayURL, relay.pushRelay)
	}

	phone := b.connect(t)
	phone.send(`{"method":"bridge/registerPushToken","params":{"deviceToken":"` + deviceToken + `","platform":"apns","bundleId":"com.example.app"}}`)
	relay.stderr.waitFor(t, "method=POST path=/push-relay/register status=200")
	if got := relay.arrivals(t).Devices; len(got) != 1 || got[0].Platform != "ios" || got[0].BundleID != "com.example.app" {
		t.Fatalf("registered are %v", got)
	}
	phone.leave()

	// More than a pipe holds, so that most must have been buffered when it was printed.
	lines := make([]string, 3000)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"n":%d,"text":"%s"}}`, i, strings.Repeat("é", 50))
	}
	b.agent.tell(t, lines...)
	b.agent.printed(t)
	relay.stderr.waitFor(t, "method=POST path=/push-relay/push status=200")

	phone = b.connect(t)
	for _, line := range lines {
		phone.expect(line)
	}
	b.agent.tell(t, `{"jsonrpc":"2.0","id":"live"}`)
	phone.expect(`{"jsonrpc":"2.0","id":"live"}`)
	pushes := relay.arrivals(t).Pushes
	if len(pushes) != 1 || pushes[0].Title != "My Agent" || pushes[0].Body != "New activity" ||
		len(pushes[0].Results) != 1 || pushes[0].Results[0].Status != "sent" {
		t.Errorf("pushed were %v", pushes)
	}

	phone.send(`{"jsonrpc":"2.0","method":"bridge/unregisterPushToken","params":{"deviceToken":"` + deviceToken + `"}}`)
	relay.stderr.waitFor(t, "method=DELETE path=/push-relay/register status=200")
	if got := relay.arrivals(t).Devices; len(got) != 0 {
		t.Errorf("left are %v", got)
	}
	b.agent.tell(t, "exit 0")
	phone.expectClose(1000) // nothing was sent twice, nor has the agent's input echoed
	if status := b.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, secret := range []string{relay.secret, deviceToken, b.response.AuthToken.Reveal()} {
		if strings.Contains(b.stdout.text()+b.stderr.text(), secret) {
			t.Errorf("the output shows a secret:\n%s%s", b.stdout.text(), b.stderr.text())
		}
	}
}

func TestWithoutPush(t *testing.T) {
	for name, config := range map[string]string{
		"no table":      noPush,
		"missing field": "[push_relay]\nurl = \"https://push.example\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := startBridge(t, config, "").pair(t)
			if b.response.PushRelayURL != "" || b.response.AuthToken.IsZero() {
				t.Errorf("pairing response %+v", b.response)
			}
			b.agent.tell(t, "kept")
			b.agent.printed(t)
			phone := b.connect(t)
			phone.expect("kept")
			phone.send(`{"method":"bridge/registerPushToken","params":{"deviceToken":"` + deviceToken + `","platform":"apns"}}`)
			phone.send("for the agent")
			b.agent.expect(t, "for the agent")
			b.stderr.waitFor(t, "push notifications disabled")
		})
	}
}

func TestRelayDownChangesNothing(t *testing.T) {
	b := startBridge(t, `[push_relay]
url = "http://127.0.0.1:1"
token_url = "http://127.0.0.1:1"
client_id = "bridge-home-office"
client_secret = "hunter2-secret"
`, "").pair(t)
	b.agent.tell(t, "one", "two")
	b.agent.printed(t)
	phone := b.connect(t)
	phone.expect("one")
	phone.expect("two")
}

func TestPushMessagesStayWithTheBridge(t *testing.T) {
	b := startBridge(t, noPush, "").pair(t)
	phone := b.connect(t)
	phone.send(`{"method":"bridge/registerPushToken","params":{"deviceToken":"` + deviceToken + `"}}`)
	b.stderr.waitFor(t, "push message not handled")
	phone.send(`{"method":"bridge/registerPushToken","params":{"deviceToken":"` + deviceToken)
	b.stderr.waitFor(t, "push message not handled")

	foreign := ` {"jsonrpc":"2.0",  "id":1,"method":"session/prompt","params":{"text":"PushToken \u0050ushToken <é>&` + "\t" + `"}} `
	phone.send(foreign)
	b.agent.expect(t, foreign) // and nothing before it
	if strings.Contains(b.stderr.text(), deviceToken) {
		t.Errorf("the log shows a device token:\n%s", b.stderr.text())
	}
}
