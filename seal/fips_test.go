//go:build !purego

package seal_test

import (
	"crypto/fips140"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/seal"
)

// In Go's FIPS-only mode X-Wing works, and all of X25519 says the same. The mode is set when a program starts, so the
// test starts itself again.
func TestFIPSOnlyMode(t *testing.T) {
	if !fips140.Enforced() {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFIPSOnlyMode$", "-test.v")
		again.Env = append(os.Environ(), "GODEBUG=fips140=only")
		if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFIPSOnlyMode") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if got := seal.Suites(); !slices.Equal(got, []seal.Suite{seal.XWing}) {
		t.Errorf("suites %v", got)
	}
	private := seal.XWing.GenerateKey()
	public, err := seal.XWing.ParsePublicKey(private.Public().String())
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.Seal(public, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := seal.Open(private, box); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}

	zero := seal.GenerateKey()
	_, parse := seal.ParsePublicKey("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=")
	_, public25519 := seal.NewPublicKey(make([]byte, 32))
	_, private25519 := seal.NewPrivateKey(make([]byte, 32))
	_, sealing := seal.Seal(zero.Public(), []byte("hello"))
	_, opening := seal.Open(zero, box)
	for what, err := range map[string]error{
		"ParsePublicKey": parse, "NewPublicKey": public25519, "NewPrivateKey": private25519, "Seal": sealing, "Open": opening,
	} {
		if !errors.Is(err, seal.ErrFIPSOnly) || !strings.Contains(err.Error(), "FIPS-only mode; pair phones with suite xwing") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
