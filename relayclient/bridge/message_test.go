package bridge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func TestHandleMessage(t *testing.T) {
	const token = "hunter2-device-token"
	register := func(platform string) relay.BridgeDevice {
		return relay.BridgeDevice{Token: secret.New(token), Platform: platform}
	}
	params := `"params":{"deviceToken":"` + token + `","platform":"apns"}`
	tests := []struct {
		name, message string
		handled       bool
		field         string             // of the FieldError; none when empty
		device        relay.BridgeDevice // that is registered then
	}{
		// Ours.
		{"as in the document", `{
			"method": "bridge/registerPushToken",
			"params": {"deviceToken": "` + token + `", "platform": "apns", "bundleId": "com.aptove.ios"}
		}`, true, "", relay.BridgeDevice{Token: secret.New(token), Platform: "ios", BundleID: "com.aptove.ios"}},
		{"with jsonrpc", `{"jsonrpc":"2.0","method":"bridge/registerPushToken",` + params + `}`, true, "", register("ios")},
		{"with an id", `{"id":1,"method":"bridge/registerPushToken",` + params + `}`, true, "", register("ios")},
		{"params first", `{` + params + `,"method":"bridge/registerPushToken"}`, true, "", register("ios")},
		{"white space around", "\r\n\t {" + params + `,"method":"bridge/registerPushToken"}` + "\n", true, "", register("ios")},
		{"fcm", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"fcm"}}`, true, "", register("android")},
		{"ios", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"ios"}}`, true, "", register("ios")},
		{"android", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"android"}}`, true, "", register("android")},
		{"empty bundle id", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"fcm","bundleId":""}}`, true, "", register("android")},
		{"null bundle id", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"fcm","bundleId":null}}`, true, "", register("android")},

		// Ours in disguise.
		{"escaped slash", `{"method":"bridge\/registerPushToken",` + params + `}`, true, "", register("ios")},
		{"escaped capital", `{"method":"bridge/register\u0050ushToken",` + params + `}`, true, "", register("ios")},
		{"escaped inner letter", `{"method":"bridge/registerPushTok\u0065n",` + params + `}`, true, "", register("ios")},
		{"escaped last letter", `{"method":"bridge/registerPushToke\u006E",` + params + `}`, true, "", register("ios")},
		{"escaped first letter", `{"method":"\u0062ridge/registerPushToken",` + params + `}`, true, "", register("ios")},
		{"all escaped", `{"method":"` + escapeAll("bridge/registerPushToken") + `",` + params + `}`, true, "", register("ios")},
		{"escaped name", `{"m\u0065thod":"bridge/registerPushToken",` + params + `}`, true, "", register("ios")},

		// Ours and malformed: an error, no request, and never forwarded.
		{"no params", `{"method":"bridge/registerPushToken"}`, true, "params", relay.BridgeDevice{}},
		{"null params", `{"method":"bridge/registerPushToken","params":null}`, true, "params", relay.BridgeDevice{}},
		{"params by position", `{"method":"bridge/registerPushToken","params":["` + token + `","apns"]}`, true, "params", relay.BridgeDevice{}},
		{"no token", `{"method":"bridge/registerPushToken","params":{"platform":"apns"}}`, true, "deviceToken", relay.BridgeDevice{}},
		{"empty token", `{"method":"bridge/unregisterPushToken","params":{"deviceToken":""}}`, true, "deviceToken", relay.BridgeDevice{}},
		{"numeric token", `{"method":"bridge/registerPushToken","params":{"deviceToken":42424242,"platform":"apns"}}`, true, "deviceToken", relay.BridgeDevice{}},
		{"token with a line break", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `\n","platform":"apns"}}`, true, "deviceToken", relay.BridgeDevice{}},
		{"endless token", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + strings.Repeat("hunter2", 1000) + `","platform":"apns"}}`, true, "deviceToken", relay.BridgeDevice{}},
		{"no platform", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `"}}`, true, "platform", relay.BridgeDevice{}},
		{"unknown platform", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"hunter2"}}`, true, "platform", relay.BridgeDevice{}},
		{"platform in another case", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"APNS"}}`, true, "platform", relay.BridgeDevice{}},
		{"wrong bundle id", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token + `","platform":"apns","bundleId":7}}`, true, "bundleId", relay.BridgeDevice{}},
		{"cut short", `{"method":"bridge/registerPushToken","params":{"deviceToken":"` + token, true, "message", relay.BridgeDevice{}},
		{"cut short and escaped", `{"method":"bridge\/register\u0050ushToken","params":{"deviceToken":"` + token, true, "message", relay.BridgeDevice{}},
		{"two in one", `{"method":"x"}{"method":"bridge/registerPushToken",` + params + `}`, true, "message", relay.BridgeDevice{}},
		{"batch", `[{"method":"x"},{"method":"bridge/registerPushToken",` + params + `}]`, true, "message", relay.BridgeDevice{}},
		{"method twice, ours last", `{"method":"x","method":"bridge/registerPushToken",` + params + `}`, true, "method", relay.BridgeDevice{}},
		{"method twice, ours first", `{"method":"bridge/registerPushToken","method":"x",` + params + `}`, true, "method", relay.BridgeDevice{}},
		{"method twice, ours both", `{"method":"bridge/registerPushToken","method":"bridge/registerPushToken",` + params + `}`, true, "method", relay.BridgeDevice{}},
		{"method in another case", `{"Method":"bridge/registerPushToken",` + params + `}`, true, "method", relay.BridgeDevice{}},

		// Somebody else's.
		{"prompt", string(foreign), false, "", relay.BridgeDevice{}},
		{"answer", `{"jsonrpc":"2.0","id":1,"result":{"PushToken":"yes"}}`, false, "", relay.BridgeDevice{}},
		{"ours in params", `{"method":"session/prompt","params":{"method":"bridge/registerPushToken"}}`, false, "", relay.BridgeDevice{}},
		{"ours in a string", `{"method":"session/prompt","params":{"text":"{\"method\":\"bridge/registerPushToken\"}"}}`, false, "", relay.BridgeDevice{}},
		{"ours as a name", `{"bridge/registerPushToken":"method"}`, false, "", relay.BridgeDevice{}},
		{"longer", `{"method":"bridge/registerPushTokens"}`, false, "", relay.BridgeDevice{}},
		{"shorter", `{"method":"registerPushToken"}`, false, "", relay.BridgeDevice{}},
		{"another case", `{"method":"bridge/registerpushtoken"}`, false, "", relay.BridgeDevice{}},
		{"escaped to something else", `{"method":"bridge/register\u0050ushTokem"}`, false, "", relay.BridgeDevice{}},
		{"escaped backslash", `{"method":"bridge/register\\u0050ushToken"}`, false, "", relay.BridgeDevice{}},
		{"method is no string", `{"method":["bridge/registerPushToken"]}`, false, "", relay.BridgeDevice{}},
		{"batch of others", `[{"method":"x"},[{"method":"bridge/registerPushToken"}],7,"PushToken"]`, false, "", relay.BridgeDevice{}},
		{"a string", `"bridge/registerPushToken"`, false, "", relay.BridgeDevice{}},
		{"not JSON", `PushToken {`, false, "", relay.BridgeDevice{}},
		{"not JSON, and escapes", "{\"text\":\"PushToken \\u0050ushToken\t\"}", false, "", relay.BridgeDevice{}},
		{"empty", ``, false, "", relay.BridgeDevice{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			service, client := newClient(t)
			raw := []byte(tt.message)
			handled, err := client.HandleMessage(t.Context(), raw)
			if handled != tt.handled || bridge.IsPushMessage(raw) != tt.handled {
				t.Errorf("handled = %v, IsPushMessage = %v", handled, bridge.IsPushMessage(raw))
			}
			failed, ok := errors.AsType[*bridge.FieldError](err)
			if ok != (tt.field != "") || ok && failed.Field != tt.field || !ok && err != nil {
				t.Errorf("error %v, want one about %q", err, tt.field)
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "4242")) {
				t.Errorf("error quotes the message: %v", err)
			}
			var want []relay.BridgeDevice
			if tt.device.Platform != "" {
				want = append(want, tt.device)
			}
			if got := service.Devices(clientID); !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
				t.Errorf("registered %+v, want %+v", got, want)
			}
			if tt.device.Platform == "" && service.RequestCount(relaytest.EndpointToken) != 0 {
				t.Error("a service was asked")
			}
			if string(raw) != tt.message {
				t.Error("the message was modified")
			}

			// A bridge without push keeps them from the agent all the same.
			disabled, err := bridge.New(bridge.Config{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if handled, err := disabled.HandleMessage(t.Context(), raw); handled != tt.handled || (err != nil) != (tt.field != "") {
				t.Errorf("disabled: handled = %v, error %v", handled, err)
			}
		})
	}
}

