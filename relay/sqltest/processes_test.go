package sqltest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
)

// The test binary is also the relay process of these tests, when this is set to
// where its push service is.
const asRelay = "SEALPUSH_TEST_PUSH_SERVICE"

func TestMain(m *testing.M) {
	if service := os.Getenv(asRelay); service != "" {
		if err := serveRelay(service); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A pushService forwards by posting the collapse id to a URL.
type pushService string

func (s pushService) Device(token string) (string, error) { return token, nil }

func (s pushService) Forward(ctx context.Context, e relay.Envelope) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(s), strings.NewReader(e.CollapseID))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// serveRelay prints the URL of a relay and serves it until standard input ends.
func serveRelay(service string) error {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(8)
	state, err := relay.NewSQLState(db, relay.PostgreSQL)
	if err != nil {
		return err
	}
	r, err := relay.New(relay.WithForwarder(pushService(service)), relay.WithState(state),
		relay.WithPolicy(relay.Policy{CoalesceWindow: time.Hour, RefillInterval: time.Hour}))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, r)
}

// startProcess starts a relay process and returns its URL, and a function that kills
// it.
func startProcess(t *testing.T, dsn, service string) (url string, kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), "DATABASE_URL="+dsn, asRelay+"="+service)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := command.StdinPipe(); err != nil { // ends with the test's process
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		command.Process.Kill()
		command.Wait()
	})
	t.Cleanup(kill)
	if _, err := fmt.Fscanln(out, &url); err != nil {
		t.Fatal(err)
	}
	return url, kill
}

func post(t *testing.T, url string, id int) string {
	body := fmt.Sprintf(`{"v":1,"device":"8f3a1b5577990024","ciphertext":%q,"collapseId":"%032x","priority":"passive","event":false}`,
		strings.Repeat("A", 68), id)
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	var answer struct{ Outcome string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Error(err)
	}
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Sprint(resp.StatusCode)
	}
	return answer.Outcome
}

// Two processes that share one PostgreSQL decide about a device as one, and what
// they decided outlives them.
func TestTwoProcessesShareADevice(t *testing.T) {
	var mu sync.Mutex
	handed := map[string]int{}
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		id, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		handed[string(id)]++
	}))
	defer service.Close()
	dsn := newPostgresSchema(t)
	first, killFirst := startProcess(t, dsn, service.URL)
	second, killSecond := startProcess(t, dsn, service.URL)
	urls := []string{first, second}

	// A hundred posts, to both in turn; so many ids.
	together := func(ids int) map[string]int {
		outcomes := map[string]int{}
		var group sync.WaitGroup
		for n := range 100 {
			group.Go(func() {
				got := post(t, urls[n%2], n/2%ids)
				mu.Lock()
				defer mu.Unlock()
				outcomes[got]++
			})
		}
		group.Wait()
		return outcomes
	}
	if got := together(1); got["forwarded"] != 1 || got["coalesced"] != 99 {
		t.Errorf("one alert from a hundred nodes: %v", got)
	}
	if got := together(50); got["forwarded"] != 49 || got["coalesced"] != 51 {
		t.Errorf("fifty alerts, each from two nodes: %v", got)
	}
	for id := range 12 { // of the bucket of 60, ten are left
		want := "forwarded"
		if id >= 10 {
			want = "429"
		}
		if got := post(t, urls[id%2], 1000+id); got != want {
			t.Errorf("alert %d: %s, want %s", 51+id, got, want)
		}
	}
	killFirst()
	killSecond()
	restarted, _ := startProcess(t, dsn, service.URL)
	if got := post(t, restarted, 0); got != "coalesced" {
		t.Errorf("after a restart: %s", got)
	}
	if got := post(t, restarted, 2000); got != "429" {
		t.Errorf("the bucket after a restart: %s", got)
	}
	if len(handed) != 60 {
		t.Errorf("%d pages", len(handed))
	}
	for id, times := range handed {
		if times != 1 {
			t.Errorf("page %s was handed over %d times", id, times)
		}
	}
}
