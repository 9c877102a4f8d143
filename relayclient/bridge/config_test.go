package bridge_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/secret"
)

// load writes text to a common.toml and loads it.
func load(tb testing.TB, text string) (bridge.Config, error) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "common.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return bridge.LoadConfig(path)
}

const otherTables = `# what else a bridge is told
name = "home"

[network]
url = 7
port = 3001

[[agents]]
client_secret = ["not", "ours"]

`

const pushRelayTable = `[push_relay]
url = "https://push.example" # the relay
token_url = "https://token.example"
client_id = "bridge-home-office"
client_secret = "hunter2-the-secret"
`

var config = bridge.Config{
	URL:          "https://push.example",
	TokenURL:     "https://token.example",
	ClientID:     "bridge-home-office",
	ClientSecret: secret.New("hunter2-the-secret"),
}

// diff compares field by field, for a secret prints as a placeholder.
func diff(want, got bridge.Config) string {
	fields := func(c bridge.Config) []string {
		return []string{c.URL, c.TokenURL, c.ClientID, c.ClientSecret.Reveal()}
	}
	return cmp.Diff(fields(want), fields(got))
}

func TestLoadConfig(t *testing.T) {
	without := func(field string) bridge.Config {
		c := config
		switch field {
		case "url":
			c.URL = ""
		case "client_secret":
			c.ClientSecret = secret.Text{}
		}
		return c
	}
	tests := []struct {
		name, text string
		want       bridge.Config
		enabled    bool
	}{
		{"complete", otherTables + pushRelayTable, config, true},
		{"before others", pushRelayTable + "\n[z]\nulr = 1\n[z.push_relay]\nulr = 2\n", config, true},
		{"Windows line ends", strings.ReplaceAll(pushRelayTable, "\n", "\r\n"), config, true},
		{"inline", `push_relay = { url = "https://push.example", token_url = "https://token.example", client_id = "bridge-home-office", client_secret = "hunter2-the-secret" }`, config, true},
		{"dotted", `push_relay.url = "https://push.example"`, bridge.Config{URL: "https://push.example"}, false},
		{"no table", otherTables, bridge.Config{}, false},
		{"empty file", "", bridge.Config{}, false},
		{"another case", strings.Replace(pushRelayTable, "push_relay", "Push_Relay", 1), bridge.Config{}, false},
		{"empty url", strings.Replace(pushRelayTable, "https://push.example", "", 1), without("url"), false},
		{"no secret", strings.Replace(pushRelayTable, "client_secret", "#", 1), without("client_secret"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := load(t, tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if got.Enabled() != tt.enabled {
				t.Errorf("Enabled = %v", got.Enabled())
			}
		})
	}
}

func TestLoadConfigErrors(t *testing.T) {
	tests := []struct {
		name, text string
		line       int
		problem    string
	}{
		{"misspelt key", otherTables + "[push_relay]\n\nulr = \"hunter2\"\n", 13, `unknown key "ulr"`},
		{"key in another case", "[push_relay]\nURL = \"https://push.example\"\n", 2, `unknown key "URL"`},
		{"misspelt key after others", pushRelayTable + "client-id = \"hunter2\"\n", 6, `unknown key "client-id"`},
		{"misspelt dotted key", "a = 1\npush_relay.ulr = \"hunter2\"\n", 2, `unknown key "ulr"`},
		{"misspelt quoted key", "[push_relay]\n\"u.l\" = \"hunter2\"\n", 2, `unknown key "u.l"`},
		{"misspelt inline key", "a = 1\n\npush_relay = { ulr = \"hunter2\" }\n", 3, `unknown key "ulr"`},
		{"unknown sub-table", pushRelayTable + "[push_relay.extra]\na = 1\n", 6, `unknown key "extra"`},
		{"table where a string belongs", "[push_relay.url]\na = \"hunter2\"\n", 1, "url must be a string"},
		{"number where a string belongs", "[push_relay]\nclient_id = \"a\"\nclient_secret = 424242424242424242\n", 3, "client_secret must be a string"},
		{"list where a string belongs", "[push_relay]\nclient_secret = [\"hunter2\"]\n", 2, "client_secret must be a string"},
		{"not a table", "\npush_relay = \"hunter2\"\n", 2, "must be a table"},
		{"list of tables", "[[push_relay]]\nurl = \"\"\n", 1, "must be a table"},
		{"URL without a scheme", "[push_relay]\nurl = \"push.example\"\n", 2, "url must start with https://"},
		{"URL with a password", "[push_relay]\nclient_id = \"a\"\ntoken_url = \"https://u:hunter2@token.example\"\n", 3, "token_url must carry no user name"},
		{"not TOML", "a = 1\n{\"push_relay\": 1}\n", 2, "not valid TOML"},
		{"unquoted secret", "[push_relay]\nclient_secret = hunter2\n", 2, "not valid TOML"},
		{"unquoted number-like secret", "[push_relay]\nclient_secret = 42hunter2\n", 2, "not valid TOML"},
		{"open string", "[push_relay]\nclient_secret = \"hunter2\n", 2, "not valid TOML"},
		{"bad escape", "[push_relay]\nclient_secret = \"hunter2\\x\"\n", 2, "not valid TOML"},
		{"given twice", "[push_relay]\nurl = \"\"\nurl = \"hunter2\"\n", 3, "not valid TOML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := load(t, tt.text)
			failed, ok := errors.AsType[*bridge.ConfigError](err)
			if !ok {
				t.Fatalf("error %v, want a ConfigError", err)
			}
			if failed.Line != tt.line || !strings.Contains(err.Error(), fmt.Sprintf("common.toml:%d: ", tt.line)) {
				t.Errorf("line %d, want %d: %v", failed.Line, tt.line, err)
			}
			if !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %q, want one that says %q", err, tt.problem)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, err, failed); strings.Contains(text, "hunter2") || strings.Contains(text, "424242424242424242") {
				t.Errorf("error quotes the file: %s", text)
			}
			if diff(bridge.Config{}, got) != "" {
				t.Error("a configuration came with the error")
			}
		})
	}
}

