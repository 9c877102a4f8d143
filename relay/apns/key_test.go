package apns_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/sealpush/sealpush/relay/apns"
)

const (
	keyID  = "ABC123DEFG"
	teamID = "TEAM123456"
	topic  = "com.example.pager"
)

// p8 is a private key in the form of Apple's files.
func p8(t *testing.T, private any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func generate(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

func newKey(t *testing.T) (*apns.Key, *ecdsa.PrivateKey) {
	t.Helper()
	private := generate(t, elliptic.P256())
	key, err := apns.ParseKey(p8(t, private), keyID, teamID)
	if err != nil {
		t.Fatal(err)
	}
	return key, private
}

func TestParseKeyRefuses(t *testing.T) {
	right := p8(t, generate(t, elliptic.P256()))
	wide := p8(t, generate(t, elliptic.P384()))
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		p8          []byte
		keyID, team string
	}{
		"no file":               {nil, keyID, teamID},
		"not PEM":               {[]byte("MIGTAgEAMBMGByqG"), keyID, teamID},
		"cut short":             {right[:len(right)/2], keyID, teamID},
		"another curve":         {wide, keyID, teamID},
		"RSA":                   {p8(t, other), keyID, teamID},
		"no key id":             {right, "", teamID},
		"a key id too long":     {right, keyID + "H", teamID},
		"a team id with a dash": {right, keyID, "TEAM-12345"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if key, err := apns.ParseKey(tt.p8, tt.keyID, tt.team); !errors.Is(err, apns.ErrInvalidKey) {
				t.Errorf("got %v, %v", key, err)
			}
		})
	}
}

func TestLoadKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, p8(t, generate(t, elliptic.P256())), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, err := apns.LoadKey(write("AuthKey_ABC123DEFG.p8"), teamID)
	if err != nil || key.ID() != keyID {
		t.Fatalf("got %v, %v", key, err)
	}
	if got := fmt.Sprint(key); got != "APNs key ABC123DEFG" {
		t.Errorf("prints as %q", got)
	}
	for _, name := range []string{"key.p8", "AuthKey_ABC123DEFG.pem", "AuthKey_short.p8"} {
		if _, err := apns.LoadKey(write(name), teamID); !errors.Is(err, apns.ErrInvalidKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := apns.LoadKey(filepath.Join(dir, "AuthKey_ABC123DEFH.p8"), teamID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
