package sealpush_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// The README's two programs build and run, unchanged, in a fresh module whose
// only requirement is this one.

func TestReadmePagesAPhone(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	dir := newModule(t, readmeProgram(t, 0))
	store, err := pairing.OpenFile(filepath.Join(dir, "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = registry.Pair(t.Context(), pairing.Request{
		Name: "phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken()),
	}, "")
	if err != nil {
		t.Fatal(err)
	}

	out := goCommand(t, dir, []string{"RELAY_URL=" + relay.URL}, "run", ".")
	received, err := phone.Received(relay)
	if err != nil || len(received) != 1 || received[0].Alert.Name != "nightly-backup" {
		t.Errorf("the phone received %v, %v; the program printed %s", received, err, out)
	}
	graph := goCommand(t, dir, nil, "mod", "graph")
	for _, stranger := range []string{"pgx", "lib/pq", "sqlite", "mysql", "websocket", "nats", "kafka", "amqp", "redis"} {
		if strings.Contains(graph, stranger) {
			t.Errorf("whoever pages a phone gets %s in the module graph:\n%s", stranger, graph)
		}
	}
}

func TestReadmeWakesAPhone(t *testing.T) {
	service := relaytest.NewBridgeService()
	defer service.Close()
	dir := newModule(t, readmeProgram(t, 1))
	config := bridge.Config{
		URL: service.RelayURL, TokenURL: service.TokenURL, ClientID: "home", ClientSecret: service.AddClient("home"),
	}
	client, err := bridge.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Register(t.Context(), bridge.Device{Token: secret.New("8f3a1bc2d4e5f607"), Platform: "ios"}); err != nil {
		t.Fatal(err)
	}
	table := fmt.Sprintf("[push_relay]\nurl = %q\ntoken_url = %q\nclient_id = %q\nclient_secret = %q\n",
		config.URL, config.TokenURL, config.ClientID, config.ClientSecret.Reveal())
	writeFile(t, filepath.Join(dir, "common.toml"), table)

	out := goCommand(t, dir, nil, "run", ".")
	if pushes := service.Pushes("home"); len(pushes) != 1 || !strings.HasSuffix(strings.TrimSpace(out), "sent") {
		t.Errorf("the relay saw %v; the program printed %s", pushes, out)
	}
}

// What the README says holds a guarantee is there.
func TestReadmeNamesRealTests(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllStringSubmatch(string(readme), -1)
	if len(names) < 10 {
		t.Fatalf("found %d names of tests", len(names))
	}
	var tests strings.Builder
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		tests.Write(code)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("the README names %s, which is no test", name[1])
		}
	}
}

// readmeProgram returns the README's n-th Go block.
func readmeProgram(t *testing.T, n int) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.ReplaceAll(string(readme), "\r\n", "\n"), "\n```go\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("the README has %d Go blocks", len(blocks))
	}
	program, _, _ := strings.Cut(blocks[n], "\n```")
	return program
}

func newModule(t *testing.T, program string) (dir string) {
	t.Helper()
	checkout, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	writeFile(t, filepath.Join(dir, "main.go"), program)
	writeFile(t, filepath.Join(dir, "go.sum"), string(sums))
	writeFile(t, filepath.Join(dir, "go.mod"), fmt.Sprintf(`module example.com/newcomer

go 1.26.0

require github.com/sealpush/sealpush v0.0.0

replace github.com/sealpush/sealpush => %q
`, filepath.ToSlash(checkout)))
	return dir
}

func writeFile(t *testing.T, path, contents string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
}

func goCommand(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
