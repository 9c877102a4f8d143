package payload

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sealpush/sealpush/secret"
)

// idBytes is the length of collapse ids and salts before they become hex.
const idBytes = 16

// CollapseID returns the id under which a relay coalesces repetitions of this alert: 32 lower-case hex digits, keyed
// with the installation's salt, from [NewSalt]. Every node that shares the salt gets the same id for the same alert,
// and without the salt nobody can guess names from it, so keep the salt from the relay and never let it be empty.
//
// The id covers those of Kind, Name, RunID, Event, DAG, RunKey, TaskKey and SLACheck that are set. Derive it from the
// alert before [Fit], as every daemon does: fitting can drop RunID, and what is dropped depends on the device. Names
// that differ only in bytes which are not UTF-8 keep different ids. The alert is not validated.
//
// A test alert is sent under [NewCollapseID] instead.
func (a Alert) CollapseID(salt secret.Text) string {
	var scratch [512]byte // enough for the usual alert, which then stays off the heap
	b := append(scratch[:0], salt.Reveal()...)
	b = append(b, 0)
	b = appendIdentity(b, &a)
	sum := sha256.Sum256(b)
	var id [2 * idBytes]byte
	hex.Encode(id[:], sum[:idBytes])
	return string(id[:])
}

// appendIdentity appends the alert's identity as a JSON object in ASCII, its keys sorted and empty members left out.
func appendIdentity(b []byte, a *Alert) []byte {
	separator := byte('{')
	for _, member := range [...]struct{ key, value string }{
		{`"dag":"`, a.DAG},
		{`"event":"`, a.Event},
		{`"kind":"`, string(a.Kind)},
		{`"name":"`, a.Name},
		{`"run_id":"`, a.RunID},
		{`"run_key":"`, a.RunKey},
		{`"sla_check":"`, a.SLACheck},
		{`"taskkey":"`, a.TaskKey},
	} {
		if member.value == "" {
			continue
		}
		b = append(b, separator)
		b = append(b, member.key...)
		b = appendASCII(b, member.value)
		b = append(b, '"')
		separator = ','
	}
	return append(b, '}')
}

// appendASCII appends s as Python's json.dumps writes it, with bytes that are not UTF-8 as its surrogateescape reads
// them.
func appendASCII(b []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' || c == 0x7f {
				b = appendEscape(b, c)
			} else {
				b = append(b, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case n == 1:
			b = appendUnit(b, 0xdc00|uint16(c))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, uint16(high)), uint16(low))
		default:
			b = appendUnit(b, uint16(r))
		}
		i += n
	}
	return b
}

// NewSalt returns a fresh random salt for [Alert.CollapseID]: 32 lower-case hex digits. An installation makes one,
// keeps it beside its paired devices and shares it between its nodes.
func NewSalt() secret.Text { return secret.New(randomID()) }

// NewCollapseID returns a fresh random collapse id, for a test alert.
func NewCollapseID() string { return randomID() }

func randomID() string {
	var raw [idBytes]byte
	rand.Read(raw[:]) // never fails: it ends the program instead
	return hex.EncodeToString(raw[:])
}
