//go:build unix

package pairing

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// copyAccess gives an open file the permissions and the group of another, and its owner when we are root: a registry
// that root once writes stays the service's. Everything is done to the open file, never by its name, which somebody who
// may write in the directory can make a link to another file.
//
// Where the group cannot be kept, the new file's group gets no more access than everybody had.
func copyAccess(f *os.File, like fs.FileInfo) error {
	have, err := f.Stat()
	if err != nil {
		return err
	}
	mode := like.Mode().Perm()
	if to, from := owner(like), owner(have); os.Geteuid() == 0 && to.Uid != from.Uid {
		if err := f.Chown(int(to.Uid), int(to.Gid)); err != nil {
			return fmt.Errorf("keep the owner of the registry file: %w", err)
		}
	} else if to.Gid != from.Gid {
		if err := f.Chown(-1, int(to.Gid)); err != nil {
			mode = mode&^0o070 | mode&0o007<<3
		}
	}
	if have.Mode().Perm() == mode {
		return nil // some file systems have one mode for all files and refuse to change it
	}
	return f.Chmod(mode)
}

// isOurs says whether we own a file that has no other name, so that we may change its permissions.
func isOurs(info fs.FileInfo) bool {
	stat := owner(info)
	return int(stat.Uid) == os.Geteuid() && stat.Nlink == 1
}

// checkLink refuses a symbolic link by which somebody else could choose the file that we read and write: it is neither
// ours nor root's, and its owner can write in its directory.
func checkLink(dir, path string, link fs.FileInfo) error {
	in, err := os.Stat(dir)
	if err != nil {
		return err
	}
	by := owner(link).Uid
	if mayFollow(os.Geteuid(), int(by), int(owner(in).Uid), in.Mode().Perm()) {
		return nil
	}
	return fmt.Errorf("%s is a symbolic link that belongs to another user (uid %d): "+
		"make the link as the user that runs this program, or name the file itself", path, by)
}

// mayFollow is checkLink for the user me, on a link of linkOwner in a directory of dirOwner.
func mayFollow(me, linkOwner, dirOwner int, dirMode fs.FileMode) bool {
	return linkOwner == me || linkOwner == 0 || linkOwner != dirOwner && dirMode&0o022 == 0
}

func owner(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

// busy is always false: only Windows refuses to replace a file that is open.
func busy(error) bool { return false }
