package sealpush_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sealpush/sealpush/"

// arrows says which packages of ours each package may import, tests apart;
// every package may import secret.
// Whoever adds a package says here where it stands.
var arrows = map[string][]string{
	"":                                  {},
	"secret":                            {},
	"seal":                              {},
	"integrations/alertmanager":         {"payload", "relayclient", "relayclient/pairing", "internal/input", "internal/requestbody"},
	"integrations/slog":                 {"payload", "relayclient"},
	"integrations/notify":               {"payload", "relayclient"},
	"integrations/internal/jobpage":     {"payload", "relayclient"},
	"integrations/internal/pagetest":    {"secret", "payload", "relay", "relayclient", "relayclient/pairing", "relayclient/relaytest"},
	"payload":                           {},
	"docs":                              {},
	"internal/addresslimit":             {},
	"internal/answer":                   {},
	"internal/crossorigin":              {},
	"internal/input":                    {},
	"internal/clock":                    {},
	"internal/faults":                   {"seal", "payload", "relayclient", "relayclient/pairing"},
	"internal/hostile":                  {"payload", "pushauth/verify", "relay", "relayclient", "relayclient/pairing", "seal"},
	"internal/hpkejs":                   {"seal"},
	"internal/requestbody":              {},
	"examples/programtest":              {},
	"internal/sqlretry":                 {},
	"internal/sqltable":                 {},
	"internal/state":                    {},
	"internal/retry":                    {"internal/answer"},
	"internal/regular":                  {},
	"internal/transport":                {},
	"pushauth":                          {"secret", "internal/answer", "internal/clock", "internal/input", "internal/retry", "internal/transport"},
	"pushauth/verify":                   {"internal/answer", "internal/clock", "internal/transport"},
	"relayclient/pairing":               {"seal", "internal/clock", "internal/crossorigin", "internal/regular", "internal/sqltable"},
	"relayclient/pairing/qr":            {},
	"relayclient/pairing/storetest":     {"seal", "relayclient/pairing"},
	"relayclient":                       {"seal", "payload", "relayclient/pairing", "internal/answer", "internal/clock", "internal/input"},
	"relayclient/bridge":                {"pushauth", "secret", "internal/answer", "internal/clock", "internal/input", "internal/regular", "internal/retry", "internal/transport"},
	"relay":                             {"secret", "seal", "pushauth/verify", "internal/addresslimit", "internal/crossorigin", "internal/requestbody", "internal/sqlretry", "internal/sqltable"},
	"relay/statetest":                   {"relay", "secret"},
	"relay/apns":                        {"secret", "seal", "relay", "internal/answer"},
	"relay/webpush":                     {"secret", "seal", "relay", "internal/answer", "internal/addresslimit", "internal/crossorigin", "internal/requestbody", "internal/sqlretry", "internal/sqltable"},
	"relay/webpush/storetest":           {"secret", "relay/webpush"},
	"relay/webpush/webpushtest":         {},
	"relayclient/relaytest":             {"secret", "seal", "payload", "relay", "relay/apns", "pushauth/verify", "internal/requestbody"},
	"relayclient/relaytest/conformance": {"secret", "internal/answer"},
}

func TestArrowsNeverPointBack(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; listed++ {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := ours(pkg.ImportPath)
		if strings.HasPrefix(name, "examples/") {
			continue // see TestExamplesUseWhatIsExported
		}
		allowed, known := arrows[name]
		if !known {
			t.Errorf("package %q has no place in the house: add it to arrows", name)
		}
		for _, path := range pkg.Imports {
			if strings.HasPrefix(path, module) && path != module+"secret" && !slices.Contains(allowed, ours(path)) {
				t.Errorf("%q must not import %q", name, ours(path))
			}
		}
	}
	if listed < 8 {
		t.Errorf("go list found %d packages", listed)
	}
}

// Examples are there to be copied into other modules, which cannot import what is internal to this one. Their tests are
// read, too.
func TestExamplesUseWhatIsExported(t *testing.T) {
	for _, dir := range []string{"examples/quickstart", "examples/daemon", "examples/bridge"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-C", dir, "-f",
			`{{range .Imports}}{{println .}}{{end}}{{range .TestImports}}{{println .}}{{end}}{{range .XTestImports}}{{println .}}{{end}}`, "./...")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		if !strings.Contains(string(out), module) {
			t.Errorf("%s imports nothing of ours", dir)
		}
		for path := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(path, module) && slices.Contains(strings.Split(path, "/"), "internal") {
				t.Errorf("%s imports %s", dir, path)
			}
		}
	}
}

// ours is the path of a package inside the module, empty for its root.
func ours(path string) string {
	return strings.TrimSuffix(strings.TrimPrefix(path+"/", module), "/")
}

// A daemon that only sends has no module in its build for what a relay alone needs.
func TestClientsNeedNoModuleOfRelays(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./relayclient/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "golang.org/x/crypto\n") {
		t.Error("go list names no modules")
	}
	if strings.Contains(string(out), "webpush-go") {
		t.Error("relayclient needs the library that sends Web Push messages")
	}
}
