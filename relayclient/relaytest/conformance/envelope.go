package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// An envelope is a request body under construction: members in the order in which they are sent, so that the suite can
// say what no encoder would. Its methods return changed copies.
type envelope []member

type member struct {
	name  string
	value any // what encoding/json makes of it
}

// newEnvelope is a right one for a new device, so that what a relay remembers of one check does not disturb another. It
// names no suite, as in the relay protocol.
func newEnvelope() envelope {
	return envelope{
		{"v", 1},
		{"device", randomHex(64)},
		{"ciphertext", ciphertextOf(300)},
		{"collapseId", randomHex(32)},
		{"priority", "time-sensitive"},
		{"event", false},
	}
}

// memberNames are those that the protocol has, in the order in which the hosted relay checks them.
func memberNames() []string {
	return []string{"v", "device", "suite", "ciphertext", "collapseId", "priority", "event"}
}

// with sets a member, or adds it at the end.
func (e envelope) with(name string, value any) envelope {
	e = slices.Clone(e)
	if i := e.index(name); i >= 0 {
		e[i].value = value
		return e
	}
	return append(e, member{name, value})
}

func (e envelope) without(name string) envelope {
	i := e.index(name)
	return slices.Delete(slices.Clone(e), i, i+1)
}

func (e envelope) renamed(from, to string) envelope {
	e = slices.Clone(e)
	e[e.index(from)].name = to
	return e
}

func (e envelope) index(name string) int {
	return slices.IndexFunc(e, func(m member) bool { return m.name == name })
}

func (e envelope) text(name string) string { return e[e.index(name)].value.(string) }

func (e envelope) encode() []byte {
	b := bytes.NewBufferString("{")
	for i, m := range e {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encodeJSON(m.name))
		b.WriteByte(':')
		b.Write(encodeJSON(m.value))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// paddedTo makes the body that long with a member that the protocol does not know.
func (e envelope) paddedTo(size int) []byte {
	empty := len(e.with("padding", "").encode())
	return e.with("padding", string(bytes.Repeat([]byte{'.'}, size-empty))).encode()
}

func encodeJSON(v any) []byte {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic("conformance: " + err.Error()) // unreachable: the suite's own values
	}
	return encoded
}

// ciphertextOf makes a ciphertext of that many random bytes, in base64. Without the key, a sealed box looks no
// different.
func ciphertextOf(size int) string {
	raw := make([]byte, size)
	rand.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

func randomHex(digits int) string {
	raw := make([]byte, digits/2)
	rand.Read(raw)
	return hex.EncodeToString(raw)
}

// post sends a body to the sealed relay.
func (s *session) post(ctx context.Context, body []byte) (response, error) {
	return s.send(ctx, request{method: http.MethodPost, url: s.target.URL, body: body})
}

// accepts expects that a body is taken.
func (s *session) accepts(ctx context.Context, body []byte) error {
	r, err := s.post(ctx, body)
	if err != nil {
		return err
	}
	return r.accepted()
}

// accepted also takes 410 for an acceptance: a relay that is wired to a real push service reads the envelope, and is
// then told that there is no such device.
func (r response) accepted() error {
	if r.took() {
		return nil
	}
	return fmt.Errorf("want 2xx, or 410 since the push service knows no such device; answered %v", r)
}

func (r response) took() bool { return r.status/100 == 2 || r.status == http.StatusGone }

// A variant is one of several bodies that a check sends.
type variant struct {
	label string
	body  []byte
}

// acceptsAll makes a check of bodies that must each be taken.
func acceptsAll(variants func() []variant) func(context.Context, *session) error {
	return expectsOfAll(variants, response.accepted)
}

// refusesAll makes a check of bodies that must each be refused with 4xx.
func refusesAll(variants func() []variant) func(context.Context, *session) error {
	return expectsOfAll(variants, response.refused)
}

// refusesDevices is refusesAll for device tokens that nobody can have. A relay may also answer 410 to them.
func refusesDevices(variants func() []variant) func(context.Context, *session) error {
	return expectsOfAll(variants, func(r response) error {
		if r.status == http.StatusGone {
			return nil
		}
		return r.refused()
	})
}

func expectsOfAll(variants func() []variant, expect func(response) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for _, v := range variants() {
			r, err := s.post(ctx, v.body)
			if err == nil {
				err = expect(r)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", v.label, err)
			}
		}
		return nil
	}
}

// refused wants a 4xx that is about the body. An answer of 410 means that the envelope was handed to the push service.
func (r response) refused() error {
	if r.status/100 == 4 && r.status != http.StatusGone && r.status != http.StatusTooManyRequests {
		return nil
	}
	return fmt.Errorf("want a 4xx other than 410 and 429; answered %v", r)
}
