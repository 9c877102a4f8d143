package sqltest_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

// The test binary is also the nodes of the fleet, when this is set to a nodeConfig.
const asNode = "SEALPUSH_TEST_NODE"

// nodeConfig is what a node process is told, as JSON in its environment. A program of an older version reads it too.
type nodeConfig struct {
	File   string       // the registry file
	DSN    string       // or the PostgreSQL database
	Relay  string       // its URL
	Suites []seal.Suite // those that the node may seal to; all when there are none. An older node does not read it
}

func TestMain(m *testing.M) {
	if config := os.Getenv(asNode); config != "" {
		if err := serveNode([]byte(config)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveNode is a daemon: it prints its URL and serves the pairing API, POST /alert?name= and GET /log until standard input
// ends. The log is what was logged since it was last asked for.
func serveNode(text []byte) error {
	var config nodeConfig
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	store, err := openStore(config)
	if err != nil {
		return err
	}
	log := &logBuffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	opts := []pairing.RegistryOption{pairing.WithLogger(logger)}
	if config.Suites != nil {
		opts = append(opts, pairing.WithSuites(config.Suites...))
	}
	registry, err := pairing.NewRegistry(store, opts...)
	if err != nil {
		return err
	}
	client, err := relayclient.New(config.Relay, relayclient.WithLogger(logger))
	if err != nil {
		return err
	}
	notifier, err := relayclient.NewNotifier(client, registry, "node")
	if err != nil {
		return err
	}
	api, err := pairing.Handler(registry, notifier.Test)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/push/", api)
	mux.HandleFunc("POST /alert", func(w http.ResponseWriter, r *http.Request) {
		outcomes, err := notifier.Notify(r.Context(), payload.NewFailure("node", r.FormValue("name")))
		for _, o := range outcomes {
			err = errors.Join(err, o.Err)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	})
	mux.HandleFunc("GET /log", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, log.take()) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, mux)
}

func openStore(config nodeConfig) (pairing.Store, error) {
	if config.File != "" {
		return pairing.OpenFile(config.File)
	}
	db, err := sql.Open("pgx", config.DSN)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return pairing.NewSQL(db, pairing.PostgreSQL)
}

// A logBuffer keeps log lines until they are taken.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(line)
}

func (l *logBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// A node is a process of the fleet.
type node struct {
	name, url string
	seals     []seal.Suite // to these suites
	older     bool
}

// buildOlderNode builds a node of the last version that knew no suites, and returns the program.
func buildOlderNode(t *testing.T) string {
	t.Helper()
	run := func(dir, name string, args ...string) []byte {
		command := osexec.CommandContext(t.Context(), name, args...)
		command.Dir = dir
		var out, said bytes.Buffer
		command.Stdout, command.Stderr = &out, &said
		if err := command.Run(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said.Bytes())
		}
		return out.Bytes()
	}
	tree := t.TempDir()
	unpack(t, tree, "testdata/oldernode/source.tar.gz")
	module := filepath.Join(tree, "relayclient", "pairing", "sqltest") // the one with the database drivers
	source, err := os.ReadFile("testdata/oldernode/main.go")
	write := func(name string, content []byte) {
		if err == nil {
			err = os.WriteFile(name, content, 0o600)
		}
	}
	write(filepath.Join(module, "main.go"), source)
	// The node sends alerts too, for which the module lists no dependencies.
	var sums [2][]byte
	for i, dir := range []string{module, tree} {
		if err == nil {
			sums[i], err = os.ReadFile(filepath.Join(dir, "go.sum"))
		}
	}
	write(filepath.Join(module, "go.sum"), slices.Concat(sums[0], sums[1]))
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(tree, "node.exe") // a name that every system runs
	run(module, "go", "build", "-mod=mod", "-o", program, "main.go")
	return program
}

// unpack writes the files of an archive below a directory.
func unpack(t *testing.T, dir, archive string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	packed, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	files, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if err == io.EOF {
			return
		}
		if err == nil && header.Typeflag == tar.TypeDir {
			err = root.MkdirAll(strings.TrimSuffix(header.Name, "/"), 0o700)
		} else if err == nil && header.Typeflag == tar.TypeReg {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = root.WriteFile(header.Name, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// startFleet starts a node with both suites and one with X-Wing switched off between two of an older version. The first
// makes the registry, and the last finds it as the newer ones left it.
func startFleet(t *testing.T, older string, config nodeConfig) (fleet []node, both, narrow node) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x25519 := []seal.Suite{seal.X25519}
	first := node{"older", startNode(t, older, config), x25519, true}
	both = node{"both", startNode(t, self, config), seal.Suites(), false}
	both.list(t)
	last := node{"older-too", startNode(t, older, config), x25519, true}
	config.Suites = x25519
	narrow = node{"narrow", startNode(t, self, config), x25519, false}
	return []node{first, both, narrow, last}, both, narrow
}

func startNode(t *testing.T, program string, config nodeConfig) (url string) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	command := osexec.CommandContext(context.WithoutCancel(t.Context()), program)
	command.Env = append(os.Environ(), asNode+"="+string(text))
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v", program, err)
		}
	})
	if _, err := fmt.Fscanln(out, &url); err != nil {
		t.Fatal(err)
	}
	return url
}

