package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

// Sizes of a push token that the hosted relay routes, in hex digits.
const (
	minToken = 16
	maxToken = 512
)

// checkRegistry reads a registry, and leaves it as it is.
func checkRegistry(ctx context.Context, r *report, registry string) {
	r.begin("Paired phones")
	from, err := openRegistry(registry)
	if err != nil {
		r.fail("Correct -registry: it takes a file, sqlite:FILE or postgres://USER:PASSWORD@HOST/DATABASE.", "%v", err)
		return
	}
	defer from.close()
	if from.file != "" && !checkFile(r, from.file, "push tokens and the salt",
		"Correct the path, or pair a phone: sealpush pair, and any daemon, makes the registry when the first phone pairs.") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	snapshot, err := from.store.Load(ctx)
	if err != nil {
		r.fail(loadAdvice(from, err), "%s", answer.Line(err.Error(), registryPassword(registry)))
		return
	}
	path := from.where
	for _, d := range snapshot.Devices {
		if d.Unusable != nil {
			r.fail("This phone gets no alert: pair it again with sealpush pair, then type sealpush devices revoke ID, with the id that it has here.",
				"%v", d.Unusable)
		}
	}
	devices := usable(snapshot)
	switch {
	case len(devices) > 0:
		r.ok("%s is a registry with %s", path, number(len(devices), "phone"))
	case len(snapshot.Devices) > 0:
		r.fail("See the lines about each entry, above.", "%s is a registry without a phone that can be used: nobody would be paged", path)
	default:
		r.fail("Pair a phone: type sealpush pair, or use the pairing API of the daemon.",
			"%s is a registry without a phone: nobody would be paged", path)
	}
	checkSalt(r, snapshot.Salt.Reveal())
	checkDevices(r, devices)
}

// loadAdvice says what to do about a registry that cannot be read.
func loadAdvice(from *source, err error) string {
	if _, ok := errors.AsType[*pairing.CorruptError](err); ok {
		return "Restore the file from a backup, or remove it and pair the phones again."
	}
	switch {
	case from.db == nil:
		return "Look at the file system, and whether this is the file that the daemon uses."
	case from.file != "":
		return "Look whether this is the database that the daemon uses, and who may read it."
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Op == "dial" {
		return "Nothing answers there: correct host and port in the registry's URL, or start the database."
	}
	return "Correct user, password and database in the registry's URL, and let that user read the tables sealpush_devices and sealpush_settings."
}

// registryPassword is what must not be printed of a registry's name.
func registryPassword(registry string) string {
	if u, err := url.Parse(registry); err == nil && u.User != nil {
		password, _ := u.User.Password()
		return password
	}
	return ""
}

// usable returns the devices that an alert can be sealed to.
func usable(snapshot pairing.Snapshot) []pairing.Device {
	return slices.DeleteFunc(slices.Clone(snapshot.Devices), func(d pairing.Device) bool { return d.Unusable != nil })
}

// checkFile says whether a file is there, and what to do if not, and warns when others may read what it holds.
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
		r.warn("chmod 600 "+path+", owned by the user that runs the program.",
			"mode %04o gives other users access, and it holds %s", mode, holds)
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
			r.warn("Revoke one of the two, with sealpush devices revoke ID: the phone is paged twice.", "%s: phone %q has the same key", who, twinByKey)
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

// pagePhones sends a test alert to each phone, as POST /push/devices/{id}/test does.
func pagePhones(ctx context.Context, r *report, relayURL, registry string) {
	r.begin("Test alerts")
	quiet := slog.New(slog.DiscardHandler) // the report says it
	client, err := relayclient.New(relayURL, relayclient.WithLogger(quiet), relayclient.WithPatience(3*time.Second))
	if err != nil {
		r.fail("Correct the relay's URL first.", "nobody was paged")
		return
	}
	defer client.Close()
	from, err := openRegistry(registry)
	if err != nil {
		r.fail("Correct -registry.", "nobody was paged")
		return
	}
	defer from.close()
	snapshot, err := from.store.Load(ctx)
	devices := usable(snapshot)
	if err != nil || len(devices) == 0 {
		r.fail("See the paired phones above.", "nobody was paged")
		return
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		r.fail("Give the machine a host name.", "the machine does not know its name")
		return
	}
	for i, outcome := range client.Send(ctx, relayclient.Push{Alert: payload.NewTest(host)}, devices) {
		reportPage(r, fmt.Sprintf("phone %q (%q)", devices[i].ID, devices[i].Name), outcome)
	}
}

// reportPage says what became of one phone's test alert, by the relay's own word.
func reportPage(r *report, phone string, outcome relayclient.Outcome) {
	switch {
	case outcome.Err != nil:
		r.fail(outcomeAdvice(outcome.Err), "%s: %v", phone, outcome.Err)
	case outcome.Relay == relayclient.Forwarded:
		r.ok("%s: the relay forwarded a test alert (%d); it should be on the phone in seconds", phone, outcome.Status)
	case outcome.Relay == relayclient.Digested:
		r.warn("The phone has used up what the relay forwards to it in a month: look for a job that pages too much, or ask the relay's operator.",
			"%s: the relay accepted a test alert (%d) and says %s: the phone does not ring", phone, outcome.Status, outcome.Relay)
	case outcome.Relay != "":
		r.warn("Each test alert is different, and this relay treats it as a repetition: ask its operator.",
			"%s: the relay accepted a test alert (%d) and says %s: the phone does not ring", phone, outcome.Status, outcome.Relay)
	default:
		r.warn("Look at the phone. A relay answers forwarded, coalesced, suppressed or digested; this server may be something else.",
			"%s: the server accepted a test alert (%d) and does not say what becomes of it", phone, outcome.Status)
	}
}

func outcomeAdvice(err error) string {
	if errors.Is(err, relayclient.ErrDeviceGone) {
		return "The app was deleted or its push token replaced: pair the phone again, or revoke it."
	}
	if errors.Is(err, relayclient.ErrUnusableDevice) {
		return "Pair the phone again."
	}
	if refused, ok := errors.AsType[*relayclient.StatusError](err); ok {
		if toDo := statusAdvice(reply{status: refused.StatusCode}, "the relay's URL"); toDo != "" {
			return toDo
		}
		return "The relay refuses this phone's alerts, and its text says why: pair the phone again if it is the token."
	}
	return networkAdvice(err)
}
