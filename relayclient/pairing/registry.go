package pairing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/seal"
)

// How a Registry deals with its store.
const (
	storeWait     = 10 * time.Second // the longest any caller waits for the store
	maxStoreCalls = 4                // calls in flight at most; a call that hangs counts until it returns
)

// ErrUnavailable is wrapped by every error of a [Registry] whose store failed or did not answer in time.
var ErrUnavailable = errors.New("pairing: registry unavailable")

// errSilent is the cause of ErrUnavailable when the store does not answer.
var errSilent = fmt.Errorf("the store did not answer within %v", storeWait)

// errNoStore is the cause of ErrUnavailable for a zero Registry.
var errNoStore = errors.New("this Registry was not made by NewRegistry")

// MaxDevices is the most devices that a [Registry] pairs. An alert to so many takes ten rounds of the 100 POSTs that
// are made at once, and any store has room for them.
const MaxDevices = 1000

// ErrFull is the error of a [Registry] and a [Store] when there is no room for another device: [MaxDevices] are paired,
// or the registry file would become too large. Revoke some.
var ErrFull = errors.New("pairing: the registry is full: revoke phones that are not used any more")

// errNotYours is the error of a change that WithOwnDevicesOnly forbids.
var errNotYours = errors.New("pairing: another caller paired this phone")

// Registry is who gets paged: the paired phones and the collapse salt, kept in a [Store] that nodes may share. It is
// safe for concurrent use.
//
// Devices, Device, Pair and Revoke always ask the store and wait for it at most 10 seconds. [Registry.Recipients],
// which alerts need, answers from memory where it can and never fails, so that no alert is lost when a database is
// down. A store that hangs blocks at most 4 goroutines, even if it ignores its context.
type Registry struct {
	store  Store
	config registryConfig
	calls  chan struct{} // holds one value for each store call in flight
	mirror mirror
}

type registryConfig struct {
	logger *slog.Logger // nil for slog.Default at the time of the line
	suites []seal.Suite // sorted; nil for all
}

// RegistryOption changes how [NewRegistry] sets up a Registry.
type RegistryOption func(*registryConfig) error

// WithLogger makes a Registry, and the [Handler] over it, log to logger. Without it, or when it is nil, they log to
// slog.Default().
func WithLogger(logger *slog.Logger) RegistryOption {
	return func(c *registryConfig) error {
		c.logger = logger
		return nil
	}
}

// WithSuites limits the suites that this node pairs phones with and seals to; without it they are all of [seal.Suites].
// Phones of other suites stay in the registry, for the nodes that can page them.
func WithSuites(suites ...seal.Suite) RegistryOption {
	return func(c *registryConfig) error {
		if len(suites) == 0 {
			return errors.New("pairing: WithSuites: no suite is given")
		}
		for _, suite := range suites {
			if !slices.Contains(seal.Suites(), suite) {
				return fmt.Errorf("pairing: WithSuites: %w: %.32q is none of %v", seal.ErrUnknownSuite, string(suite), seal.Suites())
			}
		}
		c.suites = slices.Compact(slices.Sorted(slices.Values(suites)))
		return nil
	}
}

// NewRegistry returns the registry over a store, which it does not ask yet. The error says which argument is wrong.
func NewRegistry(store Store, opts ...RegistryOption) (*Registry, error) {
	if store == nil {
		return nil, errors.New("pairing: NewRegistry needs a store")
	}
	r := &Registry{store: store, calls: make(chan struct{}, maxStoreCalls)}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("pairing: an option is nil")
		}
		if err := opt(&r.config); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Suites returns the suites that this node can seal to, sorted, in a slice of the caller's own. A daemon tells apps, so
// that they pair with a suite to which every alert can be sealed.
func (r *Registry) Suites() []seal.Suite {
	if r.config.suites == nil {
		return seal.Suites()
	}
	return slices.Clone(r.config.suites)
}