// ask returns the status and the body of an answer.
func (n node) ask(t *testing.T, method, path string, body []byte) (int, []byte) {
	req, err := http.NewRequest(method, n.url+path, bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s: %v", n.name, err)
		return 0, nil
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s: %v", n.name, err)
	}
	return resp.StatusCode, answer
}

// A fleetPhone is a phone that may be paired.
type fleetPhone struct {
	*relaytest.Phone
	name, id string
	pages    []string // what it must have received, sorted
}

func newFleetPhone(name string, suite seal.Suite) *fleetPhone {
	return &fleetPhone{Phone: relaytest.NewPhone(relaytest.WithPrivateKey(suite.GenerateKey())), name: name}
}

// pair pairs the phone at a node and returns the answer.
func (p *fleetPhone) pair(t *testing.T, at node) (int, string) {
	request := map[string]any{"name": p.name, "platform": "ios", "publicKey": p.PublicKey().String(), "pushToken": p.PushToken()}
	if p.PublicKey().Suite() != seal.X25519 {
		request["suite"] = p.PublicKey().Suite()
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Error(err)
	}
	status, answer := at.ask(t, "POST", "/push/devices", body)
	var reply struct {
		Device struct{ ID string }
		Error  string
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		t.Errorf("%s: %v in %q", at.name, err, answer)
	}
	if reply.Error == "" {
		p.id = reply.Device.ID
	}
	return status, reply.Error
}

func (p *fleetPhone) mustPair(t *testing.T, at node, want int) {
	if status, problem := p.pair(t, at); status != want {
		t.Errorf("%s pairs at %s: %d %s, want %d", p.name, at.name, status, problem, want)
	}
}

// list returns what a node lists, by id. A node that lists also alerts the phones that it has read, but one of the older
// version goes on with those of its latest write, or of 60 seconds ago.
func (n node) list(t *testing.T) map[string]map[string]any {
	t.Helper()
	status, answer := n.ask(t, "GET", "/push/devices", nil)
	var listing struct{ Devices []map[string]any }
	if err := json.Unmarshal(answer, &listing); err != nil || status != http.StatusOK {
		t.Fatalf("%s lists: %d %q", n.name, status, answer)
	}
	devices := map[string]map[string]any{}
	for _, d := range listing.Devices {
		devices[d["id"].(string)] = d
	}
	return devices
}

// alert sends one from a node, which every phone of its suites must get.
func (n node) alert(t *testing.T, name string, phones []*fleetPhone) {
	t.Helper()
	n.list(t)
	if status, answer := n.ask(t, "POST", "/alert?name="+name, nil); status != http.StatusOK {
		t.Errorf("%s sends %s: %d %s", n.name, name, status, answer)
	}
	for _, p := range phones {
		if slices.Contains(n.seals, p.PublicKey().Suite()) && !slices.Contains(p.pages, name) {
			p.pages = append(p.pages, name)
		}
	}
}

// takeLog returns what a node logged since it was last asked.
func (n node) takeLog(t *testing.T) string {
	_, text := n.ask(t, "GET", "/log", nil)
	return string(text)
}

// TestFleetOfVersions lets processes share a registry that can seal to different suites, two of them of an older version:
// every page arrives that can, the log names the phones that get none from a node, and nothing in the registry is lost.
func TestFleetOfVersions(t *testing.T) {
	older := buildOlderNode(t)
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "devices.json")
		runFleet(t, older, nodeConfig{File: path}, func(t *testing.T) map[string]map[string]any {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var document struct{ Devices []map[string]any }
			if err := json.Unmarshal(data, &document); err != nil {
				t.Fatal(err)
			}
			return byID(document.Devices)
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		dsn := newPostgresSchema(t)
		db := open(t, "pgx", dsn)
		runFleet(t, older, nodeConfig{DSN: dsn}, func(t *testing.T) map[string]map[string]any {
			var text []byte
			if err := db.QueryRowContext(t.Context(), `SELECT json_agg(d) FROM sealpush_devices d`).Scan(&text); err != nil {
				t.Fatal(err)
			}
			var rows []map[string]any
			if err := json.Unmarshal(text, &rows); err != nil {
				t.Fatal(err)
			}
			return byID(rows)
		})
	})
}

func byID(records []map[string]any) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, r := range records {
		all[r["id"].(string)] = r
	}
	return all
}

