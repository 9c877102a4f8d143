package relayclient

import (
	"context"
	"errors"
	"log/slog"
	"net/url"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// A TransportError is a POST that got no answer: the relay could not be
// reached, broke the connection, or took too long. Whether the relay has seen
// the alert is unknown. It is a plain value.
type TransportError struct {
	// Relay is the relay's scheme and host.
	Relay string
	// Err is the cause, for errors.Is and errors.As: context.DeadlineExceeded
	// for a timeout, *net.DNSError, *net.OpError, *tls.CertificateVerificationError.
	Err error

	text string // of Err, without secrets
}

// Error says what happened, and names the relay by scheme and host only.
func (e *TransportError) Error() string {
	return "relayclient: POST to " + e.Relay + ": " + e.text
}

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Err }

// transportError drops the *url.Error around what http.Client returns: it
// quotes the URL with its user and query.
func (c *Client) transportError(ctx context.Context, err error, device pairing.Device) error {
	var wrapper *url.Error
	if errors.As(err, &wrapper) {
		err = wrapper.Err
	}
	if errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	return &TransportError{Relay: c.relay.display, Err: err, text: c.scrub(err.Error(), device)}
}

// scrub makes one printable line of text that others wrote.
func (c *Client) scrub(text string, device pairing.Device) string {
	return answer.Line(text, c.secretsOf(device)...)
}

func (c *Client) secretsOf(device pairing.Device) []string {
	return append(c.relay.secrets[:len(c.relay.secrets):len(c.relay.secrets)], device.PushToken)
}

func (c *Client) logFailure(ctx context.Context, outcome Outcome) {
	if outcome.Err == nil {
		return
	}
	c.log().LogAttrs(ctx, slog.LevelWarn, "alert not delivered",
		slog.String("device", outcome.DeviceID),
		slog.Int("status", outcome.Status),
		slog.Any("error", outcome.Err))
}
