package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sealpush/sealpush/secret"
)

const (
	methodRegister   = "bridge/registerPushToken"
	methodUnregister = "bridge/unregisterPushToken"
)

// HandleMessage takes the two JSON-RPC messages that a phone sends to its bridge, not to the agent, and registers or
// unregisters its device token with the relay:
//
//	{"method":"bridge/registerPushToken","params":{"deviceToken":"…","platform":"apns","bundleId":"com.example.app"}}
//	{"method":"bridge/unregisterPushToken","params":{"deviceToken":"…"}}
//
// handled says that raw is such a message and must not be forwarded to the agent, whatever err is. When handled is
// false, err is nil and raw is to be forwarded as it is. Such a message costs a search of its text, without parsing and
// without an allocation, unless it mentions a push token or seems to spell one with escapes.
//
// raw is one message. "jsonrpc" may be missing. The platforms apns and ios, fcm and android are known. No answer is
// produced, not even for a message with an "id": the two are notifications.
//
// A malformed message of these two is handled, with a [FieldError] as err. The following count as malformed, too: a
// batch (JSON array) with such a message in it, of which nothing is forwarded; an object with one of our methods that
// gives "method" twice or in another case; and text that is not JSON and mentions one of our methods. Other errors are
// those of [Client.Register]. HandleMessage logs no error.
//
// It waits for the relay, at most 20 s. A bridge whose read loop must go on meanwhile asks [IsPushMessage] first.
func (c *Client) HandleMessage(ctx context.Context, raw []byte) (handled bool, err error) {
	method, params, err := parseMessage(raw)
	if method == "" {
		return err != nil, err
	}
	device, err := parseParams(params)
	if err != nil {
		return true, err
	}
	if method == methodUnregister {
		return true, c.Unregister(ctx, device.Token)
	}
	return true, c.Register(ctx, device)
}

// IsPushMessage says whether [Client.HandleMessage] would handle raw, without doing it.
func IsPushMessage(raw []byte) bool {
	method, _, err := parseMessage(raw)
	return method != "" || err != nil
}

// parseMessage returns the method and the params of a message of ours, and no method for any other. An error is a
// *FieldError and means a message of ours that cannot be handled, nor forwarded.
func parseMessage(raw []byte) (method string, params json.RawMessage, err error) {
	if !mayBeOurs(raw) {
		return "", nil, nil
	}
	raw = bytes.TrimLeft(bytes.TrimPrefix(raw, []byte("\uFEFF")), " \t\r\n")
	if !json.Valid(raw) {
		if text := unescape(raw); strings.Contains(text, methodRegister) || strings.Contains(text, methodUnregister) {
			return "", nil, &FieldError{Field: "message", Reason: "is not JSON"}
		}
		return "", nil, nil
	}
	var batch []json.RawMessage
	if json.Unmarshal(raw, &batch) != nil {
		return parseObject(raw)
	}
	for _, message := range batch {
		if method, _, err := parseObject(message); method != "" || err != nil {
			return "", nil, &FieldError{Field: "message", Reason: "is a batch; push messages must come alone"}
		}
	}
	return "", nil, nil
}

// mayBeOurs looks for what is in the text of every message of ours: PushToken, in which both methods end, with any of
// its letters escaped. It looks for the P, which is rare in other messages, or for its escape, which JSON writes in one
// way.
func mayBeOurs(raw []byte) bool {
	for rest := raw; ; {
		i := bytes.IndexByte(rest, 'P')
		if i < 0 {
			break
		}
		if rest = rest[i+1:]; startsPushToken(rest) {
			return true
		}
	}
	// The digits alone are looked for first: a message may be full of backslashes.
	return bytes.Contains(raw, []byte("0050")) && bytes.Contains(raw, []byte(`\u0050`))
}

// startsPushToken reports whether text goes on as PushToken does after its P, up to the end or to an escape.
func startsPushToken(text []byte) bool {
	for i, c := range []byte("ushToken") {
		switch {
		case i == len(text):
			return false
		case text[i] == '\\':
			return true
		case text[i] != c:
			return false
		}
	}
	return true
}

// parseObject reads the members of an object one by one, for a map would hide one of two with the same name. A valid
// value of another kind has none.
func parseObject(raw []byte) (method string, params json.RawMessage, err error) {
	methods, misspelt := 0, false
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if brace, _ := decoder.Token(); brace != json.Delim('{') {
		return "", nil, nil
	}
	for decoder.More() {
		name, _ := decoder.Token() // there is no error here or below, because raw is valid JSON
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		switch name, _ := name.(string); {
		case name == "params":
			params = value
		case strings.EqualFold(name, "method"): // some agents' decoders ignore the case of names
			methods++
			var text string
			if json.Unmarshal(value, &text) == nil && (text == methodRegister || text == methodUnregister) {
				method = text
				misspelt = misspelt || name != "method"
			}
		}
	}
	switch {
	case method == "":
		return "", nil, nil
	case methods > 1:
		return "", nil, &FieldError{Field: "method", Reason: "is given twice"}
	case misspelt:
		return "", nil, &FieldError{Field: "method", Reason: "is not written in lower case"}
	}
	return method, params, nil
}

// parseParams reads the members by hand, for the decoder's errors may quote the values.
func parseParams(raw json.RawMessage) (Device, error) {
	var members map[string]json.RawMessage
	if len(raw) == 0 {
		return Device{}, &FieldError{Field: "params", Reason: "is missing"}
	}
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return Device{}, &FieldError{Field: "params", Reason: "must be an object"}
	}
	var device Device
	var token string
	for _, field := range []struct {
		name string
		to   *string
	}{
		{"deviceToken", &token},
		{"platform", &device.Platform},
		{"bundleId", &device.BundleID},
	} {
		value, ok := members[field.name]
		if !ok || string(value) == "null" {
			continue
		}
		if json.Unmarshal(value, field.to) != nil {
			return Device{}, &FieldError{Field: field.name, Reason: "must be a string"}
		}
	}
	device.Token = secret.New(token)
	return device, nil
}

// unescape undoes the escapes that could spell a method, in text that is not JSON and so has no decoder.
func unescape(raw []byte) string {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			b.WriteByte(raw[i])
			continue
		}
		i++
		if raw[i] == 'u' && i+4 < len(raw) {
			if r, err := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16); err == nil {
				b.WriteRune(rune(r))
				i += 4
				continue
			}
		}
		b.WriteByte(raw[i])
	}
	return b.String()
}
