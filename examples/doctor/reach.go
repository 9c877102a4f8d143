package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/payload"
)

const (
	patience       = 10 * time.Second    // for one answer, the client's own default
	renewalTime    = 14 * 24 * time.Hour // a certificate with less left should have been renewed
	tolerableDrift = time.Minute         // between this machine's clock and a server's
)

// reply is what a server answered to one request.
type reply struct {
	status int
	leads  string // scheme and host of a redirect's destination
	text   string // the start of the body, fit to print
}

// reach makes one request and reports what stands between here and the answer:
// name, connection, certificate, clock. It does not judge the answer. The secrets
// are cut out of what others say.
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
		Timeout:       patience,
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

// reportCertificate looks at one that was verified already.
func reportCertificate(r *report, state *tls.ConnectionState) {
	left := time.Until(state.PeerCertificates[0].NotAfter)
	text := fmt.Sprintf("%s, certificate good for %d days", tls.VersionName(state.Version), int(left.Hours()/24))
	if left < renewalTime {
		r.warn("See why the server's certificate was not renewed: no alert gets through once it has expired.", "%s", text)
		return
	}
	r.ok("%s", text)
}

// reportClock compares with a server's clock. A Date header is of whole seconds
// and of some moment between sent and received.
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
		"phones take an alert for outdated by its time, and tokens end by it."
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
