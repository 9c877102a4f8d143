// Package regular reads regular files and nothing else. Opening a named pipe blocks until another process opens its
// other end, and reading a device may never end; neither is a file that a program of ours keeps.
package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular is the cause of the error for what is not a regular file: a directory, a named pipe, a device.
var ErrNotRegular = errors.New("not a regular file")

// Read returns what is in the file at path and its state as it was opened. It reads at most limit bytes and one more,
// by which the caller sees that the file is longer. The flag is 0, or [NoFollow] for a path that must not be a symbolic
// link. Errors are a *[fs.PathError].
func Read(path string, limit int64, flag int) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|NonBlock|flag, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	return data, info, err
}
