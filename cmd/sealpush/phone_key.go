package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/sealpush/sealpush/internal/state"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

// keyFile is what the phone keeps, so that it is the same phone after a restart. A real one has the key in the
// platform's key store and its push token from the platform.
type keyFile struct {
	PrivateKey []byte `json:"privateKey"`
	PushToken  string `json:"pushToken"`
}

// openPhone reads the phone kept at path, or makes one and keeps it there.
func openPhone(path string) (phone *relaytest.Phone, created bool, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		phone, err = createPhone(path)
		return phone, true, err
	}
	if err != nil {
		return nil, false, err
	}
	var kept keyFile
	if err := json.Unmarshal(content, &kept); err != nil {
		return nil, false, unusable(path, err)
	}
	key, err := seal.NewPrivateKey(kept.PrivateKey)
	if err != nil {
		return nil, false, unusable(path, err)
	}
	if _, err := hex.DecodeString(kept.PushToken); err != nil || len(kept.PushToken) != 64 {
		return nil, false, unusable(path, errors.New("pushToken must be 64 hex digits"))
	}
	return relaytest.NewPhone(relaytest.WithPrivateKey(key), relaytest.WithPushToken(kept.PushToken)), false, nil
}

func createPhone(path string) (*relaytest.Phone, error) {
	if !slices.Contains(seal.Suites(), seal.X25519) { // the suite of its key
		return nil, seal.ErrFIPSOnly
	}
	key := seal.GenerateKey()
	var token [32]byte
	rand.Read(token[:])
	kept := keyFile{key.Bytes(), hex.EncodeToString(token[:])}
	content, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := state.Create(path, append(content, '\n')); err != nil {
		return nil, err
	}
	return relaytest.NewPhone(relaytest.WithPrivateKey(key), relaytest.WithPushToken(kept.PushToken)), nil
}

func unusable(path string, err error) error {
	return fmt.Errorf("%s is not a phone's key: %w: remove it to start as a new phone", path, err)
}
