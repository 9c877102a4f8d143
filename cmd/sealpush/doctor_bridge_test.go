package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"no table":   {"[agent]\nname = 'x'\n", []string{"no [push_relay] table", "Add [push_relay]"}},
		"incomplete": {"[push_relay]\nurl = 'https://push.example'\nclient_id = 'home'\n", []string{"lacks client_secret, token_url"}},
		"misspelt":   {"[push_relay]\nurll = 'https://push.example'\n", []string{":2:", "urll", "Correct the file"}},
		"not TOML":   {"[push_relay\n", []string{"not valid TOML", "Correct the file"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "common.toml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			expectDoctor(t, 1, append(c.says, "FAIL"), "-bridge", path)
		})
	}
	missing := filepath.Join(t.TempDir(), "common.toml")
	expectDoctor(t, 1, []string{missing + " is not there", "yours to write", "[push_relay]", "client_secret ="}, "-bridge", missing)
	if out, _ := doctor(t, "-bridge", missing); strings.Contains(out, "daemon") {
		t.Errorf("of a bridge's configuration it says\n%s", out)
	}
}

// What the doctor offers to paste is a table that works once it is filled in.
func TestTableToPaste(t *testing.T) {
	path := filepath.Join(t.TempDir(), "common.toml")
	if err := os.WriteFile(path, []byte(bridgeTable), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := bridge.LoadConfig(path)
	if err != nil || !config.Enabled() {
		t.Errorf("enabled: %v, %v", config.Enabled(), err)
	}
}

func TestAnswersOfABridgesServices(t *testing.T) {
	const clientID = "bridge-home-office"
	token := func(s *reference, claims map[string]any) relaytest.Answer {
		for name, value := range map[string]any{
			"iss": s.bridge.TokenURL, "sub": clientID, "aud": s.bridge.RelayURL, "exp": time.Now().Add(time.Hour).Unix(), "scope": "push:write",
		} {
			if _, given := claims[name]; !given {
				claims[name] = value
			}
		}
		return relaytest.Answer{Status: 200, Body: `{"access_token":"` + s.bridge.SignToken(claims) + `","token_type":"Bearer","expires_in":3600}`}
	}
	for name, c := range map[string]struct {
		endpoint relaytest.BridgeEndpoint
		answer   func(*reference) relaytest.Answer
		exit     int
		says     []string
	}{
		"wrong secret": {relaytest.EndpointToken, status(401), 1, []string{"answered 401", "Correct client_id and client_secret"}},
		"token service elsewhere": {relaytest.EndpointToken, status(404), 1,
			[]string{"answered 404", "correct the path of token_url"}},
		"token service is something else": {relaytest.EndpointToken, status(200), 1, []string{"is the token URL right?", "no token service"}},
		"token service unreachable": {relaytest.EndpointTokenHealth,
			func(*reference) relaytest.Answer { return relaytest.Answer{Drop: true} }, 1, []string{"FAIL  no answer", "The connection broke"}},
		"no health": {relaytest.EndpointTokenHealth, status(404), 0, []string{"warn  GET /health answers 404", "Look at token_url"}},
		"over on arrival": {relaytest.EndpointToken, func(s *reference) relaytest.Answer {
			return token(s, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})
		}, 1, []string{"warn  the token is over on arrival", "clock"}},
		"short": {relaytest.EndpointToken, func(s *reference) relaytest.Answer {
			return token(s, map[string]any{"exp": time.Now().Add(30 * time.Second).Unix()})
		}, 0, []string{"warn  the token lives for", "one for each notification"}},
		"no JWT": {relaytest.EndpointToken, func(*reference) relaytest.Answer {
			return relaytest.Answer{Status: 200, Body: `{"access_token":"opaque","token_type":"Bearer"}`}
		}, 1, []string{"warn  the token is no JWT", "does not say for how long", "trusts another token service"}},
		"somebody else's": {relaytest.EndpointToken, func(s *reference) relaytest.Answer {
			return token(s, map[string]any{"sub": "bridge-attic"})
		}, 0, []string{`warn  the token is for "bridge-attic"`}},
		"without scope": {relaytest.EndpointToken, func(s *reference) relaytest.Answer {
			return token(s, map[string]any{"scope": "read"})
		}, 1, []string{`the token's scope is "read"`, "with scope push:write"}},
		"for another relay": {relaytest.EndpointToken, func(s *reference) relaytest.Answer {
			return token(s, map[string]any{"aud": "https://push.example"})
		}, 1, []string{`for audience "https://push.example"`, "do url and token_url belong together?"}},
		"relay elsewhere":           {relaytest.EndpointUnregister, status(404), 1, []string{"relay answered 404", "correct the path of url"}},
		"relay is something else":   {relaytest.EndpointUnregister, status(200), 1, []string{"is url right?", "correct url"}},
		"relay in trouble":          {relaytest.EndpointUnregister, status(503), 1, []string{"relay answered 503", "does not work"}},
		"relay does not answer GET": {relaytest.EndpointRelayHealth, status(503), 0, []string{"warn  GET /health answers 503"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup := newSetup(t)
			setup.bridge.Script(c.endpoint, relaytest.Always, c.answer(setup))
			expectDoctor(t, c.exit, c.says, "-bridge", setup.bridgeConfig)
		})
	}
}

