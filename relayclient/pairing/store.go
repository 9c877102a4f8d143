package pairing

import (
	"context"
	"errors"

	"github.com/sealpush/sealpush/secret"
)

// ErrUnknownDevice is the error of a [Store] and a [Registry] for an id that is not paired.
var ErrUnknownDevice = errors.New("pairing: no device with this id is paired")

// Store keeps the paired devices and the collapse salt, for every process that shares it. [FileStore] and [SQLStore]
// are the two that come with this package; the suite in package storetest tests an implementation of your own.
//
// Each method is one atomic step, between goroutines and between processes: when it returns nil its effect is durable,
// and no other caller's effect is lost to it. Methods are safe for concurrent use and return soon after their context
// ends. A [Registry] decides what a valid device is, makes ids and dates, caches and limits times; a Store only stores.
type Store interface {
	// Load returns what is stored. An empty store is not an error. A device that cannot be used is returned with its
	// Unusable set: see [Device.ReadKey].
	Load(ctx context.Context) (Snapshot, error)

	// Pair stores a device under its public key and returns it as it is stored. When the key is already paired, it
	// updates Name, Platform, PushToken, Suite, UpdatedAt and UpdatedBy of the stored device in place and keeps its ID,
	// CreatedAt and CreatedBy; created is then false. The ID passed in is one that was never stored before.
	Pair(ctx context.Context, d Device) (stored Device, created bool, err error)

	// Revoke removes the device with this id, or returns ErrUnknownDevice when there is none.
	Revoke(ctx context.Context, id string) error

	// EnsureSalt returns the stored collapse salt. When there is none it stores the candidate first: of all callers
	// that start together, one wins and all get the same salt. The candidate is not empty. A store may have made a salt
	// by itself, with its first device. A salt that is stored never changes.
	EnsureSalt(ctx context.Context, candidate secret.Text) (secret.Text, error)
}

// Snapshot is what a [Store] held at one moment. The slices belong to the caller.
type Snapshot struct {
	Devices []Device    // in no particular order; those that cannot be used are among them, each with its Unusable
	Salt    secret.Text // the installation's collapse salt; empty when none was stored yet
}

// orBackground is the context of a call: a nil one counts as context.Background().
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
