//go:build unix

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/seal"
)

func TestInterruptRevokes(t *testing.T) {
	f := newPairFixture(t)
	pair, _, process := f.pair(t)
	f.phone(t, link(t, pair), t.TempDir())
	pair.Await(t, "Type yes")
	if err := process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := pair.ExitCode(t); code != exitFailed || len(f.devices(t)) != 0 {
		t.Errorf("exit code %d, %d phones", code, len(f.devices(t)))
	}
}

func TestRegistryThatPairMakesIsTheOwnersAlone(t *testing.T) {
	for _, kind := range []string{"", "sqlite:"} {
		f := newPairFixture(t)
		path := f.registry
		f.registry = kind + path
		pair, typed, _ := f.pair(t)
		f.phone(t, link(t, pair), t.TempDir())
		pair.Await(t, "Type yes")
		typeLine(t, typed, "yes")
		pair.ExitCode(t)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", strings.TrimSuffix(kind, ":"), info, err)
		}
	}
}

// Control-C leaves no mailbox behind: a phone that comes later is told at once.
func TestInterruptDeletesTheMailbox(t *testing.T) {
	f := newMailFixture(t)
	pair, _, process := f.pair(t)
	phone := openPage(t, link(t, pair), seal.X25519)
	if err := process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := pair.ExitCode(t); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	pair.Await(t, "interrupted: no phone was paired")
	phone.leave(t, phone.sealed(t, phone.request()), 404)
}

func TestInterruptTellsThePhone(t *testing.T) {
	f := newMailFixture(t)
	pair, _, process := f.pair(t)
	phone := openPage(t, link(t, pair), seal.X25519)
	phone.leave(t, phone.sealed(t, phone.request()), 204)
	pair.Await(t, "Type yes")
	if err := process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if said := phone.answer(t); said.Paired {
		t.Errorf("the phone is told %+v", said)
	}
	if code := pair.ExitCode(t); code != exitFailed || len(f.devices(t)) != 0 {
		t.Errorf("exit code %d, %d phones", code, len(f.devices(t)))
	}
}
