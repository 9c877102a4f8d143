package main

import (
	"os"
	"path/filepath"
	"strconv"
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
		if got := s.flags.Lookup("registry").Value.String(); filepath.Base(got) != step.want {
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
		"secret of no file":    {"registry_file = 3\n", "registry_file must be a string"},
		"true for a name":      {"spool = true\n", "spool must be a string"},
		"no table":             {"run = 'x'\n", "unknown key run: the settings of that command follow a line [run]"},
		"negative time":        {"[run]\ntimeout = '-5s'\n", "it takes a duration"},
		"no time":              {"[pair]\ntimeout = '0s'\n", "it takes a duration"},
		"large":                {strings.Repeat("# \n", maxConfig/3+1), "has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, filepath.Join(t.TempDir(), configName), c.content)
			expect(t, exitUsage, []string{path, c.says}, "config", "-config", path)
		})
	}
	expect(t, exitUsage, []string{"nowhere.toml"}, "config", "-config", "nowhere.toml")
}

// A mistake in one line costs that line and no other, where a command goes on in spite of it.
func TestWhatIsRightOfAWrongConfiguration(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), configName), "patience = 'soon'\nrelay_url = 'https://relay.example'\nrelay = 'x'\n")
	t.Setenv("SEALPUSH_PRIORITY", "loud")
	c := configCommand()
	c.lenient = true
	s := newSettings(c)
	if err := s.parse([]string{"-registry", "-host", "db1", "-config", path}, os.Getenv); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"patience", "unknown key relay:", "-priority from $SEALPUSH_PRIORITY"} {
		if s.wrong == nil || !strings.Contains(s.wrong.Error(), want) {
			t.Errorf("wrong: %v, want %q", s.wrong, want)
		}
	}
	for name, want := range map[string]string{"relay-url": "https://relay.example", "host": "db1", "patience": "2m0s", "priority": "time-sensitive"} {
		if got := s.flags.Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := s.missing("registry").Error(); !strings.Contains(got, "set registry in sealpush.toml, $SEALPUSH_REGISTRY or -registry") {
		t.Errorf("missing: %s", got)
	}
}

// What people copy comes with line ends and byte order marks.
func TestSecretsLoseTheSpaceAroundThem(t *testing.T) {
	const want, around = "https://relay.example/x", "\ufeff https://relay.example/x\u00a0\r\n"
	dir := t.TempDir()
	file := writeFile(t, filepath.Join(dir, "url"), around)
	config := writeFile(t, filepath.Join(dir, configName), "relay_url = "+strconv.QuoteToGraphic(around)+"\n")
	for name, given := range map[string]struct {
		args []string
		env  map[string]string
	}{
		"on the command line": {args: []string{"-relay-url", around}},
		"in the environment":  {env: map[string]string{"SEALPUSH_RELAY_URL": around}},
		"in a file":           {env: map[string]string{"SEALPUSH_RELAY_URL_FILE": file}},
		"in sealpush.toml":    {args: []string{"-config", config}},
	} {
		s := newSettings(pairCommand())
		if err := s.parse(given.args, func(name string) string { return given.env[name] }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := s.flags.Lookup("relay-url").Value.String(); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWrongTOMLIsNotQuoted(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), configName), "host = 'a'\nrelay_url = falsehunter2\n")
	out, code := output(t, tool(t, "config", "-config", path))
	if code != exitUsage || !strings.Contains(out, "line 2") || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestRegistryOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	for registry, where := range map[string]string{
		registryBeside(dir, "devices.json"):                           filepath.Join(dir, "devices.json"),
		registryBeside(dir, "sqlite:devices.db"):                      filepath.Join(dir, "devices.db"),
		registryBeside(dir, "postgres://me:hunter2@localhost/phones"): "the PostgreSQL database",
	} {
		source, err := openRegistry(registry)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if source.where != where {
			t.Errorf("the registry is %q, want %q", source.where, where)
		}
		source.close()
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("opening made %v, %v", entries, err)
	}
}

func TestWithEmptyValues(t *testing.T) {
	s := newSettings(configCommand())
	s.flags.Bool("switch", false, "")
	for args, want := range map[string]string{
		"-relay-url URL -registry file -- cmd":              "-relay-url URL -registry file -- cmd",
		"-relay-url -registry file -- cmd -host -relay-url": "-relay-url  -registry file -- cmd -host -relay-url",
		"-relay-url -registry -- cmd":                       "-relay-url  -registry  -- cmd",
		"--host -switch cmd -relay-url -x":                  "--host  -switch cmd -relay-url -x",
		"-relay-url=URL -patience -host=-x - -relay-url":    "-relay-url=URL -patience  -host=-x - -relay-url",
		"-relay-url": "-relay-url ",
	} {
		if got := strings.Join(withEmptyValues(s.flags, strings.Split(args, " ")), " "); got != want {
			t.Errorf("%q becomes %q, want %q", args, got, want)
		}
	}
}
