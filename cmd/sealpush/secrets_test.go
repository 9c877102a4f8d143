package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A database that the tool does not know is not taken for a file, whose name would be printed, or made.
func TestUnknownDatabasesAreNotPrinted(t *testing.T) {
	for _, database := range []string{
		"mysql://operator:hunter2@db.example/x", "Postgres://operator:hunter2@db.example/x", "postgres:operator:hunter2@db.example/x",
		"host=db.example password=hunter2",
	} {
		dir := t.TempDir()
		config := writeFile(t, filepath.Join(dir, configName), "registry = '"+database+"'\n[relay]\nstate = '"+database+"'\n")
		for _, args := range [][]string{
			{"run", "-registry", database, "--", os.Args[0], "job", "fail"},
			{"run", "-config", config, "--", os.Args[0], "job", "fail"},
			{"send", "-name", "x", "-registry", database},
			{"devices", "-registry", database}, {"devices", "-config", config},
			{"doctor", "-registry", database}, {"doctor", "-config", config, "-json"},
			{"pair", "-registry", database},
			{"relay", "-web", "-addr", "127.0.0.1:0", "-state", database}, {"relay", "-web", "-addr", "127.0.0.1:0", "-config", config},
		} {
			cmd := tool(t, args...)
			cmd.Dir = dir
			cmd.Env = append(cmd.Env, "SEALPUSH_RELAY_URL=http://127.0.0.1:1")
			out, code := output(t, cmd)
			if code == 0 || strings.Contains(out, "hunter2") || !strings.Contains(out, "no database that is known") {
				t.Errorf("%q: exit code %d: %s", args, code, out)
			}
		}
		if made := entries(t, dir); len(made) != 1 {
			t.Errorf("%s makes %v", database, made)
		}
	}
	expect(t, exitUsage, []string{"takes no parameters"}, "devices", "-registry", "sqlite:phones.db?mode=rwc")
}

// A key in quotes may be the URL itself.
func TestKeysInQuotesAreNotPrinted(t *testing.T) {
	for _, content := range []string{"%s = 1\n", "[run]\n%s = 1\n", "[%s]\na = 1\n"} {
		content = strings.ReplaceAll(content, "%s", `"https://operator:hunter2@relay.example"`)
		path := writeFile(t, filepath.Join(t.TempDir(), configName), content)
		if out, code := output(t, tool(t, "config", "-config", path)); code != exitUsage || strings.Contains(out, "hunter2") {
			t.Errorf("exit code %d: %s", code, out)
		}
	}
}

// What config prints is what a sealpush.toml can hold.
func TestConfigPrintsTOML(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), configName), `host = "a\u0007\u001b\"b"`+"\n")
	printed, _ := output(t, tool(t, "config", "-config", path))
	again := writeFile(t, filepath.Join(t.TempDir(), configName), printed)
	expect(t, 0, []string{strings.TrimSpace(strings.SplitN(printed, "#", 2)[0]) + "  # " + again}, "config", "-config", again)
}
