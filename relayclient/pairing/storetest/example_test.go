package storetest_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/storetest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// auditStore is a store of one's own: it writes down who was let in and who was taken out. One that keeps the devices
// itself implements Load and EnsureSalt as well.
type auditStore struct {
	pairing.Store
	audit io.Writer // safe for concurrent use, as the store is
}

func openAuditStore(path string, audit io.Writer) (*auditStore, error) {
	file, err := pairing.OpenFile(path)
	if err != nil {
		return nil, err
	}
	return &auditStore{file, audit}, nil
}

func (s *auditStore) Pair(ctx context.Context, d pairing.Device) (stored pairing.Device, created bool, err error) {
	stored, created, err = s.Store.Pair(ctx, d)
	if err == nil && created {
		fmt.Fprintf(s.audit, "%s lets in %s (%s)\n", stored.CreatedBy, stored.Name, stored.ID)
	}
	return stored, created, err
}

func (s *auditStore) Revoke(ctx context.Context, id string) error {
	err := s.Store.Revoke(ctx, id) // ErrUnknownDevice must reach the registry as it is
	if err == nil {
		fmt.Fprintf(s.audit, "%s is out\n", id)
	}
	return err
}

// suite is, in a _test.go file of the store's package, func TestAuditStore(t *testing.T).
func suite(t *testing.T) {
	storetest.Run(t, storetest.Backend{
		New: func(t *testing.T) string { return filepath.Join(t.TempDir(), "devices.json") },
		Open: func(t *testing.T, place string) pairing.Store {
			s, err := openAuditStore(place, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}

// A store of one's own, the suite over it, and the store at work.
func Example() {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var audit strings.Builder
	store, err := openAuditStore(filepath.Join(dir, "devices.json"), &audit)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	phone := pairing.Device{ID: "02177c7da112d2b0", Name: "parker-iphone", Platform: "ios", PushToken: secret.New("c6a5387777330bdb"),
		PublicKey: seal.GenerateKey().Public(), CreatedAt: time.Now(), CreatedBy: "parker"}
	for range 2 { // the second time it is updated
		if _, _, err := store.Pair(ctx, phone); err != nil {
			log.Fatal(err)
		}
	}
	if err := store.Revoke(ctx, phone.ID); err != nil {
		log.Fatal(err)
	}
	fmt.Print(audit.String())
	fmt.Println(store.Revoke(ctx, phone.ID))
	// Output:
	// parker lets in parker-iphone (02177c7da112d2b0)
	// 02177c7da112d2b0 is out
	// pairing: no device with this id is paired
}
