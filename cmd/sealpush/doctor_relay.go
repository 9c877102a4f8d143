package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// checkRelay asks a relay for sealed alerts without paging anybody: it posts an envelope with nothing in it, which
// every relay has to refuse (relay protocol, "Responses"). It reports whether the answer shows that the server is not a
// relay.
func checkRelay(ctx context.Context, r *report, relayURL string) (otherServer bool) {
	r.begin("Relay for sealed alerts")
	client, err := relayclient.New(relayURL)
	if err != nil {
		r.fail("Correct -relay-url.", "%v", err)
		return false
	}
	client.Close()
	target, err := url.Parse(relayURL)
	if err != nil {
		r.fail("Correct -relay-url.", "not a URL") // the cause quotes it
		return false
	}
	r.ok("the URL can be used: %s://%s%s", target.Scheme, target.Host, notShown(target))

	target.Fragment, target.RawFragment = "", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader("{}"))
	if err != nil {
		r.fail("Correct -relay-url.", "not a URL that can be posted to")
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sealpush") // credentials in the URL become a header
	a, reached := reach(r, req, answer.URLSecrets(target)...)
	if !reached {
		return false
	}
	slash := a.status/100 == 3 && a.leads == target.Scheme+"://"+target.Host // as a router redirects from /x to /x/
	if nothingThere(a.status) || slash {
		if found := relayElsewhere(ctx, target); found != "" {
			r.fail("Set the relay's URL to "+found+".", "answers %v, and a relay is at another path of the same server", a)
			return false
		}
	}
	judgeRelay(r, a, target.User != nil)
	return a.status/100 == 2
}

// nothingThere is the status of a path without a handler.
func nothingThere(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone
}

// relayElsewhere looks for a relay at the paths where one usually is. It returns what to set, without credentials, or
// nothing.
func relayElsewhere(ctx context.Context, target *url.URL) string {
	for _, path := range []string{"/", "/relay", "/push"} {
		if strings.TrimSuffix(target.Path, "/") == strings.TrimSuffix(path, "/") {
			continue
		}
		other := url.URL{Scheme: target.Scheme, Host: target.Host, Path: path}
		called := other
		called.User = target.User
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, called.String(), strings.NewReader("{}"))
		if err != nil {
			return ""
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", "sealpush")
		if a, ok := reach(&report{quiet: true}, req); ok && (a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity) {
			if target.User != nil {
				return other.String() + ", with the credentials that it has"
			}
			return other.String()
		}
	}
	return ""
}

// notShown names the parts of the URL that may be secrets, as answer.URLSecrets has it.
func notShown(u *url.URL) string {
	switch path, query := len(u.Path) > len("/"), u.RawQuery != ""; {
	case path && query:
		return " (path and query not shown)"
	case path:
		return " (path not shown)"
	case query:
		return " (query not shown)"
	}
	return ""
}

// judgeRelay reads the answer to an empty envelope.
func judgeRelay(r *report, a reply, credentials bool) {
	const asked = "a malformed envelope"
	switch {
	case a.status/100 == 2:
		r.fail("This is some other server: no relay accepts that. Correct the relay's URL.", "accepts %s: %v", asked, a)
	case a.status == http.StatusUnauthorized && !credentials:
		r.fail("The relay requires credentials: put them into its URL, as https://user:password@host/path.", "answers %v", a)
	case a.status == http.StatusUnauthorized:
		r.fail("The relay does not accept the credentials in its URL: correct them. "+
			"Special characters in them must be percent-encoded.", "answers %v", a)
	case a.status == http.StatusForbidden:
		r.fail("The relay does not let this machine in: ask its operator (an address filter, an admission policy).", "answers %v", a)
	case a.status == http.StatusTooManyRequests:
		r.warn(statusAdvice(a, "the relay's URL"), "answers %v", a)
	case a.status == http.StatusBadRequest, a.status == http.StatusUnprocessableEntity:
		r.ok("refuses %s, as a relay does: %v", asked, a)
	case statusAdvice(a, "") != "":
		r.fail(statusAdvice(a, "the relay's URL"), "answers %v", a)
	default:
		r.warn("A relay refuses that with 400. Page a phone with -page to see whether this is one.", "answers %s with %v", asked, a)
	}
}

const (
	answerTimeout  = 10 * time.Second    // the client's own default
	renewalTime    = 14 * 24 * time.Hour // a certificate with less left should have been renewed
	tolerableDrift = time.Minute         // between this machine's clock and a server's
)

// reply is what a server answered to one request.
type reply struct {
	status int
	leads  string // scheme and host of a redirect's destination
	text   string // the start of the body, fit to print
}

