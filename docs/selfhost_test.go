package docs_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"golang.org/x/net/netutil"
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
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- selfHost(listener, keyFile, "DEF7654321") }()
	// What is no envelope never gets as far as Apple.
	resp, err := http.Post("http://"+listener.Addr().String(), "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("Keep-Alive") != "timeout=120" {
		t.Errorf("answered %s, Keep-Alive %q", resp.Status, resp.Header.Get("Keep-Alive"))
	}
	listener.Close()
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func selfHost(listener net.Listener, keyFile, teamID string) error {
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
	server := &http.Server{
		Handler:           sealed,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       40 * time.Second, // the relay itself waits 10 s for a body
		WriteTimeout:      time.Minute,      // a forward may take 30 s
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return server.Serve(netutil.LimitListener(listener, 1000)) // golang.org/x/net/netutil
}
