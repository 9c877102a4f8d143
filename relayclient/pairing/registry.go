package pairing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// How a Registry deals with its store.
const (
	storeWait     = 10 * time.Second // the longest any caller waits for the store
	maxStoreCalls = 4                // calls in flight at most; one that never returns keeps its place
)

// ErrUnavailable is wrapped by every error of a [Registry] whose store failed or did not answer in time.
var ErrUnavailable = errors.New("pairing: registry unavailable")

// errSilent is the cause of ErrUnavailable when the store does not answer.
var errSilent = fmt.Errorf("the store did not answer within %v", storeWait)

// errNoStore is the cause of ErrUnavailable for a zero Registry.
var errNoStore = errors.New("this Registry was not made by NewRegistry")

// Registry is who gets paged: the paired phones and the collapse salt, kept in a [Store] that nodes may share. It is
// safe for concurrent use.
//
// What people do (Devices, Device, Pair, Revoke) always asks the store and waits for it at most 10 seconds. What alerts
// need, [Registry.Recipients], is answered from memory where it can be and never fails, so that no page is lost to a
// database that is down. A store that hangs holds at most 4 goroutines, also when it ignores its context.
type Registry struct {
	store  Store
	logger *slog.Logger  // nil for slog.Default at the time of the line
	calls  chan struct{} // holds one value for each store call in flight
	mirror mirror
}

// RegistryOption changes how [NewRegistry] sets up a Registry. It is a plain value.
type RegistryOption func(*Registry)

// WithLogger makes a Registry, and the [Handler] over it, log to logger instead of slog.Default().
func WithLogger(logger *slog.Logger) RegistryOption { return func(r *Registry) { r.logger = logger } }

// NewRegistry returns the registry over a store, which it does not ask yet. It panics when the store is nil.
func NewRegistry(store Store, opts ...RegistryOption) *Registry {
	if store == nil {
		panic("pairing: NewRegistry needs a store")
	}
	r := &Registry{
		store: store,
		calls: make(chan struct{}, maxStoreCalls),
	}
	for _, opt := range opts {
		opt(r)
	}
	return r
}

// Devices returns the paired phones, the first paired first.
func (r *Registry) Devices(ctx context.Context) ([]Device, error) {
	snap, err := call(ctx, r, Store.Load)
	if err != nil {
		return nil, err
	}
	r.logSkipped(ctx, snap.Skipped)
	sortDevices(snap.Devices)
	return snap.Devices, nil
}

// Device returns one paired phone, or an error that is [ErrUnknownDevice].
func (r *Registry) Device(ctx context.Context, id string) (Device, error) {
	devices, err := r.Devices(ctx)
	if err != nil {
		return Device{}, err
	}
	i := slices.IndexFunc(devices, func(d Device) bool { return d.ID == id })
	if i < 0 {
		return Device{}, ErrUnknownDevice
	}
	return devices[i], nil
}

// Pair stores a phone under its public key and returns it as it is stored. A phone that pairs again gets its name,
// platform and push token updated, UpdatedAt and UpdatedBy too; its ID, CreatedAt and CreatedBy stay, and created is
// false. caller is the label of who asks, or "".
//
// An error is a *[FieldError] when the request is wrong. When it is [ErrUnavailable], the phone may be paired all the
// same: pairing it again is harmless.
func (r *Registry) Pair(ctx context.Context, req Request, caller string) (d Device, created bool, err error) {
	req, err = req.checked()
	if err != nil {
		return Device{}, false, err
	}
	now, caller := time.Now().UTC().Truncate(time.Second), strings.ToValidUTF8(strings.ReplaceAll(caller, "\x00", ""), "\uFFFD")
	d = Device{
		ID:        randomHex(8),
		Name:      req.Name,
		Platform:  req.Platform,
		PushToken: req.PushToken,
		PublicKey: req.PublicKey,
		CreatedAt: now,
		CreatedBy: caller,
		UpdatedAt: now,
		UpdatedBy: caller,
	}
	res, err := call(ctx, r, func(store Store, ctx context.Context) (paired, error) {
		stored, created, err := store.Pair(ctx, d)
		return paired{stored, created}, err
	})
	if err != nil {
		return Device{}, false, err
	}
	r.mirror.paired(res.device)
	r.log().InfoContext(ctx, "device paired", "device", res.device.ID, "device_name", res.device.Name,
		"fingerprint", res.device.PublicKey.Fingerprint(), "caller", caller, "created", res.created)
	return res.device, res.created, nil
}

type paired struct {
	device  Device
	created bool
}

// Revoke removes a phone, which no alert is sealed to from then on; nodes that share the store follow within a minute.
// The error is [ErrUnknownDevice] when no phone has this id.
func (r *Registry) Revoke(ctx context.Context, id string) error {
	_, err := call(ctx, r, func(store Store, ctx context.Context) (struct{}, error) {
		return struct{}{}, store.Revoke(ctx, id)
	})
	if err != nil {
		return err
	}
	r.mirror.revoked(id)
	r.log().InfoContext(ctx, "device revoked", "device", id)
	return nil
}

// Format writes the type's name, whatever the verb: what it holds is secret.
func (r *Registry) Format(f fmt.State, _ rune) { fmt.Fprint(f, "pairing.Registry") }

func (r *Registry) log() *slog.Logger {
	if r.logger != nil {
		return r.logger
	}
	return slog.Default()
}

// call makes one store call, in a goroutine of its own, and waits for it no longer than storeWait.
func call[T any](ctx context.Context, r *Registry, fn func(Store, context.Context) (T, error)) (T, error) {
	var none T
	if r.store == nil {
		return none, unavailable(errNoStore)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, storeWait, errSilent)
	defer cancel()
	select {
	case r.calls <- struct{}{}:
	case <-ctx.Done():
		return none, unavailable(context.Cause(ctx))
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-r.calls }()
		defer func() {
			// In a goroutine of our own nobody else could recover, and a faulty store must not end the daemon.
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("the store panicked: %v", p)}
			}
		}()
		value, err := fn(r.store, ctx)
		done <- result{value, err}
	}()
	select {
	case res := <-done:
		if res.err != nil {
			return none, unavailable(res.err)
		}
		return res.value, nil
	case <-ctx.Done():
		return none, unavailable(context.Cause(ctx))
	}
}

func unavailable(err error) error {
	if errors.Is(err, ErrUnknownDevice) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