func status(code int) func(*reference) relaytest.Answer {
	return func(*reference) relaytest.Answer { return relaytest.Answer{Status: code, Body: "hello"} }
}

func TestNotificationsThatReachNobody(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*relaytest.BridgeService, string)
		exit  int
		says  []string
	}{
		"refused": {func(s *relaytest.BridgeService, token string) { s.FailDevice(token, "TooManyRequests") }, 1,
			[]string{`was not reached: "TooManyRequests"`, "no device was reached"}},
		"dead": {(*relaytest.BridgeService).KillDevice, 1, []string{"whose token is dead", "registers anew"}},
	} {
		t.Run(name, func(t *testing.T) {
			setup := newSetup(t)
			c.spoil(setup.bridge, setup.bridge.Devices("bridge-home-office")[0].Token.Reveal())
			expectDoctor(t, c.exit, c.says, "-page", "-bridge", setup.bridgeConfig)
		})
	}
	t.Run("nobody registered", func(t *testing.T) {
		setup := newSetup(t)
		// A client of the same services that no phone knows.
		text, err := os.ReadFile(setup.bridgeConfig)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		lines[3], lines[4] = `client_id = "attic"`, `client_secret = "`+setup.bridge.AddClient("attic").Reveal()+`"`
		if err := os.WriteFile(setup.bridgeConfig, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		expectDoctor(t, 0, []string{"warn  no phone is registered", "Open the app"}, "-page", "-bridge", setup.bridgeConfig)
	})
}

func TestBridgeURLsThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		url, token func(*relaytest.BridgeService) string
		says       func(*relaytest.BridgeService) []string
	}{
		"swapped": {
			func(s *relaytest.BridgeService) string { return s.TokenURL },
			func(s *relaytest.BridgeService) string { return s.RelayURL },
			func(*relaytest.BridgeService) []string { return []string{"are swapped", "Exchange the two"} },
		},
		"token too many": {
			func(s *relaytest.BridgeService) string { return s.RelayURL },
			func(s *relaytest.BridgeService) string { return s.TokenURL + "/token" },
			func(s *relaytest.BridgeService) []string { return []string{"Set token_url to " + s.TokenURL + ".\n"} },
		},
		"push too many": {
			func(s *relaytest.BridgeService) string { return s.RelayURL + "/push" },
			func(s *relaytest.BridgeService) string { return s.TokenURL },
			func(s *relaytest.BridgeService) []string { return []string{"Set url to " + s.RelayURL + ".\n"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
			defer service.Close()
			config := writeFile(t, filepath.Join(t.TempDir(), "common.toml"), fmt.Sprintf(
				"[push_relay]\nurl = %q\ntoken_url = %q\nclient_id = 'home'\nclient_secret = %q\n",
				c.url(service), c.token(service), service.AddClient("home").Reveal()))
			expectDoctor(t, 1, c.says(service), "-bridge", config)
		})
	}
	empty := writeFile(t, filepath.Join(t.TempDir(), "common.toml"), "\n")
	expectDoctor(t, 1, []string{"common.toml is empty", "[push_relay]"}, "-bridge", empty)
}
