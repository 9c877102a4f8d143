package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/tool.md tells of each flag of the two commands that it describes.
func TestGuideNamesEachFlag(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "tool.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []command{runCommand(), sendCommand()} {
		s := newSettings(c)
		s.flags.VisitAll(func(f *flag.Flag) {
			known := s.shared[f.Name] && strings.Contains(string(guide), "\n"+strings.ReplaceAll(f.Name, "-", "_"))
			if !known && !strings.Contains(string(guide), "-"+f.Name+"`") && !strings.Contains(string(guide), "-"+f.Name+" ") {
				t.Errorf("docs/tool.md does not tell of -%s of %s", f.Name, c.name)
			}
		})
	}
}

// Its sealpush.toml is one that the tool reads.
func TestGuidesConfiguration(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "tool.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(guide), "```toml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/tool.md shows no configuration")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "relay-url"), "https://me:hunter2@relay.example/\n")
	config := filepath.Join(dir, "sealpush.toml")
	write(t, config, strings.ReplaceAll(text, "/etc/sealpush/", filepath.ToSlash(dir)+"/"))
	out, code := output(t, tool(t, "config", "-config", config, "run"))
	for _, line := range []string{`relay_url = "…"`, `quiet = "true"`, `late_after = "2h0m0s"`, `host = "web-1"`, `spool = "/var/spool/sealpush"`} {
		if code != 0 || !strings.Contains(out, line+"  # "+config+"\n") {
			t.Errorf("exit code %d, no %s in\n%s", code, line, out)
		}
	}
}

// Each message that the guide explains is one that the two commands print.
func TestGuideQuotesRealMessages(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "tool.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, name := range []string{"run.go", "run_command.go", "run_held.go", "run_outlet.go", "run_state.go", "send.go", "settings.go", "pager.go", "spool.go"} {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(source)
	}
	_, table, _ := strings.Cut(string(guide), "## What it says\n")
	messages := 0
	for line := range strings.Lines(table) {
		message, isRow := strings.CutPrefix(line, "| `")
		if !isRow {
			continue
		}
		messages++
		message, _, _ = strings.Cut(message, "`")
		for piece := range strings.SplitSeq(message, "…") {
			if piece = strings.Trim(piece, " :"); !strings.Contains(sources.String(), piece) {
				t.Errorf("nothing prints %q", piece)
			}
		}
	}
	if messages < 7 {
		t.Errorf("found %d messages", messages)
	}
}
