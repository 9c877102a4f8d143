package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

const defaultStateText = "$STATE_DIRECTORY, or sealpush in $XDG_STATE_HOME or ~/.local/state"

// stateDir is the directory for what is remembered between runs, if the user names none.
func stateDir() (string, error) {
	if dir := os.Getenv("STATE_DIRECTORY"); dir != "" { // of a systemd unit
		return dir, nil
	}
	if runtime.GOOS == "windows" {
		dir, err := os.UserCacheDir() // which the user does not carry to other machines
		return filepath.Join(dir, "sealpush"), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sealpush"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "sealpush"), err
}

// A memory is an empty file that exists if the job's last run failed.
type memory struct{ path string } // empty where nothing is remembered

// memory returns that of this job. Only -on recovery needs one.
func (o runOptions) memory() memory {
	if o.on != onRecovery {
		return memory{}
	}
	dir := o.state
	if dir == "" {
		var err error
		if dir, err = stateDir(); err != nil {
			say("run", "recoveries are not paged: %v: name a directory with -state", err)
			return memory{}
		}
	}
	sum := sha256.Sum256([]byte(o.name)) // which may be no name of a file
	return memory{filepath.Join(dir, hex.EncodeToString(sum[:16])+".failed")}
}

// failed reports whether the job failed last.
func (m memory) failed() bool {
	if m.path == "" {
		return false
	}
	_, err := os.Stat(m.path)
	return err == nil
}

// note remembers how the job ended.
func (m memory) note(failed bool) {
	if m.path == "" {
		return
	}
	var err error
	if failed {
		if err = os.MkdirAll(filepath.Dir(m.path), 0o700); err == nil {
			err = os.WriteFile(m.path, nil, 0o600)
		}
	} else if err = os.Remove(m.path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		say("run", "the next recovery may not be paged, or be paged twice: %v: name a directory with -state", err)
	}
}