func TestHandleMessageUnregisters(t *testing.T) {
	service, client := newClient(t)
	mustRegister(t, client, phone, bridge.Device{Token: secret.New("another"), Platform: "fcm"})
	handled, err := client.HandleMessage(t.Context(), []byte(`{"method":"bridge/unregisterPushToken","params":{"deviceToken":"hunter2-device-token"}}`))
	if !handled || err != nil {
		t.Errorf("handled = %v, error %v", handled, err)
	}
	if got := service.Devices(clientID); len(got) != 1 || got[0].Token.Reveal() != "another" {
		t.Errorf("left are %v", got)
	}
}

func escapeAll(s string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// What a decoder takes for one of our methods is never forwarded, and what is not ours is never taken.
func FuzzHandleMessage(f *testing.F) {
	f.Add([]byte(`{"method":"bridge/registerPushToken","params":{"deviceToken":"t","platform":"fcm"}}`), "bridge/registerPushToken", "")
	f.Add([]byte(`{"m\u0065thod":"bridge\/unregister\u0050ushToken"}`), "session/prompt", "PushToken")
	f.Add([]byte(`[{"method":"bridge/registerPushToken"}]`), "bridge/unregisterPushToken", "\u0050")
	f.Add(foreign, "x", `"method":"bridge/registerPushToken"`)
	client, err := bridge.New(bridge.Config{}, quiet)
	if err != nil {
		f.Fatal(err)
	}
	ours := func(method string) bool {
		return method == "bridge/registerPushToken" || method == "bridge/unregisterPushToken"
	}
	f.Fuzz(func(t *testing.T, raw []byte, method, text string) {
		handled, err := client.HandleMessage(t.Context(), raw)
		if !handled && err != nil {
			t.Errorf("%q: not handled, and yet an error: %v", raw, err)
		}
		if _, ok := errors.AsType[*bridge.FieldError](err); err != nil && !ok {
			t.Errorf("%q: error %#v", raw, err)
		}
		// The decoder of many an agent: any case, the last of several.
		var decoded struct{ Method string }
		if json.Unmarshal(raw, &decoded) == nil && ours(decoded.Method) && !handled {
			t.Errorf("%q would reach the agent", raw)
		}
		if json.Valid(raw) && handled && !strings.Contains(escapeless(raw), "PushToken") {
			t.Errorf("%q was taken from the agent", raw)
		}

		built, err := json.Marshal(map[string]any{"method": method, "params": map[string]string{"text": text, "method": text}, text + ".": method})
		if err != nil {
			t.Fatal(err)
		}
		if handled, _ := client.HandleMessage(t.Context(), built); handled != ours(method) {
			t.Errorf("%s: handled = %v", built, handled)
		}
	})
}

// escapeless re-encodes raw without escapes of ASCII letters.
func escapeless(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return ""
	}
	text, _ := json.Marshal(v)
	return string(raw) + string(text)
}
