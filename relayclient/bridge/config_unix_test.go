//go:build unix

package bridge_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

// Opening a pipe waits for somebody at its other end, here for ever.
func TestLoadConfigOfAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "common.toml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := bridge.LoadConfig(path)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}
