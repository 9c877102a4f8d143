package docs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
)

func TestSelfHostGuide(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "AuthKey_ABC1234567.p8")
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := selfHost(keyFile, "DEF7654321"); err != nil {
		t.Fatal(err)
	}
}

func selfHost(keyFile, teamID string) error {
	key, err := apns.LoadKey(keyFile, teamID)
	if err != nil {
		return err
	}
	forwarder, err := apns.New(key, "com.example.app")
	if err != nil {
		return err
	}
	defer forwarder.Close()
	sealed, err := relay.New(relay.WithForwarder(forwarder))
	if err != nil {
		return err
	}
	defer sealed.Close()
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: sealed, ReadTimeout: 15 * time.Second}

	// Not listening: what is no envelope never gets as far as Apple.
	answer := httptest.NewRecorder()
	server.Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	if answer.Code != http.StatusBadRequest {
		return http.ErrNotSupported
	}
	return nil
}
