package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
)

func call(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(t.Context(), args, func(name string) string { return env[name] }, &out, &err)
	return code, out.String(), err.String()
}

func TestReferencesPass(t *testing.T) {
	code, stdout, stderr := call(t, nil)
	if code != 0 || stderr != "" || !strings.HasSuffix(stdout, " passed, 0 failed, 0 not stated\n") {
		t.Errorf("exit code %d, %q:\n%s", code, stderr, stdout)
	}
}

func TestBridgeWithItsSecretFromTheEnvironment(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	secret := service.AddClient("suite").Reveal()
	code, stdout, stderr := call(t, map[string]string{"SEALPUSH_CLIENT_SECRET": secret},
		"-json", "-pace", "0", "-token-url", service.TokenURL, "-bridge-url", service.RelayURL, "-client-id", "suite")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, %q", code, stderr)
	}
	var report conformance.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.BridgeRelay != service.RelayURL || len(report.Results) == 0 || report.Count(conformance.Pass) != len(report.Results) {
		t.Errorf("the report is %s", stdout)
	}
	if strings.Contains(stdout, secret) {
		t.Error("the report has the secret")
	}
}

func TestWhereTheTargetIsFrom(t *testing.T) {
	const url = "http://relay.example/relay"
	secret := map[string]string{"SEALPUSH_CLIENT_SECRET": "s3cr3t"}
	for _, tt := range []struct {
		name string
		args []string
		env  map[string]string
		want conformance.Target
	}{
		{"a flag", []string{"-url", url}, map[string]string{"SEALPUSH_RELAY_URL": "http://other.example"},
			conformance.Target{URL: url}},
		{"the environment", nil, map[string]string{"SEALPUSH_RELAY_URL": url}, conformance.Target{URL: url}},
		{"a secret for no bridge", []string{"-url", url}, secret, conformance.Target{URL: url}},
		{"a bridge relay at -url", []string{"-url", url, "-token-url", "http://token.example", "-client-id", "suite"}, secret,
			conformance.Target{URL: url, Bridge: conformance.Bridge{
				TokenURL: "http://token.example", RelayURL: url, ClientID: "suite", ClientSecret: "s3cr3t",
			}}},
	} {
		opts, err := parseFlags(append(tt.args, "-pace", "0"), func(name string) string { return tt.env[name] }, io.Discard)
		if err != nil || opts.target != tt.want {
			t.Errorf("%s: %v, %v", tt.name, opts.target, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	careless := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer careless.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	relay := relaytest.NewRelay()
	defer relay.Close()
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"a MUST that fails", []string{"-url", careless.URL, "-pace", "0"}, exitFailed},
		{"a wrong path", []string{"-url", relay.URL + "/elsewhere"}, exitNoReport},
		{"nobody there", []string{"-url", gone.URL}, exitNoReport},
		{"out of time", []string{"-timeout", "1ns", "-url", careless.URL}, exitNoReport},
		{"not a URL", []string{"-url", "relay"}, exitNoReport},
		{"a bridge without credentials", []string{"-url", careless.URL, "-token-url", careless.URL}, exitNoReport},
		{"no such flag", []string{"-frobnicate"}, exitNoReport},
		{"an argument", []string{careless.URL}, exitNoReport},
	} {
		code, _, stderr := call(t, nil, tt.args...)
		if code != tt.code {
			t.Errorf("%s: exit code %d, want %d: %s", tt.name, code, tt.code, stderr)
		}
		if said := stderr != ""; said != (tt.code == exitNoReport) {
			t.Errorf("%s: standard error says %q", tt.name, stderr)
		}
	}
}

func TestWrongPathIsNotHeldAgainstTheRelay(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	_, stdout, stderr := call(t, nil, "-url", relay.URL+"/elsewhere")
	if !strings.HasSuffix(stdout, "0 passed, 0 failed, 1 not stated\n") || !strings.Contains(stderr, "correct the relay's URL") {
		t.Errorf("it prints\n%sand says %q", stdout, stderr)
	}
}

func TestList(t *testing.T) {
	code, stdout, _ := call(t, nil, "-list")
	for _, check := range conformance.Checks() {
		if !strings.Contains(stdout, "### "+check.Name+"\n") {
			t.Errorf("%s is not in the list", check.Name)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestNoSecretInTheUsage(t *testing.T) {
	env := map[string]string{"SEALPUSH_CLIENT_SECRET": "s3cr3t-1", "SEALPUSH_RELAY_URL": "https://u:s3cr3t-2@relay.example"}
	if _, stdout, stderr := call(t, env, "-help"); strings.Contains(stdout+stderr, "s3cr3t") || stderr == "" {
		t.Errorf("the usage says %s", stdout+stderr)
	}
}
