package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// asRoots has the test binary say how many of the bundle's authorities it trusts.
const asRoots = "TEST_ROOTS"

func playRoots() {
	trustFallbackRoots()
	trusted, all := 0, 0
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		if err != nil || root.Constraint != nil {
			continue
		}
		all++
		if _, err := cert.Verify(x509.VerifyOptions{CurrentTime: cert.NotBefore.Add(time.Hour)}); err == nil {
			trusted++
		}
	}
	fmt.Printf("trusts %v of the bundle\n", map[bool]string{true: "all", false: fmt.Sprint(trusted)}[trusted == all && all > 50])
}

// Where the system has no certificate authorities, those of the bundle count; where the environment names some, no others.
func TestFallbackRoots(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return // they have their own authorities, whatever the environment says
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	private := filepath.Join(dir, "private.pem")
	write(t, private, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	for file, want := range map[string]string{filepath.Join(dir, "none.pem"): "trusts all of the bundle", private: "trusts 0 of the bundle"} {
		environment := []string{"SSL_CERT_FILE=" + file, "SSL_CERT_DIR=" + filepath.Join(dir, "none")}
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(append(os.Environ(), asRoots+"=1"), environment...)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s, want %q", file, err, out, want)
		}
		doctor := tool(t, "doctor", "-relay-url", server.URL)
		doctor.Env = append(doctor.Env, environment...)
		if out, _ := output(t, doctor); strings.Contains(out, "404") != (file == private) {
			t.Errorf("%s: doctor says %s", file, out)
		}
	}
}
