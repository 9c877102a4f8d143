package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWebFlagsThatAreRefused(t *testing.T) {
	state := t.TempDir()
	notADirectory := writeFile(t, filepath.Join(t.TempDir(), "file"), "")
	notADatabase := t.TempDir()
	writeFile(t, filepath.Join(notADatabase, "relay.db"), strings.Repeat("no database\n", 1000))
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"state without -web":      {[]string{"-state", state}, exitUsage, "-state needs -web"},
		"invitation without -web": {[]string{"-invitation", "1234567890123456"}, exitUsage, "-invitation needs -web"},
		"show without -web":       {[]string{"-show-invitation"}, exitUsage, "-show-invitation needs -web"},
		"short invitation":        {[]string{"-web", "-state", state, "-invitation", "hunter2"}, exitUsage, "at least 16 characters"},
		"URL with a path":         {[]string{"-web", "-state", state, "-url", "https://relay.example/sealpush"}, exitUsage, "must be an origin"},
		"contact":                 {[]string{"-web", "-state", state, "-contact", "ops@example.com"}, exitUsage, "mailto: or https: address"},
		"URL in a local network":  {[]string{"-web", "-state", state, "-url", "https://relay.local"}, exitUsage, "-url is no address on the internet at which push services find you: give one with -contact"},
		"URL of this machine":     {[]string{"-web", "-state", state, "-url", "https://localhost:8443"}, exitUsage, "give one with -contact"},
		"push service":            {[]string{"-web", "-state", state, "-push-service", "https://push.example"}, exitUsage, "WithPushService"},
		"push network":            {[]string{"-web", "-state", state, "-push-network", "10.0.0.1"}, exitUsage, "-push-network takes networks"},
		"proxy":                   {[]string{"-web", "-state", state, "-proxy", "localhost"}, exitUsage, "-proxy takes networks"},
		"origin":                  {[]string{"-web", "-state", state, "-page-origin", "*"}, exitUsage, "origin"},
		"state in a file":         {[]string{"-web", "-state", notADirectory}, exitFailed, "not a directory"},
		"no database":             {[]string{"-web", "-state", notADatabase}, exitFailed, "relay.db cannot be used"},
		"a database's URL":        {[]string{"-web", "-state", "postgres://user:hunter2@%zz/db"}, exitUsage, "URL of -state"},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := output(t, tool(t, append([]string{"relay", "-addr", "127.0.0.1:0"}, test.args...)...))
			if code != test.code || !strings.Contains(out, test.says) || strings.Contains(out, "hunter2") {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
}

// A directory in a configuration is relative to that file; a database's URL is not.
func TestStateOfAConfiguration(t *testing.T) {
	config := writeFile(t, filepath.Join(t.TempDir(), "sealpush.toml"), "[relay]\nweb = true\nstate = \"state\"\npush_service = \"push.example.com, *.push.example.com\"\n")
	s := newSettings(relayCommand())
	if err := s.parse([]string{"-config", config}, os.Getenv); err != nil {
		t.Fatal(err)
	}
	if got, want := s.flags.Lookup("state").Value.String(), filepath.Join(filepath.Dir(config), "state"); got != want {
		t.Errorf("state %s, want %s", got, want)
	}
	if s.flags.Lookup("web").Value.String() != "true" || len(commaSeparated(s.flags.Lookup("push-service").Value.String())) != 2 {
		t.Error("not as the file says")
	}
	if got := stateBeside("/etc/sealpush", "postgres://db/relay"); got != "postgres://db/relay" {
		t.Errorf("%s", got)
	}
}

// Behind a proxy it is the proxy's own entry that counts: whoever asks can write the others.
func TestClientAddresses(t *testing.T) {
	addressOf, err := (&web{proxies: "127.0.0.0/8, ::1/128"}).clientAddress()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                {"198.51.100.7:4711", nil, "198.51.100.7:4711"},
		"not our proxy":           {"198.51.100.7:4711", []string{"192.0.2.1"}, "198.51.100.7:4711"},
		"our proxy":               {"127.0.0.1:4711", []string{"192.0.2.1"}, "192.0.2.1"},
		"our proxy by IPv6":       {"[::1]:4711", []string{"2001:db8::1"}, "2001:db8::1"},
		"as IPv4 in IPv6":         {"[::ffff:127.0.0.1]:4711", []string{"192.0.2.1"}, "192.0.2.1"},
		"made up before":          {"127.0.0.1:4711", []string{"10.0.0.1, 192.0.2.1"}, "192.0.2.1"},
		"made up in another line": {"127.0.0.1:4711", []string{"10.0.0.1", "192.0.2.1"}, "192.0.2.1"},
		"not an address":          {"127.0.0.1:4711", []string{"unknown"}, "127.0.0.1:4711"},
		"nobody":                  {"127.0.0.1:4711", nil, "127.0.0.1:4711"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = test.peer
		for _, line := range test.forwarded {
			r.Header.Add("X-Forwarded-For", line)
		}
		if got := addressOf(r); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestWhereBrowsersSubscribe(t *testing.T) {
	for base, want := range map[string]bool{
		"https://relay.example": true, "http://localhost:8080": true, "http://127.0.0.1:8080": true, "http://[::1]:8080": true,
		"http://relay.example": false, "http://192.168.1.5:8080": false, "http://localhost.example": false,
	} {
		if subscribable(base) != want {
			t.Errorf("%s: %t", base, !want)
		}
	}
}
