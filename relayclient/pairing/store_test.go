package pairing_test

import (
	"path/filepath"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/storetest"
)

func TestFileStore(t *testing.T) {
	storetest.Run(t, storetest.Backend{
		New:  func(t *testing.T) string { return filepath.Join(t.TempDir(), "devices.json") },
		Open: func(t *testing.T, place string) pairing.Store { return openFile(t, place) },
	})
}
