package alertmanager

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// MaxGroups is how many groups a [Handler] remembers, so that a resolved one has the run id of its page.
const MaxGroups = 4096

// maxMembers bounds what is remembered of a group's members.
const maxMembers = 64

// member is a hash of an alert that fires.
type member [8]byte

// members are the hashes of alerts, nil for too many.
func members(alerts Alerts) []member {
	if len(alerts) > maxMembers {
		return nil
	}
	hashes := []member{}
	for _, a := range alerts {
		sum := sha256.Sum256([]byte(a.identity()))
		hashes = append(hashes, member(sum[:8]))
	}
	return hashes
}

// runID is a hash of a group's key and of what makes its page another one.
func runID(groupKey string, alerts Alerts, truncated uint64) string {
	identities := make([]string, len(alerts))
	for i, a := range alerts {
		identities[i] = a.identity()
	}
	slices.Sort(identities)
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %d\n", groupKey, truncated)
	for _, identity := range slices.Compact(identities) {
		fmt.Fprintln(hash, identity)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// identity tells an alert, and one time that it fires, from all others.
func (a Alert) identity() string {
	return fmt.Sprintf("%q %s", a.fingerprint(), a.StartsAt.UTC().Format(time.RFC3339Nano))
}

// fingerprint is the sender's, or for one that sends none a text of all labels.
func (a Alert) fingerprint() string {
	if a.Fingerprint != "" {
		return a.Fingerprint
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		text += fmt.Sprintf("%q=%q,", name, a.Labels[name])
	}
	return text
}

// runs remembers the run ids under which groups were paged. It is safe for concurrent use.
type runs struct {
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	order list.List // of *run, the one that was paged last in front
}

type run struct {
	key       [sha256.Size]byte // of the group's key
	id        string
	members   []member // of the page, nil if it has too many
	truncated uint64
}

// of returns the run id of a group's page.
func (r *runs) of(g *Group) string {
	if !g.resolved() {
		return runID(g.GroupKey, g.firing, g.TruncatedAlerts)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if paged := r.byKey[sha256.Sum256([]byte(g.GroupKey))]; paged != nil {
		return paged.Value.(*run).id
	}
	return runID(g.GroupKey, g.Alerts, 0)
}

// isLess reports whether the page that was accepted last for a group had all members of this one, and more.
func (r *runs) isLess(groupKey string, fewer []member, truncated uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byKey[sha256.Sum256([]byte(groupKey))]
	if e == nil || fewer == nil {
		return false
	}
	last := e.Value.(*run)
	for _, m := range fewer {
		if !slices.Contains(last.members, m) {
			return false
		}
	}
	return len(fewer) < len(last.members) && truncated == 0 && last.truncated == 0
}

// paged notes that a page was accepted.
func (r *runs) paged(groupKey, id string, members []member, truncated uint64) {
	key := sha256.Sum256([]byte(groupKey))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[[sha256.Size]byte]*list.Element{}
	}
	if old := r.byKey[key]; old != nil {
		r.order.Remove(old)
	} else if r.order.Len() >= MaxGroups {
		oldest := r.order.Back()
		delete(r.byKey, oldest.Value.(*run).key)
		r.order.Remove(oldest)
	}
	r.byKey[key] = r.order.PushFront(&run{key, id, members, truncated})
}
