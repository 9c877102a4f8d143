package payload_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/secret"
)

func TestCollapseIDCoversTheIdentityAlone(t *testing.T) {
	salt := payload.NewSalt()
	event := payload.NewEvent("node-a", "etl", payload.EventDAGFailure)
	id := event.CollapseID(salt)
	for name, change := range map[string]func(*payload.Alert){
		"kind":    func(a *payload.Alert) { a.Kind = payload.KindFailure },
		"name":    func(a *payload.Alert) { a.Name = "etl2" },
		"run id":  func(a *payload.Alert) { a.RunID = "x" },
		"event":   func(a *payload.Alert) { a.Event = payload.EventQuorumLoss },
		"dag":     func(a *payload.Alert) { a.DAG = "x" },
		"run key": func(a *payload.Alert) { a.RunKey = "x" },
		"taskkey": func(a *payload.Alert) { a.TaskKey = "x" },
		"check":   func(a *payload.Alert) { a.SLACheck = "x" },
	} {
		other := event
		change(&other)
		if other.CollapseID(salt) == id {
			t.Errorf("another %s has the same id", name)
		}
	}
	for name, change := range map[string]func(*payload.Alert){
		"host":    func(a *payload.Alert) { a.Host = "node-b" },
		"time":    func(a *payload.Alert) { a.Time = a.Time.Add(time.Minute) },
		"message": func(a *payload.Alert) { a.Message, a.Subject = "x", "y" },
		"role":    func(a *payload.Alert) { a.Role, a.Leader = "x", "y" },
		"exit":    func(a *payload.Alert) { a.ExitCode = new(1) },
	} {
		other := event
		change(&other)
		if other.CollapseID(salt) != id {
			t.Errorf("another %s has another id", name)
		}
	}
	if event.CollapseID(payload.NewSalt()) == id {
		t.Error("another salt gives the same id")
	}
}

// TestCollapseIDOfLongNames goes past what the id's scratch space holds.
func TestCollapseIDOfLongNames(t *testing.T) {
	long := strings.Repeat("日🚀\xff\x00", 1<<16)
	ids := make(map[string]bool)
	for _, name := range []string{long, long + "a", long + "b", long[1:]} {
		ids[payload.NewFailure("node-a", name).CollapseID(secret.New("salt"))] = true
	}
	if len(ids) != 4 {
		t.Errorf("%d ids for 4 names", len(ids))
	}
}

func TestRandomIDs(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := make(map[string]bool)
	for range 100 {
		for _, id := range []string{payload.NewSalt().Reveal(), payload.NewCollapseID()} {
			if !form.MatchString(id) {
				t.Errorf("%q is not 32 lower-case hex digits", id)
			}
			if seen[id] {
				t.Errorf("%s came twice", id)
			}
			seen[id] = true
		}
	}
}
