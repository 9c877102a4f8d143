package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/netutil"
)

// maxConnections is how many connections are served at once; more wait.
const maxConnections = 100

// address is where the bridge listens, and how a phone gets there.
type address struct {
	net.Listener
	base        string // "https://192.168.1.100:3001"
	fingerprint string // of the certificate: "SHA256:…"; empty without -tls
}

// listen opens the address of the options. It does not let tokens cross a network in the clear.
func listen(opts options) (*address, error) {
	listener, err := net.Listen("tcp", opts.listen)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another address with -listen", err)
	}
	a := &address{Listener: netutil.LimitListener(listener, maxConnections)}
	if err := a.open(opts); err != nil {
		listener.Close()
		return nil, err
	}
	return a, nil
}

func (a *address) open(opts options) error {
	addr := a.Addr().(*net.TCPAddr)
	base := &url.URL{Scheme: "http", Host: addr.String()}
	if opts.tls {
		base.Scheme = "https"
	}
	if opts.url != "" {
		u, err := url.Parse(opts.url)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("-url takes an http or https URL, without credentials, query or fragment")
		}
		base = u
	}
	switch {
	case opts.url == "" && addr.IP.IsUnspecified():
		return errors.New("-listen on all addresses needs -url, the one by which phones reach this machine")
	case opts.tls && base.Scheme == "http":
		return errors.New("-url must start with https:// when -tls is given")
	case base.Scheme == "http" && !addr.IP.IsLoopback():
		return errors.New("-listen on an address that others reach needs -tls, or a -url that starts with https://")
	}
	a.base = strings.TrimSuffix(base.String(), "/")
	if !opts.tls {
		return nil
	}
	certificate, err := selfSigned(base.Hostname())
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	a.fingerprint = fingerprint(certificate.Certificate[0])
	a.Listener = tls.NewListener(a.Listener, &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"}, // which a WebSocket starts with
	})
	return nil
}

// selfSigned returns a certificate that a phone trusts by its fingerprint.
func selfSigned(host string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		NotBefore:   time.Now().Add(-time.Hour), // a phone's clock may be slow
		NotAfter:    time.Now().AddDate(1, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// fingerprint is "SHA256:" and the hash in hex with colons.
func fingerprint(der []byte) string {
	hash := sha256.Sum256(der)
	return "SHA256:" + strings.ReplaceAll(fmt.Sprintf("% X", hash[:]), " ", ":")
}
