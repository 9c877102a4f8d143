package pairing

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// copyAccess does nothing: a new file inherits the access list of its directory.
func copyAccess(*os.File, fs.FileInfo) error { return nil }

func isOurs(fs.FileInfo) bool { return false }

// checkLink trusts every link: only an administrator, or a user in developer mode, can make one.
func checkLink(_, _ string, _ fs.FileInfo) error { return nil }

// Error codes of Windows that package syscall does not name.
const (
	errorSharingViolation syscall.Errno = 32
	errorLockViolation    syscall.Errno = 33
)

// busy says whether a file cannot be opened or replaced because somebody has it open or is replacing it.
func busy(err error) bool {
	return errors.Is(err, errorSharingViolation) || errors.Is(err, errorLockViolation) ||
		errors.Is(err, syscall.ERROR_ACCESS_DENIED)
}