// A name that is nearly ours is named, whether push is enabled or not.
func TestNamesLikeOursAreNamed(t *testing.T) {
	for _, tt := range []struct{ text, named string }{
		{"[push-relay]\nurl = \"https://push.example\"\n", "[push-relay]"},
		{"[Push_Relay]\nclient_id = \"hunter2\"\n", "[Push_Relay]"},
		{"[pushrelay]\n", "[pushrelay]"},
		{"[push.relay]\n", "[push.relay]"},
		{"[push_realy]\n", "[push_realy]"},
		{"[push_relays]\n", "[push_relays]"},
		{"push_relay_url = \"https://push.example\"\n", "[push_relay_url]"},
		{"client_id = \"hunter2\"\nclient-secret = \"hunter2\"\n", "[client_id client-secret]"},
		{"[PUSH_RELAY]\n" + pushRelayTable, "[PUSH_RELAY]"},
		{otherTables + pushRelayTable, ""},
		{otherTables + "[push]\n[relay]\n[pull_request]\n[brush_delay]\nurl = 1\n", ""},
	} {
		var log strings.Builder
		config, err := load(t, tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		if _, err := bridge.New(config, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))); err != nil {
			t.Error(err)
		}
		line := ""
		for one := range strings.Lines(log.String()) {
			if strings.Contains(one, "level=WARN") {
				line = one
			}
		}
		if (line != "") != (tt.named != "") || !strings.Contains(line, tt.named) || strings.Contains(log.String(), "hunter2") {
			t.Errorf("%q: log\n%s", tt.text, &log)
		}
	}
}

func TestLoadConfigMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nowhere.toml")
	if _, err := bridge.LoadConfig(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}

// Whatever a file holds, it is a configuration that New takes or an error that names the file; and the secret in it is
// not quoted.
func FuzzLoadConfig(f *testing.F) {
	f.Add(otherTables, "hunter2")
	f.Add("[push_relay]\nurl = \"https://push.example\"\n", `"hunter2"`)
	f.Add("[push_relay]\nulr = 1\n", `hunter2`)
	f.Add("push_relay = { url = 1 }\n", "'''hunter2")
	f.Add("[[push_relay]]\n[push_relay.url]\nx = 1979-05-27\n", `["hunter2"]`)
	f.Fuzz(func(t *testing.T, text, value string) {
		if strings.Contains(text, "hunter2") || strings.ContainsAny(value, "\n=") {
			return // then it may be a key
		}
		path := filepath.Join(t.TempDir(), "common.toml")
		for _, text := range []string{text, text + "client_secret = " + value + "hunter2\n", text + "[push_relay]\nclient_secret = " + value} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := bridge.LoadConfig(path)
			if err == nil {
				if _, err := bridge.New(c, quiet); err != nil {
					t.Errorf("New refused what LoadConfig took: %v", err)
				}
				continue
			}
			failed, ok := errors.AsType[*bridge.ConfigError](err)
			if !ok || failed.Path != path || diff(bridge.Config{}, c) != "" {
				t.Errorf("config %v, error %#v", c, err)
			}
			if printed := fmt.Sprintf("%v %#v", err, failed); strings.Contains(printed, "hunter2") {
				t.Errorf("error quotes the secret: %s", printed)
			}
		}
	})
}

func TestLoadConfigTooLarge(t *testing.T) {
	if _, err := load(t, pushRelayTable+strings.Repeat("#", 1<<20)); err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
	if got, err := load(t, pushRelayTable+strings.Repeat("#", 1<<19)); err != nil || !got.Enabled() {
		t.Errorf("half of it: got %v, %v", got, err)
	}
}
