//go:build unix

package main

import (
	"os"
	"testing"
)

func TestFileThatOthersMayRead(t *testing.T) {
	setup := newSetup(t)
	for flag, path := range map[string]string{"-registry": setup.registry, "-bridge": setup.bridgeConfig} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		expectDoctor(t, 0, []string{"mode 0644", "chmod 600 " + path}, flag, path)
	}
}
