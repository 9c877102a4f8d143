package pairing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
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

// hostileSuites are values of "suite" in JSON that are outside the grammar of its identifiers, by name.
var hostileSuites = map[string]string{
	"17 characters": `"x25519-and-more-1"`, "upper case": `"X25519"`, "number": `25519`, "boolean": `true`,
	"object": `{}`, "array": `["x25519"]`, "space": `" "`, "space around": `" x25519"`, "underscore": `"x_25519"`, "hyphen": `"-a"`,
}

func TestHostileSuitesAreNotPaired(t *testing.T) {
	hostile := maps.Clone(hostileSuites)
	hostile["empty"] = `""`
	for name, value := range hostile {
		path := filepath.Join(t.TempDir(), "devices.json")
		reg, _ := newRegistry(openFile(t, path))
		body := `{"name":"n","platform":"p","pushToken":"t","publicKey":"` + key + `","suite":` + value + `}`
		rec := serve(handlerOver(t, reg, nil), "POST", "/push/devices", body)
		if rec.Code != 400 || !strings.Contains(rec.Body.String(), `"error":"suite must be `) {
			t.Errorf("%s: got %d %s", name, rec.Code, rec.Body)
		}
		if got := reg.Recipients(t.Context()); len(got.Devices) != 0 {
			t.Errorf("%s: paired %v", name, got.Devices)
		}
	}
	reg, _ := newRegistry(openFile(t, filepath.Join(t.TempDir(), "devices.json")))
	rec := serve(handlerOver(t, reg, nil), "POST", "/push/devices",
		`{"name":"n","platform":"p","pushToken":"t","publicKey":"`+key+`","suite":null}`)
	if rec.Code != 201 || !strings.Contains(rec.Body.String(), `"suite":"x25519","sealableHere":true`) {
		t.Errorf("null: got %d %s", rec.Code, rec.Body)
	}
}

// A record with such a suite costs its own alert, is listed, and stays as it is when the file is written again.
func TestHostileSuitesInARegistryFile(t *testing.T) {
	records := maps.Clone(hostileSuites)
	records["empty"], records["null"] = `""`, `null`
	var devices []string
	for id, value := range records {
		devices = append(devices, `{"id":"`+id+`","name":"`+id+`","platform":"p","pushToken":"token `+id+`","publicKey":"`+
			seal.GenerateKey().Public().String()+`","suite":`+value+`}`)
	}
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, `{"collapseSalt":"s","devices":[`+strings.Join(devices, ",")+`]}`)
	reg, _ := newRegistry(openFile(t, path))
	request := pairing.Request{Name: "new", Platform: "p", PushToken: secret.New("t"), PublicKey: seal.GenerateKey().Public()}
	if _, _, err := reg.Pair(t.Context(), request, ""); err != nil {
		t.Fatal(err)
	}

	var paged []string
	for _, d := range reg.Recipients(t.Context()).Devices {
		paged = append(paged, d.Name)
	}
	slices.Sort(paged)
	if diff := cmp.Diff([]string{"empty", "new", "null"}, paged); diff != "" {
		t.Errorf("paged: -want +got:\n%s", diff)
	}

	rec := serve(handlerOver(t, reg, nil), "GET", "/push/devices", "")
	var listing struct {
		Devices []struct {
			ID           string
			SealableHere bool
		}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &listing); err != nil || len(listing.Devices) != len(records)+1 {
		t.Fatalf("%v: listed are %s", err, rec.Body)
	}
	for _, d := range listing.Devices {
		if _, hostile := hostileSuites[d.ID]; d.SealableHere == hostile {
			t.Errorf("%s: listed with sealableHere %t", d.ID, d.SealableHere)
		}
	}

	var stored struct {
		Devices []struct {
			ID    string
			Suite json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, path)), &stored); err != nil {
		t.Fatal(err)
	}
	for _, d := range stored.Devices {
		var compact bytes.Buffer
		if err := json.Compact(&compact, d.Suite); err != nil {
			t.Fatal(err)
		}
		if want, ok := records[d.ID]; ok && compact.String() != want {
			t.Errorf("%s: stored as %s", d.ID, d.Suite)
		}
	}
	if len(stored.Devices) != len(records)+1 {
		t.Errorf("%d records, want %d", len(stored.Devices), len(records)+1)
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
