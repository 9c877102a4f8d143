package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// defaultAddr is where the daemon listens by default, and where "sealpush phone" looks for it. Nobody on another
// machine can reach it.
const defaultAddr = "127.0.0.1:8787"

// defaultState is the directory for the daemon's files by default. It need not exist yet.
func defaultState() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no directory to keep files in: %w: pass one with -state", err)
	}
	return filepath.Join(dir, "sealpush-examples"), nil
}

// tokenPath is the file with the bearer token of callers, when the daemon was given none.
func tokenPath(state string) string { return filepath.Join(state, "token") }

// ensureToken returns the token in a file. If there is no such file, it makes one with a random token.
func ensureToken(path string) (string, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		token := rand.Text()
		return token, createPrivate(path, token+"\n")
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("%s is empty: remove it and start the daemon again", path)
	}
	return token, nil
}

// createPrivate writes a new file, which only its owner may read, and makes its directory if that is missing.
func createPrivate(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path)) // do not keep a part of a token
	}
	return nil
}
