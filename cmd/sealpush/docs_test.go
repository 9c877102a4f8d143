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