// reach makes one request and reports problems on the way to the server: name, connection, certificate, clock. It does
// not judge the answer. The secrets are cut out of what others say.
func reach(r *report, req *http.Request, secrets ...string) (reply, bool) {
	if host := req.URL.Hostname(); req.URL.Scheme == "http" && !isLoopback(host) {
		r.warn("Use https: push tokens, credentials and bearer tokens travel in clear.", "plain http to another machine")
	}
	address := ""
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { address = c.Conn.RemoteAddr().String() }}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{
		Transport:     transport,
		Timeout:       answerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	sent := time.Now()
	resp, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		err = withoutURL(err)
		r.fail(networkAdvice(err), "no answer: %s", answer.Line(err.Error(), secrets...))
		return reply{}, false
	}
	defer resp.Body.Close()
	if proxy, err := transport.Proxy(req); err == nil && proxy != nil {
		address += ", a proxy"
	}
	r.ok("answers at %s", address)
	if resp.TLS != nil {
		reportCertificate(r, resp.TLS)
	}
	reportClock(r, resp.Header.Get("Date"), sent, time.Now())
	leads := ""
	if to, err := resp.Location(); err == nil {
		leads = answer.Line(to.Scheme+"://"+to.Host, secrets...)
	}
	return reply{resp.StatusCode, leads, answer.Text(resp.Body, secrets...)}, true
}

// String describes the answer.
func (a reply) String() string {
	text := fmt.Sprintf("%d %s", a.status, http.StatusText(a.status))
	if a.text != "" {
		text += ": " + a.text
	}
	return text
}

// reportCertificate reports on a certificate that was already verified.
func reportCertificate(r *report, state *tls.ConnectionState) {
	left := time.Until(state.PeerCertificates[0].NotAfter)
	text := fmt.Sprintf("%s, certificate good for %d days", tls.VersionName(state.Version), int(left.Hours()/24))
	if left < renewalTime {
		r.warn("See why the server's certificate was not renewed: no alert gets through once it has expired.", "%s", text)
		return
	}
	r.ok("%s", text)
}

// reportClock compares with a server's clock. A Date header is of whole seconds and of some moment between sent and
// received.
func reportClock(r *report, date string, sent, received time.Time) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return // not every server says
	}
	drift := time.Duration(0)
	direction := "ahead of"
	if early := sent.Sub(theirs.Add(time.Second)); early > 0 {
		drift = early
	} else if late := theirs.Sub(received); late > 0 {
		drift, direction = late, "behind"
	}
	const toDo = "Set this machine's clock (NTP) if it is the one that is wrong: " +
		"phones use it to tell whether an alert is outdated, and tokens expire by it."
	text := fmt.Sprintf("this machine's clock is %v %s the server's", drift.Round(time.Second), direction)
	switch {
	case drift > payload.FreshFor:
		r.fail(toDo, "%s", text)
	case drift > tolerableDrift:
		r.warn(toDo, "%s", text)
	default:
		r.ok("this machine's clock agrees with the server's")
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withoutURL drops what http.Client puts around an error: it quotes the URL.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// networkAdvice says what to do about a request that got no answer.
func networkAdvice(err error) string {
	if cause, ok := errors.AsType[x509.CertificateInvalidError](err); ok && cause.Reason == x509.Expired {
		return "Renew the server's certificate, or set this machine's clock if it is the one that is wrong."
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "The certificate is for another host: correct the URL's host, or the server's certificate."
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "Install the certificate authority in the system's store, " +
			"or give the client a pool with it (relayclient.WithTLSConfig). Do not turn verification off."
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || strings.Contains(err.Error(), "gave HTTP response to HTTPS client") {
		return "This port does not speak TLS: is it http, or another port?"
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "There is no such host: correct the URL's host, or this machine's DNS."
		}
		return "The name could not be looked up: look at this machine's DNS and network."
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "proxyconnect" {
		return "The proxy of $HTTPS_PROXY or $HTTP_PROXY does not answer: correct it, or add the host to $NO_PROXY."
	}
	if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
		return "The server is slow or a firewall drops the packets: try from another network, then ask the server's operator."
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "dial" {
		return "Nothing listens there: start the server (for a relay to try things with: sealpush relay), or correct the port. A firewall may refuse, too."
	}
	return "The connection broke: look at the server's log, and at any proxy in between."
}

// statusAdvice says what to do about an answer that is wrong whatever was asked. It is empty for the others. urlName is
// what the person who reads it would look for.
func statusAdvice(a reply, urlName string) string {
	switch {
	case a.status/100 == 3 && a.leads != "":
		return "Redirects are not followed. This one leads to " + a.leads + ": set " + urlName + " to where it leads."
	case a.status/100 == 3:
		return "Redirects are not followed: correct " + urlName + "."
	case nothingThere(a.status):
		return "The server has nothing at this path: correct the path of " + urlName + "."
	case a.status == http.StatusTooManyRequests:
		return "Wait, and look for something that sends too much."
	case a.status/100 == 5:
		return "The server, or one behind it, does not work: look at its log, or ask its operator."
	}
	return ""
}
