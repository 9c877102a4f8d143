//go:build unix

package main

import (
	"os"
	"strings"
	"testing"
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
