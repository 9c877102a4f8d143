package pairing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

type suiteCase struct {
	Comment      string
	Body         json.RawMessage
	Suite, Error string
}

func suiteCases(t testing.TB) []suiteCase {
	t.Helper()
	var file struct{ Cases []suiteCase }
	if err := json.Unmarshal(vector(t, "pairing_suite.json"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("pairing_suite.json holds no case")
	}
	return file.Cases
}

// The vectors, as a request that is parsed and as one over HTTP into a registry file.
func TestSuiteVectors(t *testing.T) {
	for _, c := range suiteCases(t) {
		t.Run(c.Comment, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "devices.json")
			reg, _ := newRegistry(openFile(t, path))
			rec := serve(handlerOver(t, reg, nil), "POST", "/push/devices", string(c.Body))
			req, err := pairing.ParseRequest(bytes.NewReader(c.Body))
			if c.Error != "" {
				if fe, ok := errors.AsType[*pairing.FieldError](err); !ok || fe.Field != c.Error {
					t.Errorf("got %v, want a FieldError about %q", err, c.Error)
				}
				var answer struct{ Error string }
				if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || rec.Code != 400 || !strings.HasPrefix(answer.Error, c.Error+" ") {
					t.Errorf("got %d %s", rec.Code, rec.Body)
				}
				return
			}
			if err != nil || string(req.PublicKey.Suite()) != c.Suite {
				t.Errorf("parsed a key of suite %q, %v", req.PublicKey.Suite(), err)
			}
			if rec.Code != 201 || !strings.Contains(rec.Body.String(), `"suite":"`+c.Suite+`","sealableHere":true`) {
				t.Errorf("got %d %s", rec.Code, rec.Body)
			}
			if got := readFile(t, path); !strings.Contains(got, `"suite": "`+c.Suite+`"`) {
				t.Errorf("stored as\n%s", got)
			}
			if got := reg.Recipients(t.Context()); len(got.Devices) != 1 || got.Devices[0].PublicKey != req.PublicKey {
				t.Errorf("paged are %v", got.Devices)
			}
		})
	}
}

// foreignFile has one phone of each kind that a node can meet.
func foreignFile(t *testing.T) (path string, wide seal.PublicKey) {
	wide = seal.XWing.GenerateKey().Public()
	path = filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, `{"version":1,"collapseSalt":"s","devices":[
		{"id":"1","name":"narrow","platform":"ios","publicKey":"`+key+`","pushToken":"token 1","suite":""},
		{"id":"2","name":"wide\u001b[2J","platform":"ios","publicKey":"`+wide.String()+`","pushToken":"token 2","suite":"xwing"},
		{"id":"3","name":"future","platform":"ios","publicKey":"AAAA","pushToken":"token 3","suite":"future-1","kept":[1.50]},
		{"id":"4","name":"broken","platform":"ios","publicKey":"no base64!","pushToken":"token 4","suite":null}]}`)
	return path, wide
}

