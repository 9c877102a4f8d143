package bridge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sealpush/sealpush/secret"
)

// maxField bounds a device token and a bundle id, in bytes. APNs and FCM tokens are a few hundred at most.
const maxField = 4096

// Device is a phone as it introduces itself to the bridge.
type Device struct {
	Token    secret.Text // the device token that APNs or FCM gave to the app; anybody who knows it can wake the phone
	Platform string      // "ios" or "apns", "android" or "fcm"
	BundleID string      // the app's bundle id; may be empty
}

// Register tells the relay about a device, so that [Client.Notify] wakes it. Registering it again is fine.
//
// What the relay would refuse is refused before any request, with a [FieldError]. Other errors are a [RelayError] or,
// within one, a [pushauth.TokenError]. Transient failures are retried; a call takes at most 20 s. When push is disabled
// Register checks the device and does nothing. A nil ctx is context.Background().
//
// Register and [Client.Unregister] of one Client reach the relay one after the other, in the order in which they were
// called: the deployed relay reads, changes and writes its list of devices, and of several calls at once it keeps one.
// The wait for those before counts towards the 20 s.
func (c *Client) Register(ctx context.Context, device Device) error {
	platform, err := device.check()
	if err != nil {
		return err
	}
	if !c.Enabled() {
		return nil
	}
	_, _, err = c.do(ctx, call{
		method: http.MethodPost,
		path:   "/register",
		body: struct {
			Token    string `json:"device_token"`
			Platform string `json:"platform"`
			BundleID string `json:"bundle_id,omitempty"`
		}{device.Token.Reveal(), platform, device.BundleID},
		registers: true,
		secrets:   []string{device.Token.Reveal()},
	})
	if err != nil {
		return err
	}
	c.log().InfoContext(ctx, "device registered with the push relay", "platform", platform)
	return nil
}

// Unregister makes the relay forget a device. Errors and retries are those of [Client.Register].
func (c *Client) Unregister(ctx context.Context, token secret.Text) error {
	if err := checkField("deviceToken", token.Reveal()); err != nil {
		return err
	}
	if !c.Enabled() {
		return nil
	}
	_, _, err := c.do(ctx, call{
		method: http.MethodDelete,
		path:   "/register",
		body: struct {
			Token string `json:"device_token"`
		}{token.Reveal()},
		registers: true,
		secrets:   []string{token.Reveal()},
	})
	if err != nil {
		return err
	}
	c.log().InfoContext(ctx, "device unregistered from the push relay")
	return nil
}

// check returns the platform as the relay names it.
func (d Device) check() (platform string, err error) {
	if err := checkField("deviceToken", d.Token.Reveal()); err != nil {
		return "", err
	}
	if d.BundleID != "" {
		if err := checkField("bundleId", d.BundleID); err != nil {
			return "", err
		}
	}
	switch d.Platform {
	case "ios", "apns":
		return "ios", nil
	case "android", "fcm":
		return "android", nil
	case "":
		return "", &FieldError{Field: "platform", Reason: "is missing"}
	}
	return "", &FieldError{Field: "platform", Reason: "must be ios, apns, android or fcm"}
}

func checkField(name, value string) error {
	switch {
	case value == "":
		return &FieldError{Field: name, Reason: "is missing"}
	case len(value) > maxField:
		return &FieldError{Field: name, Reason: fmt.Sprintf("is longer than %d bytes", maxField)}
	case !utf8.ValidString(value):
		return &FieldError{Field: name, Reason: "is not UTF-8"}
	case strings.ContainsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return &FieldError{Field: name, Reason: "has white space or control characters"}
	}
	return nil
}