// runFleet is the test over one store, whose records are read past our code.
func runFleet(t *testing.T, older string, config nodeConfig, records func(*testing.T) map[string]map[string]any) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	config.Relay = relay.URL
	fleet, both, narrow := startFleet(t, older, config)

	var phones []*fleetPhone
	for _, n := range fleet {
		p := newFleetPhone("of-"+n.name, seal.X25519)
		p.mustPair(t, n, http.StatusCreated)
		phones = append(phones, p)
	}
	wide := newFleetPhone("wide", seal.XWing)
	for _, n := range fleet {
		if n.name == both.name {
			continue
		}
		field := "suite "
		if n.older {
			field = "publicKey " // it reads no suite, and the key is too long for the one that it knows
		}
		if status, problem := wide.pair(t, n); status != http.StatusBadRequest || !strings.HasPrefix(problem, field) {
			t.Errorf("%s pairs a phone that it cannot seal to: %d %q", n.name, status, problem)
		}
	}
	wide.mustPair(t, both, http.StatusCreated)
	phones = append(phones, wide)

	for _, n := range fleet {
		n.alert(t, "first-of-"+n.name, phones)
		n.alert(t, "second-of-"+n.name, phones)
		n.alert(t, "from-all", phones) // one page, whose salt all nodes share
	}
	for _, n := range fleet {
		logged := n.takeLog(t)
		want, about := 1, "wide ("+wide.id+", xwing)"
		switch {
		case n.older:
			about = wide.id // its log has ids alone
		case slices.Contains(n.seals, seal.XWing):
			want, about = 0, "cannot seal"
		}
		if got := strings.Count(logged, about); got != want {
			t.Errorf("the log of %s has %q %d times, want %d:\n%s", n.name, about, got, want, logged)
		}
		device, listed := n.list(t)[wide.id]
		if n.older {
			continue // it lists those alone that it can page
		}
		if sealable := slices.Contains(n.seals, seal.XWing); !listed || device["suite"] != "xwing" || device["sealableHere"] != sealable {
			t.Errorf("%s lists %v", n.name, device)
		}
	}

	// Everybody writes at once: what nobody touches stays as it is.
	before := records(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	for _, n := range fleet {
		for i := range 6 {
			group.Go(func() {
				p := newFleetPhone(fmt.Sprintf("%s-%d", n.name, i), n.seals[i%len(n.seals)])
				p.mustPair(t, n, http.StatusCreated)
				mu.Lock()
				defer mu.Unlock()
				phones = append(phones, p)
			})
		}
		group.Go(func() { // and goes again
			p := newFleetPhone("guest-of-"+n.name, seal.X25519)
			p.mustPair(t, n, http.StatusCreated)
			if status, answer := n.ask(t, "DELETE", "/push/devices/"+p.id, nil); status != http.StatusOK {
				t.Errorf("%s revokes: %d %s", n.name, status, answer)
			}
		})
	}
	group.Wait()
	after := records(t)
	for id, record := range before {
		if !reflect.DeepEqual(after[id], record) {
			t.Errorf("the record was\n%v\nand is\n%v", record, after[id])
		}
	}
	ids := map[string]bool{}
	for _, p := range phones {
		ids[p.id] = true
	}
	if got := slices.Sorted(maps.Keys(after)); !slices.Equal(got, slices.Sorted(maps.Keys(ids))) {
		t.Errorf("the registry has %d phones, want %d", len(got), len(ids))
	}

	// A phone that pairs again at a node of another kind keeps its record.
	for i, n := range fleet {
		p := phones[(i+1)%len(fleet)]
		p.name += "-again"
		old := p.id
		if p.mustPair(t, n, http.StatusOK); p.id != old {
			t.Errorf("%s has the id %s, had %s", p.name, p.id, old)
		}
		if record := records(t)[p.id]; record["name"] != p.name || record["suite"] != nil && record["suite"] != "x25519" {
			t.Errorf("%s is stored as %v", p.name, record)
		}
	}

	for _, n := range fleet {
		n.alert(t, "last-of-"+n.name, phones)
	}
	for _, p := range phones {
		received, err := p.Received(relay)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		var pages []string
		for _, notification := range received {
			pages = append(pages, notification.Alert.Name)
		}
		slices.Sort(pages)
		slices.Sort(p.pages)
		if !slices.Equal(pages, p.pages) {
			t.Errorf("%s (%s) received %q, want %q", p.name, p.PublicKey().Suite(), pages, p.pages)
		}
	}

	// The last foreign phone goes: the node that could not page it says so.
	narrow.takeLog(t)
	for _, p := range phones {
		if p.PublicKey().Suite() == seal.XWing {
			if status, answer := both.ask(t, "DELETE", "/push/devices/"+p.id, nil); status != http.StatusOK {
				t.Errorf("revoke %s: %d %s", p.name, status, answer)
			}
		}
	}
	narrow.list(t)
	if logged := narrow.takeLog(t); strings.Count(logged, "level=INFO") != 1 || !strings.Contains(logged, "seal to the suite of every paired phone") {
		t.Errorf("when no foreign phone is left, the log of narrow says\n%s", logged)
	}
	t.Logf("%d nodes, %d phones", len(fleet), len(phones))
}
