package storetest

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// How much testProcesses does: 12 writers in 3 processes, this one among them.
const (
	children        = 2
	writersAProcess = 4
	devicesAWriter  = 6
	jobVariable     = "SEALPUSH_STORETEST_JOB"
)

// job is what a process is to do, as JSON in its environment.
type job struct {
	Test   string         // the test that runs it
	Place  string         // the store
	Shared seal.PublicKey // a phone that every writer pairs
	Doomed string         // the id of a device that every writer revokes
	Report string         // the file to report in
}

// report is what the writers of one process saw.
type report struct {
	Kept    map[string]string // the push token, by id, of each device that must be there at the end
	Salts   []string          // what EnsureSalt returned
	Shared  []string          // the ids of the shared phone
	Created int               // how many writers were told that they paired the shared phone first
	Revoked int               // how many were told that they revoked the doomed device
}

// testProcesses lets writers in several processes pair, pair again and revoke at one place, all at once. Nothing that
// was paired may be lost, nothing that was revoked may come back, and where writers compete exactly one of them wins.
func testProcesses(t *testing.T, b Backend) {
	place := b.New(t)
	s := b.Open(t, place)
	doomed := pair(t, s, newDevice("doomed"))
	stays := pair(t, s, newDevice("stays"))
	work := job{Test: runTest(t), Place: place, Shared: seal.GenerateKey().Public(), Doomed: doomed.ID}

	var procs []*process
	for range children {
		procs = append(procs, startProcess(t, work))
	}
	for _, p := range procs {
		p.waitReady(t)
	}
	for _, p := range procs {
		p.goOn(t)
	}
	stopReading := keepReading(t, b.Open(t, place), stays.ID)
	reports := []report{runWriters(t, b, work)}
	for _, p := range procs {
		reports = append(reports, p.wait(t))
	}
	stopReading()
	if t.Failed() {
		return
	}

	var sum report
	want := map[string]string{stays.ID: stays.PushToken.Reveal()}
	for _, r := range reports {
		for id, token := range r.Kept {
			want[id] = token
		}
		sum.Salts = append(sum.Salts, r.Salts...)
		sum.Shared = append(sum.Shared, r.Shared...)
		sum.Created += r.Created
		sum.Revoked += r.Revoked
	}
	if sum.Created != 1 || len(slices.Compact(sum.Shared)) != 1 {
		t.Errorf("one phone, paired by all: %d writers created it, under the ids %v", sum.Created, sum.Shared)
	}
	if sum.Revoked != 1 {
		t.Errorf("%d writers were told that they revoked one device", sum.Revoked)
	}
	snap := load(t, b.Open(t, place))
	if len(slices.Compact(sum.Salts)) != 1 || snap.Salt.Reveal() != sum.Salts[0] {
		t.Errorf("the writers got the salts %q, stored is %q", sum.Salts, snap.Salt.Reveal())
	}
	got := map[string]string{}
	for _, d := range snap.Devices {
		if d.PublicKey != work.Shared {
			got[d.ID] = d.PushToken.Reveal()
		} else if d.ID != sum.Shared[0] {
			t.Errorf("the shared phone is stored as %s, said to be %s", d.ID, sum.Shared[0])
		}
	}
	for id, token := range want {
		if got[id] != token {
			t.Errorf("device %s is lost, or what it was last paired with: token %q, want %q", id, got[id], token)
		}
		delete(got, id)
	}
	for id := range got {
		t.Errorf("device %s was revoked and is back", id)
	}
}

