package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// userConfig writes the user's sealpush.toml, in a home of the test's own.
func userConfig(t *testing.T, content string) {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, home)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "sealpush", configName), content)
}

func TestOrderOfSettings(t *testing.T) {
	userConfig(t, "registry = 'of-the-user'\n")
	expect(t, 0, []string{`registry = "…"`, configName}, "config")
	file := writeFile(t, filepath.Join(t.TempDir(), "other.toml"), "registry = 'of-the-file'\nrelay_url = 'https://relay.example'\n")
	for _, step := range []struct {
		want string
		do   func() []string
	}{
		{"of-the-user", func() []string { return nil }},
		{"of-the-file", func() []string { return []string{"-config", file} }},
		{"of-the-environment", func() []string { t.Setenv("SEALPUSH_REGISTRY", "of-the-environment"); return []string{"-config", file} }},
		{"of-the-command-line", func() []string { return []string{"-config", file, "-registry", "of-the-command-line"} }},
	} {
		s := newSettings(configCommand())
		if err := s.parse(step.do(), os.Getenv); err != nil {
			t.Fatal(err)
		}
		if got := s.flags.Lookup("registry").Value.String(); got != step.want {
			t.Errorf("registry is %s, want %s", got, step.want)
		}
	}
}

func TestSecretsInFiles(t *testing.T) {
	const secret = "https://operator:hunter2@relay.example"
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "url"), secret+"\n")
	config := writeFile(t, filepath.Join(dir, "sealpush.toml"), "relay_url_file = 'url'\n")
	out, code := output(t, tool(t, "config", "-config", config))
	if code != 0 || !strings.Contains(out, `relay_url = "…"  # `+config) || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	t.Setenv("SEALPUSH_RELAY_URL_FILE", filepath.Join(dir, "url"))
	s := newSettings(configCommand())
	if err := s.parse(nil, os.Getenv); err != nil || s.flags.Lookup("relay-url").Value.String() != secret {
		t.Errorf("%v, %s", err, s.flags.Lookup("relay-url").Value)
	}
	t.Setenv("SEALPUSH_RELAY_URL", secret)
	expect(t, exitUsage, []string{"both set"}, "config")
}

func TestConfigurationsThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"not TOML":             {"[", "not valid TOML"},
		"unknown key":          {"registri = 'x'", "unknown key registri: the top of the file takes"},
		"unknown table":        {"[rum]\n", "no command for table [rum]"},
		"unknown key in table": {"[config]\nfoo = 1\n", "unknown key foo in [config]"},
		"list":                 {"registry = ['x']", "registry must be a string"},
		"both":                 {"registry = 'x'\nregistry_file = 'y'\n", "both set"},
		"no such secret":       {"registry_file = 'nowhere'\n", "registry_file: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), configName), c.content)
			expect(t, exitUsage, []string{path, c.says}, "config", "-config", path)
		})
	}
	expect(t, exitUsage, []string{"nowhere.toml"}, "config", "-config", "nowhere.toml")
}
