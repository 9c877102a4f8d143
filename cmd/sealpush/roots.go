package main

import (
	"crypto/x509"
	"os"
	"runtime"
	"slices"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// trustFallbackRoots brings Mozilla's certificate authorities for systems and containers that have none. Where there are
// some it has no effect, and is left out: every run would pay for it.
func trustFallbackRoots() {
	if hasRoots() {
		return
	}
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil: // of a kind that this version does not know
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
	x509.SetFallbackRoots(pool)
}

// hasRoots reports whether the system surely has certificate authorities. Those that the environment names may not be
// there.
func hasRoots() bool {
	switch {
	case runtime.GOOS == "windows" || runtime.GOOS == "darwin":
		return true
	case os.Getenv("SSL_CERT_FILE") != "" || os.Getenv("SSL_CERT_DIR") != "":
		return false
	}
	return slices.ContainsFunc([]string{
		"/etc/ssl/certs/ca-certificates.crt", // Debian, Arch, Alpine
		"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora
		"/etc/ssl/ca-bundle.pem",             // openSUSE
		"/etc/ssl/cert.pem",                  // the BSDs
	}, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 0
	})
}
