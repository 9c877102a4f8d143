package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// On Linux $SSL_CERT_FILE says whom Go trusts.
func TestCertificates(t *testing.T) {
	for name, c := range map[string]struct {
		left time.Duration
		host string
		exit int
		says string
	}{
		"good":          {90*24*time.Hour + time.Hour, "127.0.0.1", 0, "ok    TLS 1.3, certificate good for 90 days"},
		"to be renewed": {5*24*time.Hour + time.Hour, "127.0.0.1", 0, "warn  TLS 1.3, certificate good for 5 days"},
		"expired":       {-time.Hour, "127.0.0.1", 1, "Renew the server's certificate"},
		"another's":     {90 * 24 * time.Hour, "127.0.0.2", 1, "The certificate is for another host"},
	} {
		t.Run(name, func(t *testing.T) {
			certificate := selfSigned(t, c.host, c.left)
			relay := relaytest.NewUnstartedRelay()
			defer relay.Close()
			server := httptest.NewUnstartedServer(relay)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			server.StartTLS()
			defer server.Close()

			trusted := filepath.Join(t.TempDir(), "trusted.pem")
			block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
			if err := os.WriteFile(trusted, block, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("SSL_CERT_FILE", trusted)
			expectDoctor(t, c.exit, []string{c.says}, "-relay-url", server.URL)
		})
	}
}

func selfSigned(t *testing.T, host string, left time.Duration) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "relay"},
		NotBefore:             time.Now().Add(-48 * time.Hour),
		NotAfter:              time.Now().Add(left),
		IPAddresses:           []net.IP{net.ParseIP(host)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
