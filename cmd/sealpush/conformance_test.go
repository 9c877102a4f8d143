package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
)

// conformanceRun runs the checks as a process.
func conformanceRun(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := tool(t, append([]string{"conformance"}, args...)...)
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), said.String()
}

func TestReferencesPass(t *testing.T) {
	code, stdout, stderr := conformanceRun(t, nil)
	if code != 0 || stderr != "" || !strings.HasSuffix(stdout, " passed, 0 failed, 0 not stated\n") {
		t.Errorf("exit code %d, %q:\n%s", code, stderr, stdout)
	}
}

func TestBridgeWithItsSecretFromTheEnvironment(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	secret := service.AddClient("suite").Reveal()
	code, stdout, stderr := conformanceRun(t, map[string]string{"SEALPUSH_CONFORMANCE_CLIENT_SECRET": secret},
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

func TestBridgeRelayAtTheSameURL(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	_, stdout, _ := conformanceRun(t, map[string]string{"SEALPUSH_CONFORMANCE_CLIENT_SECRET": service.AddClient("suite").Reveal()},
		"-json", "-pace", "0", "-url", service.RelayURL, "-token-url", service.TokenURL, "-client-id", "suite")
	var report conformance.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.BridgeRelay != service.RelayURL {
		t.Errorf("%v, the bridge relay is %q, want %q", err, report.BridgeRelay, service.RelayURL)
	}
}

// A secret in the environment asks for no bridge to be checked.
func TestSecretWithoutAClient(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	code, _, stderr := conformanceRun(t, map[string]string{
		"SEALPUSH_CONFORMANCE_CLIENT_SECRET": "s3cr3t", "SEALPUSH_CONFORMANCE_URL": relay.URL,
	}, "-pace", "0")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestConformanceExitCodes(t *testing.T) {
	careless := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer careless.Close()
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer down.Close()
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
		{"a push service that is down", []string{"-url", down.URL, "-pace", "0"}, exitNoReport},
		{"nobody there", []string{"-url", gone.URL}, exitNoReport},
		{"out of time", []string{"-timeout", "1ns", "-url", careless.URL}, exitNoReport},
		{"not a URL", []string{"-url", "relay"}, exitNoReport},
		{"a bridge without credentials", []string{"-url", careless.URL, "-token-url", careless.URL}, exitNoReport},
		{"no such flag", []string{"-frobnicate"}, exitNoReport},
		{"an argument", []string{careless.URL}, exitNoReport},
	} {
		code, _, stderr := conformanceRun(t, nil, tt.args...)
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
	_, stdout, stderr := conformanceRun(t, nil, "-url", relay.URL+"/elsewhere")
	if !strings.HasSuffix(stdout, "0 passed, 0 failed, 1 not stated\n") || !strings.Contains(stderr, "correct the relay's URL") {
		t.Errorf("it prints\n%sand says %q", stdout, stderr)
	}
}

func TestList(t *testing.T) {
	code, stdout, _ := conformanceRun(t, nil, "-list")
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
	env := map[string]string{"SEALPUSH_CONFORMANCE_CLIENT_SECRET": "s3cr3t-1", "SEALPUSH_CONFORMANCE_URL": "https://u:s3cr3t-2@relay.example"}
	if _, stdout, stderr := conformanceRun(t, env, "-help"); strings.Contains(stdout+stderr, "s3cr3t") || stdout == "" {
		t.Errorf("the usage says %s", stdout+stderr)
	}
}
