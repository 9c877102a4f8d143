//go:build linux

package sourcestest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sealpush/sealpush/examples/programtest"
)

// runners run the blocks of a section of docs/sources.md, by its title. The sections share one trial, and run in the order
// of the document: after the first, there are a relay, a phone that shows what it gets, and a shell that knows both. A
// runner takes each block of its section, in order. A section with blocks and without a runner fails the test.
var runners = map[string]func(*testing.T, *trial){
	"Before you start": func(t *testing.T, try *trial) {
		try.run(t, try.next(t))
		pair := try.next(t)
		pair.text = strings.TrimSpace(pair.text) + "; echo pair has ended\n" // until then, it reads what is typed
		try.start(t, pair)
		try.terminal.program.Await(t, "Control-C stops it")
		try.phone = newTerminal(try.t, try.home)
		try.start(t, try.next(t))
		fingerprint := try.phone.program.Await(t, `^Fingerprint  (\S+)`)[1]
		try.terminal.program.Await(t, `(?s)Fingerprint  `+fingerprint+`.*Type yes`)
		try.terminal.write(t, "yes")
		try.terminal.program.Await(t, "The relay accepted a test alert")
		try.terminal.program.Await(t, "^pair has ended$")
		try.phone.program.Await(t, "TEST     test on monitor")
	},
	"Prometheus Alertmanager": func(t *testing.T, try *trial) {
		need(t, "prometheus-alertmanager", installAlertmanager)
		try.run(t, try.next(t))
		try.await(t, "receiver.log", "waiting for webhooks")
		try.run(t, try.next(t))
		try.await(t, "alertmanager.log", "Listening on")
		try.run(t, try.next(t))
		try.shows(t, try.nextOutput(t))
		try.run(t, try.next(t))
		try.shows(t, try.nextOutput(t))
	},
	"Grafana": func(t *testing.T, try *trial) {
		try.run(t, try.next(t))
		try.shows(t, try.nextOutput(t))
	},
	"Metrics of the pager itself": func(t *testing.T, try *trial) {
		try.run(t, try.next(t))
		try.await(t, "measured.log", "^Ready")
		try.run(t, try.next(t))
		try.terminal.program.Await(t, regexp.QuoteMeta(`sealpush_relay_posts_total{result="forwarded"} 0`))
	},
	"On a server":            onAServer,
	"systemd":                systemd,
	"restic and Borg":        resticAndBorg,
	"smartd":                 smartd,
	"mdadm":                  mdadm,
	"apcupsd":                apcupsd,
	"unattended-upgrades":    unattendedUpgrades,
	"GitHub Actions":         githubActions,
	"GitLab CI":              gitlabCI,
	"Kubernetes":             kubernetes,
	"log/slog":               inAGoProgram,
	"robfig/cron and gocron": inAGoProgram,
	"nikoksr/notify":         inAGoProgram,
}

func TestSourcesBlocks(t *testing.T) {
	began := time.Now()
	try := newTrial(t)
	for _, section := range readSections(t) {
		if len(section.blocks) == 0 {
			continue
		}
		runner := runners[section.title]
		if runner == nil {
			t.Errorf("no test runs the blocks of section %q: add it to runners", section.title)
			continue
		}
		if !t.Run(section.title, func(t *testing.T) {
			try.blocks = section.blocks
			runner(t, try)
			if len(try.blocks) > 0 {
				t.Errorf("the section's test does not run\n%s", try.blocks[0].text)
			}
		}) {
			t.FailNow() // the next one would only fail, too
		}
	}
	t.Logf("the document took %v", time.Since(began))
}

// A section is what stands below a heading of the second level.
type section struct {
	title  string
	blocks []block
}

// A block is one of code: what to type into a terminal, or what a phone shows.
type block struct{ language, text string }

