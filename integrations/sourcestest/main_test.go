package sourcestest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// outage is how long the relay is gone in TestAlertmanager; a minute, by hand.
var outage = flag.Duration("outage", 0, "how long the relay is gone (default: until Alertmanager's first attempt has failed)")

// bin is the directory with the tool.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runWithTool(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runWithTool(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "sealpush-sources-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "sealpush"), ".")
	build.Dir = filepath.Join("..", "..", "cmd", "sealpush")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the tool: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// environment is a clean one, in which home is the user's.
func environment(home string) []string {
	env := []string{"HOME=" + home, "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "TMPDIR", "LANG", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "GOTOOLCHAIN", "SSL_CERT_FILE":
			env = append(env, entry)
		}
	}
	return env
}

// need is the path of a program that has to be installed.
func need(t *testing.T, name, install string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%s is not installed: %s", name, install)
	}
	return path
}