// Devices returns the paired phones, the first paired first. Those to which no alert can be sealed on this node are
// among them: their Unusable says why.
func (r *Registry) Devices(ctx context.Context) ([]Device, error) {
	return call(ctx, r, r.load)
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

// load reads the devices from the store, and lets the alerts know what it read.
func (r *Registry) load(store Store, ctx context.Context) ([]Device, error) {
	from := r.mirror.begin()
	snap, err := store.Load(ctx)
	if err != nil {
		return nil, err
	}
	r.take(ctx, from, snap)
	return r.usableHere(snap.Devices), nil
}

// Pair stores a phone under its public key and returns it as it is stored. A phone that pairs again gets its name,
// platform, push token and suite updated, UpdatedAt and UpdatedBy too; its ID, CreatedAt and CreatedBy stay, and
// created is false. One push token is one phone: when other records hold the token, because the phone has a new key,
// they are revoked. caller is the label of who asks, or "".
//
// An error is a *[FieldError] when the request is wrong, and [ErrFull] when there is no room for another phone. When it
// is [ErrUnavailable], the phone may be paired all the same: pairing it again is harmless.
func (r *Registry) Pair(ctx context.Context, req Request, caller string) (d Device, created bool, err error) {
	return r.pair(ctx, req, caller, false)
}

// pair is Pair. With ownOnly it changes no record that another caller made.
func (r *Registry) pair(ctx context.Context, req Request, caller string, ownOnly bool) (Device, bool, error) {
	req, err := req.checked(r.Suites())
	if err != nil {
		return Device{}, false, err
	}
	caller = cleanLabel(caller)
	now := time.Now().UTC().Truncate(time.Second)
	d := Device{
		ID:        randomHex(8),
		Name:      req.Name,
		Platform:  req.Platform,
		PushToken: req.PushToken,
		Suite:     req.PublicKey.Suite(),
		PublicKey: req.PublicKey,
		CreatedAt: now,
		CreatedBy: caller,
		UpdatedAt: now,
		UpdatedBy: caller,
	}
	res, err := call(ctx, r, func(store Store, ctx context.Context) (pairResult, error) {
		devices, err := r.load(store, ctx)
		if err != nil && ownOnly {
			return pairResult{}, err
		} // otherwise go on: only a pairing makes tables again that somebody dropped
		defer r.mirror.outdate()
		return pairInto(ctx, store, devices, d, ownOnly)
	})
	if err != nil {
		return Device{}, false, err
	}
	r.wrote(ctx, func(devices []Device) []Device {
		devices = slices.DeleteFunc(slices.Clone(devices), func(other Device) bool {
			return other.ID == res.device.ID || slices.Contains(res.replaced, other.ID)
		})
		return append(devices, res.device)
	})
	attrs := []any{"device", res.device.ID, "device_name", res.device.Name, "suite", res.device.Suite,
		"fingerprint", res.device.PublicKey.Fingerprint(), "caller", caller, "created", res.created}
	if len(res.replaced) > 0 {
		attrs = append(attrs, "replaced", res.replaced)
	}
	r.log().InfoContext(ctx, "device paired", attrs...)
	if res.changedOf != nil {
		r.log().WarnContext(ctx, "a caller changed a phone that another caller paired", "device", res.device.ID,
			"device_name", res.device.Name, "caller", caller, "created_by", *res.changedOf)
	}
	if res.err != nil {
		r.log().WarnContext(ctx, "an older record of the phone could not be revoked: the newer one is paged", "error", res.err)
	}
	return res.device, res.created, nil
}

// pairResult is what became of a pairing.
type pairResult struct {
	device    Device
	created   bool
	replaced  []string // the ids of the records that it replaced
	changedOf *string  // the caller that had made a record which was changed or replaced, if it was another one
	err       error    // why a record that should have been replaced is still there
}

// pairInto stores d among the devices that are in the store.
func pairInto(ctx context.Context, store Store, devices []Device, d Device, ownOnly bool) (pairResult, error) {
	var res pairResult
	var replace []string
	isNew := true
	for _, other := range devices {
		sameKey := other.key() == d.key()
		if !sameKey && (other.phone() != d.phone() || other.ID == "") {
			continue
		}
		if other.CreatedBy != d.UpdatedBy {
			res.changedOf = &other.CreatedBy
		}
		if ownOnly && !mayChange(other, d.UpdatedBy) {
			return res, errNotYours
		}
		if sameKey {
			isNew = false
		} else {
			replace = append(replace, other.ID)
		}
	}
	if isNew && len(devices)-len(replace) >= MaxDevices {
		return res, ErrFull
	}
	var err error
	if res.device, res.created, err = store.Pair(ctx, d); err != nil {
		return res, err
	}
	for _, id := range replace {
		if id == res.device.ID {
			continue // two records with one id, which a person wrote: revoking one revokes both
		}
		if err := store.Revoke(ctx, id); err != nil && !errors.Is(err, ErrUnknownDevice) {
			res.err = err
			continue
		}
		res.replaced = append(res.replaced, id)
	}
	return res, nil
}

// mayChange reports whether a caller made the record. It is false for a caller without a label, and for a record
// without one.
func mayChange(d Device, caller string) bool { return caller != "" && d.CreatedBy == caller }

// cleanLabel is a caller's label as it is stored. PostgreSQL cannot store a NUL in a text.
func cleanLabel(label string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(label, "\x00", ""), "\uFFFD")
}