func readSections(t *testing.T) []section {
	t.Helper()
	document, err := os.ReadFile("../../docs/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections []section
	var open *block
	for line := range strings.Lines(string(document)) {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{language: strings.TrimSpace(fence)}
		case isFence:
			if last := len(sections) - 1; last >= 0 && open.language != "" {
				sections[last].blocks = append(sections[last].blocks, *open)
			}
			open = nil
		case open != nil:
			open.text += line
		case strings.HasPrefix(line, "## "):
			sections = append(sections, section{title: strings.TrimSpace(line[3:])})
		}
	}
	if len(sections) < 3 {
		t.Fatalf("found %d sections", len(sections))
	}
	return sections
}

// A trial is a user's home, and the terminals in it.
type trial struct {
	t        *testing.T // of the whole document
	home     string
	ports    *strings.Replacer // of the document, for ports that are free
	terminal *terminal
	phone    *terminal // of the played phone, once there is one
	blocks   []block   // of the section that have not been run
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	try := &trial{t: t, home: t.TempDir()}
	var ports []string
	for _, port := range []string{"8080", "9099", "9093", "8081", "9464"} {
		ports = append(ports, "127.0.0.1:"+port, freeAddress(t))
	}
	try.ports = strings.NewReplacer(ports...)
	try.terminal = newTerminal(t, try.home)
	return try
}

// next is the section's next block, which is one to type.
func (try *trial) next(t *testing.T) block {
	t.Helper()
	return try.take(t, "sh", "sh phone")
}

// nextOutput is the section's next block, which is what the phone shows.
func (try *trial) nextOutput(t *testing.T) block {
	t.Helper()
	return try.take(t, "text")
}

// take is the section's next block, which has to be of one of the languages.
func (try *trial) take(t *testing.T, languages ...string) block {
	t.Helper()
	if len(try.blocks) == 0 || !slices.Contains(languages, try.blocks[0].language) {
		t.Fatalf("the section's next block is not of %q: %q", languages, try.blocks)
	}
	b := try.blocks[0]
	try.blocks = try.blocks[1:]
	return b
}

// start types a block: into the phone's terminal if it says so.
func (try *trial) start(t *testing.T, b block) {
	t.Helper()
	at := try.terminal
	if b.language == "sh phone" {
		at = try.phone
	}
	at.write(t, try.ports.Replace(b.text))
}

// run types a block and waits for its end.
func (try *trial) run(t *testing.T, b block) {
	t.Helper()
	try.start(t, b)
	try.terminal.finish(t)
}

// shows waits until the phone shows what a block says, whatever the time.
func (try *trial) shows(t *testing.T, b block) {
	t.Helper()
	const clock = "15:04:05"
	if len(b.text) < len(clock) {
		t.Fatalf("this is not what a phone shows: %s", b.text)
	}
	try.phone.program.Await(t, regexp.QuoteMeta(b.text[len(clock):]))
}

// await waits until a file in ~/pages holds a text.
func (try *trial) await(t *testing.T, name, text string) {
	t.Helper()
	try.terminal.write(t, fmt.Sprintf("timeout 30 grep -q -m1 '%s' <(tail -n +1 -F %s 2>/dev/null)", text, name))
	try.terminal.finish(t)
}

// A terminal is a shell that reads what is typed. Its first command that fails ends it.
type terminal struct {
	program *programtest.Program
	typed   io.Writer
	marks   int
}

// newTerminal opens a shell in the repository, which ends with the test, and with it all that was started from it.
func newTerminal(t *testing.T, home string) *terminal {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", "-eo", "pipefail")
	cmd.Dir = root
	cmd.Env = environment(home)
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // the modules need not be fetched again
		out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(out)))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	typed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := programtest.Start(t, cmd)
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return &terminal{program: p, typed: typed}
}

func (s *terminal) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(s.typed, strings.TrimSuffix(text, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
}

// finish waits until all that was typed has been run.
func (s *terminal) finish(t *testing.T) {
	t.Helper()
	s.marks++
	s.write(t, fmt.Sprintf("echo finished-%d", s.marks))
	s.program.Await(t, fmt.Sprintf(`^finished-%d$`, s.marks))
}
