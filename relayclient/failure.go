package relayclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

// A TransportError is a POST that got no answer: the relay could not be reached, broke the connection, or took too
// long. Unless it is Unsent, whether the relay has seen the alert is unknown.
type TransportError struct {
	// Relay is the relay's scheme and host.
	Relay string
	// Err is the cause, for errors.Is and errors.As: context.DeadlineExceeded for a timeout, *net.DNSError,
	// *net.OpError, *tls.CertificateVerificationError.
	Err error
	// Unsent means that there was no connection to be had, and the relay has seen nothing.
	Unsent bool
}

// Error says what happened, and names the relay by scheme and host only.
func (e *TransportError) Error() string {
	return fmt.Sprintf("relayclient: POST to %s: %v", e.Relay, e.Err)
}

// Unwrap returns the cause.
func (e *TransportError) Unwrap() error { return e.Err }

// transportError drops the *url.Error around what http.Client returns: it quotes the URL with its user and query.
func (c *Client) transportError(ctx context.Context, err error, device pairing.Device, unsent bool) error {
	var wrapper *url.Error
	if errors.As(err, &wrapper) {
		err = wrapper.Err
	}
	if errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	return &TransportError{Relay: c.relay.display, Err: answer.Error(err, c.secretsOf(device)...), Unsent: unsent}
}

// scrub makes one printable line of text that others wrote.
func (c *Client) scrub(text string, device pairing.Device) string {
	return answer.Line(text, c.secretsOf(device)...)
}

func (c *Client) secretsOf(device pairing.Device) []string {
	return append(c.relay.secrets[:len(c.relay.secrets):len(c.relay.secrets)], device.PushToken.Reveal())
}

// A panicError is a panic of a caller's transport.
type panicError struct {
	text  string
	stack string
}

// maxStack bounds what the log keeps of a stack, in bytes: the panic is at its start.
const maxStack = 4 << 10

// panicked makes an error of what was recovered. It has to be called by the function that recovers, while the stack is
// still that of the panic.
func (c *Client) panicked(value any, device pairing.Device) error {
	stack := debug.Stack()
	return &panicError{c.scrub(fmt.Sprint(value), device), string(stack[:min(len(stack), maxStack)])}
}

func (e *panicError) Error() string { return "relayclient: panic while posting: " + e.text }

func (c *Client) logTrimmed(ctx context.Context, alert payload.Alert, suite seal.Suite, cut payload.Trimmed) {
	if !cut.IsZero() {
		c.log(ctx, slog.LevelDebug, "alert shortened to fit", alert, slog.String("suite", string(suite)),
			slog.Int("log_lines_dropped", cut.LogLines), slog.Any("shortened", cut.Shortened), slog.Any("dropped", cut.Dropped))
	}
}

// logOutcome logs what somebody may have to look after. That a copy was coalesced is normal when several nodes report
// one alert, so that line is at Debug.
func (c *Client) logOutcome(ctx context.Context, alert payload.Alert, outcome Outcome) {
	attrs := []slog.Attr{slog.String("device", outcome.DeviceID), slog.Int("status", outcome.Status)}
	said := slog.String("outcome", string(outcome.Relay))
	switch {
	case outcome.Err != nil:
		attrs = append(attrs, slog.Any("error", outcome.Err))
		if crash, ok := errors.AsType[*panicError](outcome.Err); ok {
			attrs = append(attrs, slog.String("stack", crash.stack))
		}
		c.log(ctx, slog.LevelWarn, "alert not delivered", alert, attrs...)
	case outcome.Relay == Digested || outcome.Relay == Suppressed:
		c.log(ctx, slog.LevelWarn, "alert accepted, but the phone does not ring", alert, append(attrs, said)...)
	case outcome.Relay == Coalesced:
		c.log(ctx, slog.LevelDebug, "alert accepted as a copy of one that the phone has", alert, append(attrs, said)...)
	}
}

// log writes a line about an alert, which it names.
func (c *Client) log(ctx context.Context, level slog.Level, message string, alert payload.Alert, attrs ...slog.Attr) {
	c.logLine(ctx, level, message, append(named(alert), attrs...)...)
}

// logLine outlives a handler that panics.
func (c *Client) logLine(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	defer func() { recover() }()
	logger := c.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, level, message, attrs...)
}

// maxNamed bounds what a log line quotes of an alert, in bytes.
const maxNamed = 256

// named is what a log line calls an alert by.
func named(alert payload.Alert) []slog.Attr {
	if alert.Kind == "" {
		return nil // one that was stored sealed
	}
	attrs := []slog.Attr{slog.String("kind", start(string(alert.Kind))), slog.String("name", start(alert.Name))}
	if run := cmp.Or(alert.RunID, alert.RunKey); run != "" {
		attrs = append(attrs, slog.String("run_id", start(run)))
	}
	return attrs
}

func start(text string) string { return firstBytes(text, maxNamed) }

// firstBytes cuts a text that is longer than n bytes.
func firstBytes(text string, n int) string {
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}
