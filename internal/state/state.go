// Package state names the files that the tool shares with examples/daemon, so that on one machine they find each other
// without a flag. The example has its own copy of these names, in its files.go, because it is there to be copied.
package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// DaemonAddr is where the daemon listens, and the phone looks for it, by default. Nobody on another machine can reach
// it.
const DaemonAddr = "127.0.0.1:8787"

// Dir is the directory to use by default: sealpush-examples where the user's configuration is kept, such as ~/.config
// on Linux. It need not exist.
func Dir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no directory to keep files in: %w: pass one with -state", err)
	}
	return filepath.Join(dir, "sealpush-examples"), nil
}

// TokenPath is the file with the bearer token that the daemon lets phones in with, when it was given none.
func TokenPath(dir string) string { return filepath.Join(dir, "token") }

// ReadToken returns the token in a file.
func ReadToken(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("%s is empty: remove it and start the daemon again", path)
	}
	return token, nil
}

// Create writes a file that is not there yet and that only its owner may read. It makes the directory too.
func Create(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // do not keep a part of a secret
	}
	return nil
}
