package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

// Sizes of a push token that the hosted relay routes, in hex digits.
const (
	minToken = 16
	maxToken = 512
)

// checkRegistry reads a registry file, and leaves it as it is.
func checkRegistry(ctx context.Context, r *report, path string) {
	r.begin("Paired phones")
	if !checkFile(r, path, "push tokens and the salt",
		"Correct the path, or pair a phone: a daemon makes the registry when the first phone pairs.") {
		return
	}
	store, err := pairing.OpenFile(path)
	if err != nil {
		r.fail("Correct -devices.", "%v", err)
		return
	}
	snapshot, err := store.Load(ctx)
	if err != nil {
		toDo := "Look at the file system, and whether this is the file that the daemon uses."
		if _, ok := errors.AsType[*pairing.CorruptError](err); ok {
			toDo = "Restore the file from a backup, or remove it and pair the phones again."
		}
		r.fail(toDo, "%v", err)
		return
	}
	for _, d := range snapshot.Devices {
		if d.Unusable != nil {
			r.fail("This phone gets no alert: pair it again, then revoke this entry: DELETE /push/devices/ID, with the id that it has here.",
				"%v", d.Unusable)
		}
	}
	devices := usable(snapshot)
	switch {
	case len(devices) > 0:
		r.ok("%s is a registry with %s", path, number(len(devices), "phone"))
	case len(snapshot.Devices) > 0:
		r.fail("See what is said of each entry, above.", "%s is a registry without a phone that can be used: nobody would be paged", path)
	default:
		r.fail("Pair a phone: POST /push/devices, or go run ./examples/phone beside examples/daemon.",
			"%s is a registry without a phone: nobody would be paged", path)
	}
	checkSalt(r, snapshot.Salt.Reveal())
	checkDevices(r, devices)
}

// usable returns the devices that an alert can be sealed to.
func usable(snapshot pairing.Snapshot) []pairing.Device {
	return slices.DeleteFunc(slices.Clone(snapshot.Devices), func(d pairing.Device) bool { return d.Unusable != nil })
}

// checkFile says whether a file is there, and what to do if not, and warns when
// others may read what it holds.
func checkFile(r *report, path, holds, ifMissing string) bool {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.fail(ifMissing, "%s is not there", path)
		return false
	case errors.Is(err, fs.ErrPermission):
		r.fail("Run the doctor as the user that the daemon or the bridge runs as.", "%v", err)
		return false
	case err != nil:
		r.fail("Look at the file system.", "%v", err)
		return false
	case !info.Mode().IsRegular():
		r.fail("Correct the path.", "%s is not a file", path)
		return false
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		r.warn("chmod 600 "+path+", owned by whoever runs the program.",
			"mode %04o lets other users at it, and it holds %s", mode, holds)
	}
	return true
}

func checkSalt(r *report, salt string) {
	switch {
	case salt == "":
		r.warn("The first alert makes one, if the daemon may write the file. "+
			"Nodes that share phones must share the salt.", "no collapse salt yet")
	case len(salt) < 16:
		r.warn("Replace collapseSalt by 32 random hex digits, on every node at once: "+
			"a relay can guess job names under one that is short.", "the collapse salt is only %d characters", len(salt))
	default:
		r.ok("the collapse salt is there")
	}
}

// checkDevices reports each phone, by what may be shown of it.
func checkDevices(r *report, devices []pairing.Device) {
	ids, tokens, keys := map[string]bool{}, map[string]string{}, map[seal.PublicKey]string{}
	for _, d := range devices {
		who := fmt.Sprintf("phone %q (%q, %q), fingerprint %s", d.ID, d.Name, d.Platform, d.PublicKey.Fingerprint())
		token := d.PushToken.Reveal()
		twinByToken, sameToken := tokens[token]
		twinByKey, sameKey := keys[d.PublicKey]
		switch {
		case ids[d.ID]:
			r.warn("Pair one of the two again after revoking the id, which removes both.", "%s: another phone has this id", who)
		case sameKey:
			r.warn("Revoke one of the two: the phone is paged twice.", "%s: phone %q has the same key", who, twinByKey)
		case sameToken:
			r.warn("Revoke the older one: it is the same phone before its app was installed anew, "+
				"and what is sealed to the old key cannot be opened.", "%s: phone %q has the same push token", who, twinByToken)
		case !routable(token):
			r.warn("Fine for a relay that routes such tokens. The hosted relay refuses it: pair the phone again.",
				"%s: its push token is not %d to %d hex digits", who, minToken, maxToken)
		default:
			r.ok("%s", who)
		}
		ids[d.ID], tokens[token], keys[d.PublicKey] = true, d.ID, d.ID
	}
}

func routable(token string) bool {
	return len(token) >= minToken && len(token) <= maxToken && strings.Trim(token, "0123456789abcdefABCDEF") == ""
}

func number(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