// Revoke removes a phone. This node seals no alert to it from then on; nodes that share the store stop within a minute.
// The error is [ErrUnknownDevice] when no phone has this id.
func (r *Registry) Revoke(ctx context.Context, id string) error { return r.revoke(ctx, id, "", false) }

// revoke is Revoke. With ownOnly it removes no record that another caller made.
func (r *Registry) revoke(ctx context.Context, id, caller string, ownOnly bool) error {
	caller = cleanLabel(caller)
	_, err := call(ctx, r, func(store Store, ctx context.Context) (struct{}, error) {
		if ownOnly {
			devices, err := r.load(store, ctx)
			if err != nil {
				return struct{}{}, err
			}
			if slices.ContainsFunc(devices, func(d Device) bool { return d.ID == id && !mayChange(d, caller) }) {
				return struct{}{}, errNotYours
			}
		}
		defer r.mirror.outdate()
		return struct{}{}, store.Revoke(ctx, id)
	})
	if err != nil && !errors.Is(err, ErrUnknownDevice) {
		return err
	}
	r.wrote(ctx, func(devices []Device) []Device {
		return slices.DeleteFunc(slices.Clone(devices), func(d Device) bool { return d.ID == id })
	})
	if err == nil {
		r.log().InfoContext(ctx, "device revoked", "device", id, "caller", caller)
	}
	return err
}

// Format writes the type's name, whatever the verb: what it holds is secret.
func (r *Registry) Format(f fmt.State, _ rune) { fmt.Fprint(f, "pairing.Registry") }

func (r *Registry) log() *slog.Logger {
	if r.config.logger != nil {
		return r.config.logger
	}
	return slog.Default()
}

// call makes one store call, in a goroutine of its own, and waits for it no longer than storeWait.
func call[T any](ctx context.Context, r *Registry, fn func(Store, context.Context) (T, error)) (T, error) {
	var none T
	if r.store == nil {
		return none, unavailable(errNoStore)
	}
	ctx, cancel := context.WithTimeoutCause(orBackground(ctx), storeWait, errSilent)
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
			// The caller cannot recover a panic in this goroutine, and a faulty store must not end the daemon.
			if p := recover(); p != nil {
				r.log().ErrorContext(ctx, "the store of the paired phones panicked", "error", fmt.Sprint(p), "stack", string(debug.Stack()))
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
	if errors.Is(err, ErrUnknownDevice) || errors.Is(err, ErrFull) || errors.Is(err, errNotYours) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
