package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The test binary plays the tool, when started with asTool in its environment.
const asTool = "TEST_RUN_SEALPUSH"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "job" { // a command that the tool runs
		os.Exit(playJob(os.Args[2]))
	}
	if os.Getenv(asRoots) != "" {
		playRoots()
		return
	}
	if os.Getenv(asTool) != "" {
		if step := os.Getenv(killAt); step != "" {
			playKilled(step)
		}
		main()
		return
	}
	// What the developer has set is not the tests' business.
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "SEALPUSH_") || strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			os.Unsetenv(name)
		}
	}
	keepGoSettings()
	home, err := os.MkdirTemp("", "sealpush-test-")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		os.Setenv(name, home)
	}
	code := m.Run()
	os.RemoveAll(home)
	os.Exit(code)
}

// keepGoSettings has the go command, in a home of the tests', build from the developer's caches.
func keepGoSettings() {
	cache, _ := os.UserCacheDir()
	config, _ := os.UserConfigDir()
	home, _ := os.UserHomeDir()
	for name, path := range map[string]string{
		"GOCACHE": filepath.Join(cache, "go-build"), "GOENV": filepath.Join(config, "go", "env"), "GOPATH": filepath.Join(home, "go"),
	} {
		if os.Getenv(name) == "" && filepath.IsAbs(path) {
			os.Setenv(name, path)
		}
	}
}

// tool is the tool with arguments, not yet started.
func tool(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	// Under the race detector, a process that ends well would sleep for a second.
	cmd.Env = append(os.Environ(), asTool+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// output runs the tool and returns what it prints, standard error included, and its exit code.
func output(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// expect runs the tool, and wants an exit code and pieces of its output.
func expect(t *testing.T, exitCode int, pieces []string, args ...string) {
	t.Helper()
	out, code := output(t, tool(t, args...))
	if code != exitCode {
		t.Errorf("sealpush %q: exit code %d, want %d", args, code, exitCode)
	}
	for _, piece := range pieces {
		if !strings.Contains(out, piece) {
			t.Errorf("sealpush %q does not say %q", args, piece)
		}
	}
	if t.Failed() {
		t.Logf("sealpush %q printed\n%s", args, out)
	}
}

func TestHelpDescribesEachCommand(t *testing.T) {
	overview, _ := output(t, tool(t))
	manual, _ := output(t, tool(t, "man"))
	for _, c := range commands() {
		if !strings.Contains(overview, "\n  "+c.name+" ") || !strings.Contains(manual, "\n.SS sealpush "+c.name) {
			t.Errorf("%s is missing in the overview or the manual page", c.name)
		}
		expect(t, 0, []string{"Usage: sealpush " + c.name, capital(c.summary), "  -config file"}, "help", c.name)
		expect(t, 0, []string{"Usage: sealpush " + c.name}, c.name, "-help")
	}
	expect(t, 0, []string{overview}, "--help")
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"https://operator:hunter2@relay.example/"},
		{"help", "https://operator:hunter2@relay.example/"},
		{"version", "https://operator:hunter2@relay.example/"},
		{"version", "-no-such-flag"},
		{"completion"},
		{"completion", "tcsh"},
	} {
		out, code := output(t, tool(t, args...))
		if code != exitUsage || !strings.HasPrefix(out, "sealpush") || strings.Contains(out, "hunter2") {
			t.Errorf("%q: exit code %d: %s", args, code, out)
		}
	}
}

// Whoever tries the relay while something else listens on its port is told what to type.
func TestAddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	inUse := listener.Addr().String()
	f := newRunFixture(t)
	for _, args := range [][]string{
		{"relay", "-addr", inUse},
		{"relay", "-addr", "127.0.0.1:0", "-metrics", inUse},
		{"pair", "-addr", inUse, "-relay-url", f.url, "-registry", f.devices},
		{"alertmanager", "-addr", inUse, "-relay-url", f.url, "-registry", f.devices},
	} {
		flag := args[slices.Index(args, inUse)-1]
		expect(t, exitFailed, []string{inUse, "choose another address with " + flag + "\n"}, args...)
	}
}

func TestVersion(t *testing.T) {
	expect(t, 0, []string{"sealpush ", "go1."}, "version")
	expect(t, 0, []string{"sealpush ", "go1."}, "--version")
}

func TestManualPageIsRoff(t *testing.T) {
	out, _ := output(t, tool(t, "man"))
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !strings.HasPrefix(line, ".SH ") && !strings.HasPrefix(line, ".SS ") &&
			!strings.Contains(".TH SEALPUSH 1\n.B sealpush\n.I COMMAND\n.TP\n.PP\n.nf\n.fi\n", line) {
			t.Errorf("roff takes for a request: %s", line)
		}
	}
}

// Each shell reads its script, where there is that shell, and bash completes with it.
func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, code := output(t, tool(t, "completion", shell))
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", shell, code, script)
		}
		for _, word := range []string{"version", "relay-url"} {
			if !strings.Contains(script, word) {
				t.Errorf("%s: no %s in\n%s", shell, word, script)
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), path, "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", shell, err, out)
		}
	}
}

func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return // as on Windows: TestCompletions has read the script
	}
	script, _ := output(t, tool(t, "completion", "bash"))
	for line, want := range map[string]string{
		"sealpush ver":           "version",
		"sealpush config -regis": "-registry",
		"sealpush completion f":  "fish",
		"sealpush help comp":     "completion",
		"sealpush config -- -re": "",

		"sealpush devices re":           "revoke rename",
		"sealpush run -on ":             "failure recovery success always",
		"sealpush run -tail = std":      "stdout stderr", // as bash splits -tail=std
		"sealpush run -tail =":          "stdout stderr both",
		"sealpush send --priority p":    "passive",
		"sealpush doctor -config ":      "", // a file
		"sealpush run -quiet -- comple": "complete",
	} {
		words := "'" + strings.Join(strings.Split(line, " "), "' '") + "'"
		cmd := exec.CommandContext(t.Context(), bash, "-c", script+
			"COMP_WORDS=("+words+"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _sealpush; echo ${COMPREPLY[*]}")
		cmd.Env = []string{"PATH="} // bash's own commands alone
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: completes to %q, %v; want %q", line, got, err, want)
		}
	}
}
