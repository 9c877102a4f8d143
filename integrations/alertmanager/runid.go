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

// runID is a hash of a group's key and of what makes its page another one.
func runID(groupKey string, alerts Alerts, truncated uint64) string {
	members := make([]string, len(alerts))
	for i, a := range alerts {
		members[i] = fmt.Sprintf("%q %s", a.fingerprint(), a.StartsAt.UTC().Format(time.RFC3339Nano))
	}
	slices.Sort(members)
	hash := sha256.New()
	fmt.Fprintf(hash, "%q %d\n", groupKey, truncated)
	for _, member := range slices.Compact(members) { // the two of a pair that share a configuration may post one twice
		fmt.Fprintln(hash, member)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
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
	key [sha256.Size]byte // of the group's key
	id  string
}

// of returns the run id of a group's page.
func (r *runs) of(g *Group) string {
	if !g.resolved() {
		return runID(g.GroupKey, g.Alerts.Firing(), g.TruncatedAlerts)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if paged := r.byKey[sha256.Sum256([]byte(g.GroupKey))]; paged != nil {
		return paged.Value.(*run).id
	}
	return runID(g.GroupKey, g.Alerts, 0)
}

// paged notes that a page was accepted.
func (r *runs) paged(groupKey, id string) {
	key := sha256.Sum256([]byte(groupKey))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[[sha256.Size]byte]*list.Element{}
	}
	if e := r.byKey[key]; e != nil {
		e.Value.(*run).id = id
		r.order.MoveToFront(e)
		return
	}
	if r.order.Len() >= MaxGroups {
		oldest := r.order.Back()
		delete(r.byKey, oldest.Value.(*run).key)
		r.order.Remove(oldest)
	}
	r.byKey[key] = r.order.PushFront(&run{key, id})
}