// runWriters is one process's part.
func runWriters(t *testing.T, b Backend, work job) report {
	sum := report{Kept: map[string]string{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	shared := b.Open(t, work.Place)
	for i := range writersAProcess {
		s := shared // half of the writers share a store, the others have one each
		if i%2 == 1 {
			s = b.Open(t, work.Place)
		}
		wg.Go(func() {
			r, err := write(t, s, work)
			if err != nil {
				t.Errorf("a writer failed: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for id, token := range r.Kept {
				sum.Kept[id] = token
			}
			sum.Salts = append(sum.Salts, r.Salts...)
			sum.Shared = append(sum.Shared, r.Shared...)
			sum.Created += r.Created
			sum.Revoked += r.Revoked
		})
	}
	wg.Wait()
	return sum
}

func write(t *testing.T, s pairing.Store, work job) (report, error) {
	ctx := t.Context()
	r := report{Kept: map[string]string{}}
	salt, err := s.EnsureSalt(ctx, secret.New(newID()))
	if err != nil {
		return r, err
	}
	r.Salts = append(r.Salts, salt.Reveal())

	phone := newDevice("shared")
	phone.PublicKey = work.Shared
	stored, created, err := s.Pair(ctx, phone)
	if err != nil {
		return r, err
	}
	r.Shared = append(r.Shared, stored.ID)
	if created {
		r.Created++
	}

	switch err := s.Revoke(ctx, work.Doomed); {
	case err == nil:
		r.Revoked++
	case !errors.Is(err, pairing.ErrUnknownDevice):
		return r, err
	}

	for i := range devicesAWriter {
		d := newDevice("phone")
		if _, _, err := s.Pair(ctx, d); err != nil {
			return r, err
		}
		if i%2 == 0 {
			if err := s.Revoke(ctx, d.ID); err != nil {
				return r, err
			}
			continue
		}
		again := d
		again.ID, again.PushToken = newID(), secret.New("again-"+d.PushToken.Reveal())
		if _, _, err := s.Pair(ctx, again); err != nil {
			return r, err
		}
		r.Kept[d.ID] = again.PushToken.Reveal()
	}
	return r, nil
}

// keepReading reads all the while and returns what ends that: a reader never fails and never misses a device that
// stays.
func keepReading(t *testing.T, s pairing.Store, id string) (stop func()) {
	var wg sync.WaitGroup
	quit := make(chan struct{})
	wg.Go(func() {
		for {
			snap, err := s.Load(t.Context())
			if err != nil {
				t.Errorf("Load among writers: %v", err)
				return
			}
			if !slices.ContainsFunc(snap.Devices, func(d pairing.Device) bool { return d.ID == id && d.Unusable == nil }) {
				t.Errorf("Load among writers misses a device, or cannot use it: %v", snap.Devices)
				return
			}
			select {
			case <-quit:
				return
			default:
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// process is a child that runs the test binary up to Run, where it does its part.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	report string
}

func startProcess(t *testing.T, work job) *process {
	t.Helper()
	work.Report = filepath.Join(t.TempDir(), "report.json")
	text, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	// Every part of the name of a subtest is a pattern of its own.
	parts := strings.Split(work.Test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+strings.Join(parts, "/"), "-test.timeout=2m")
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{cmd, stdin, bufio.NewReader(stdout), work.Report}
}

const readyLine = "storetest: ready"

// waitReady returns once the child has opened its store and waits to go on.
func (p *process) waitReady(t *testing.T) {
	t.Helper()
	var seen strings.Builder
	for {
		line, err := p.stdout.ReadString('\n')
		if strings.TrimSpace(line) == readyLine {
			return
		}
		seen.WriteString(line)
		if err != nil {
			t.Fatalf("the process did not get as far as Run: %v\n%s", err, seen.String())
		}
	}
}

func (p *process) goOn(t *testing.T) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Error(err)
	}
}

func (p *process) wait(t *testing.T) (r report) {
	t.Helper()
	rest, readErr := io.ReadAll(p.stdout)
	if err := errors.Join(readErr, p.cmd.Wait()); err != nil {
		t.Errorf("a process failed: %v\n%s", err, rest)
		return r
	}
	data, err := os.ReadFile(p.report)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Errorf("the report of a process: %v", err)
	}
	return r
}

// runTest is the name of the test that called Run.
func runTest(t *testing.T) string { return t.Name()[:strings.LastIndex(t.Name(), "/")] }

// childJob returns the job of this process when it is a child started for this test.
func childJob(t *testing.T) (work job, ok bool) {
	text := os.Getenv(jobVariable)
	if text == "" {
		return job{}, false
	}
	if err := json.Unmarshal([]byte(text), &work); err != nil {
		t.Fatalf("%s: %v", jobVariable, err)
	}
	return work, work.Test == t.Name()
}

func runChild(t *testing.T, b Backend, work job) {
	b.Open(t, work.Place)
	os.Stdout.WriteString("\n" + readyLine + "\n")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(runWriters(t, b, work))
	if err == nil {
		err = os.WriteFile(work.Report, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func newID() string {
	id := make([]byte, 8)
	rand.Read(id)
	return hex.EncodeToString(id)
}