// A phone of a suite that this node cannot seal to costs its own alert only, and nothing of it is lost.
func TestForeignSuites(t *testing.T) {
	path, _ := foreignFile(t)
	narrow, log := newRegistry(openFile(t, path), pairing.WithSuites(seal.X25519))
	list := func() map[string]map[string]any {
		t.Helper()
		rec := serve(handlerOver(t, narrow, nil), "GET", "/push/devices", "")
		var answer struct{ Devices []map[string]any }
		if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || rec.Code != 200 {
			t.Fatalf("got %d %s", rec.Code, rec.Body)
		}
		byID := map[string]map[string]any{}
		for _, d := range answer.Devices {
			byID[d["id"].(string)] = d
		}
		return byID
	}

	for range 3 {
		if got := narrow.Recipients(t.Context()); names(got.Devices) != "narrow" || got.Err != nil {
			t.Fatalf("paged are %v, %v", got.Devices, got.Err)
		}
		devices := list()
		for id, want := range map[string]map[string]any{
			"1": {"suite": "x25519", "sealableHere": true},
			"2": {"suite": "xwing", "sealableHere": false},
			"3": {"suite": "future-1", "sealableHere": false, "publicKey": "AAAA", "fingerprint": seal.Fingerprint([]byte{0, 0, 0})},
			"4": {"suite": "x25519", "sealableHere": false, "publicKey": "no base64!", "fingerprint": nil},
		} {
			for member, value := range want {
				if diff := cmp.Diff(value, devices[id][member]); diff != "" {
					t.Errorf("device %s, %s: -want +got:\n%s", id, member, diff)
				}
			}
		}
	}
	logged := log.take()
	if strings.Count(logged, "cannot seal to their suite") != 1 || !strings.Contains(logged, "future (3, future-1)") ||
		!strings.Contains(logged, "(2, xwing)") || strings.Contains(logged, "broken (") || strings.ContainsRune(logged, 0x1b) {
		t.Errorf("logged\n%s", logged)
	}

	d, err := narrow.Device(t.Context(), "2")
	if err != nil || d.Unusable == nil || !strings.Contains(d.Unusable.Error(), "xwing is switched off") {
		t.Errorf("got %v, unusable: %v, %v", d, d.Unusable, err)
	}
	if err := narrow.Revoke(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	if logged := log.take(); !strings.Contains(logged, "cannot seal to their suite") || strings.Contains(logged, "xwing)") {
		t.Errorf("at a revoke the log says\n%s", logged)
	}
	if got := readFile(t, path); !strings.Contains(got, `"kept": [`) || !strings.Contains(got, `"suite": "future-1"`) {
		t.Errorf("the registry lost something:\n%s", got)
	}
	if err := narrow.Revoke(t.Context(), "3"); err != nil {
		t.Fatal(err)
	}
	if logged := log.take(); strings.Count(logged, "seal to the suite of every paired phone") != 1 || strings.Contains(logged, "cannot seal") {
		t.Errorf("when no such phone is left the log says\n%s", logged)
	}
	narrow.Recipients(t.Context())
	if logged := log.take(); strings.Contains(logged, "suite") {
		t.Errorf("and again\n%s", logged)
	}
}

// Another node, with all suites, pages the phone that this one cannot.
func TestAForeignPhoneIsPagedByANodeThatCan(t *testing.T) {
	path, wide := foreignFile(t)
	reg, log := newRegistry(openFile(t, path))
	got := reg.Recipients(t.Context())
	if len(got.Devices) != 2 || !slices.ContainsFunc(got.Devices, func(d pairing.Device) bool { return d.PublicKey == wide }) {
		t.Errorf("paged are %v", got.Devices)
	}
	if logged := log.take(); !strings.Contains(logged, "[future (3, future-1)]") {
		t.Errorf("logged\n%s", logged)
	}
}

func TestSwitchedOffSuiteIsNotPaired(t *testing.T) {
	store := &memoryStore{}
	reg, _ := newRegistry(store, pairing.WithSuites(seal.X25519))
	wide := seal.XWing.GenerateKey().Public()
	rec := serve(handlerOver(t, reg, nil), "POST", "/push/devices",
		`{"name":"n","platform":"p","pushToken":"t","suite":"xwing","publicKey":"`+wide.String()+`"}`)
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), `"suite must be x25519"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	_, _, err := reg.Pair(t.Context(), pairing.Request{Name: "n", Platform: "p", PushToken: secret.New("t"), PublicKey: wide}, "")
	if fe, ok := errors.AsType[*pairing.FieldError](err); !ok || fe.Field != "suite" || len(store.snapshot.Devices) != 0 {
		t.Errorf("got %v", err)
	}
}

// What a daemon tells an app that asks which suites it can seal to.
func TestSuites(t *testing.T) {
	all, _ := newRegistry(&memoryStore{})
	one, _ := newRegistry(&memoryStore{}, pairing.WithSuites(seal.XWing, seal.XWing))
	if got := all.Suites(); !slices.Equal(got, seal.Suites()) || !slices.IsSorted(got) {
		t.Errorf("all: %v", got)
	}
	if got := one.Suites(); !slices.Equal(got, []seal.Suite{seal.XWing}) {
		t.Errorf("one: %v", got)
	}
	one.Suites()[0] = "scribbled over"
	if got := one.Suites(); got[0] != seal.XWing {
		t.Errorf("got %v", got)
	}
}

// A phone whose record this node could not read pairs again under the same key: its record is mended, not doubled.
func TestPairingAgainGivesARecordItsSuite(t *testing.T) {
	wide := seal.XWing.GenerateKey().Public()
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, `{"devices":[{"id":"1","name":"n","platform":"p","publicKey":" `+wide.String()+`\n","pushToken":"t","suite":"future-1"}]}`)
	reg, _ := newRegistry(openFile(t, path))
	d, created, err := reg.Pair(t.Context(), pairing.Request{Name: "n", Platform: "p", PushToken: secret.New("t"), PublicKey: wide}, "")
	if err != nil || created || d.ID != "1" || d.Suite != seal.XWing || d.Unusable != nil {
		t.Errorf("got %v, created %v, %v", d, created, err)
	}
	if got := reg.Recipients(t.Context()); len(got.Devices) != 1 {
		t.Errorf("paged are %v", got.Devices)
	}
}
