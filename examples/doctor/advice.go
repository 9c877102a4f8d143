package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
)

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
			"or hand the client a pool with it (WithHTTPClient). Do not turn verification off."
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
		return "The proxy of $HTTPS_PROXY or $HTTP_PROXY does not answer: correct it, or except the host with $NO_PROXY."
	}
	if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
		return "The server is slow or a firewall drops the packets: try from another network, then ask the server's operator."
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "dial" {
		return "Nothing listens there: is the server running, is the port right, does a firewall refuse?"
	}
	return "The connection broke: look at the server's log, and at any proxy in between."
}

// statusAdvice says what to do about an answer that is wrong whatever was asked.
// It is empty for the others. urlName is what the person who reads it would look for.
func statusAdvice(a reply, urlName string) string {
	switch {
	case a.status/100 == 3 && a.leads != "":
		return "Redirects are not followed. This one leads to " + a.leads + ": set " + urlName + " to where it leads."
	case a.status/100 == 3:
		return "Redirects are not followed: correct " + urlName + "."
	case a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed, a.status == http.StatusGone:
		return "Nothing of ours is at this path: correct the path of " + urlName + "."
	case a.status == http.StatusTooManyRequests:
		return "Wait, and look for something that sends too much."
	case a.status/100 == 5:
		return "The server, or what stands behind it, is in trouble: look at its log, or ask its operator."
	}
	return ""
}
