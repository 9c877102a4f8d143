package pairing

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

func daemonFile(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func testDevice(name string) Device {
	return Device{ID: randomHex(8), Name: name, Platform: "ios", PushToken: secret.New("token-of-" + name),
		PublicKey: seal.GenerateKey().Public(), CreatedAt: time.Date(2026, 7, 23, 14, 0, 0, 0, time.UTC)}
}

// FuzzReadFile holds any file to this: it is refused, or pairing one more phone keeps every member of it, and revoking
// that phone gives the file as if it had only been read and written.
func FuzzReadFile(f *testing.F) {
	f.Add(daemonFile(f))
	f.Add([]byte(`{"version":2,"new":{"é":[1e3,"\ud83d\ude00"]},"devices":[{"publicKey":"x","a":1},2,null]}`))
	added := testDevice("phone")
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := parseDocument(data)
		if err != nil {
			return
		}
		rewritten := rewrite(t, doc)
		if _, created := doc.put(added); !created {
			t.Fatal("a new key was found in the file")
		}
		withPhone := rewrite(t, doc)

		before, after := decodeFile(t, data), decodeFile(t, withPhone)
		devices := after["devices"].([]any)
		after["devices"] = devices[:len(devices)-1]
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("the rewrite lost or changed something (-before +after):\n%s", diff)
		}
		for i, c := range withPhone {
			if c > '~' || c < ' ' && c != '\n' {
				t.Fatalf("byte %d is %#x, not printable ASCII", i, c)
			}
		}
		again, err := parseDocument(withPhone)
		if err != nil {
			t.Fatalf("what was written is not read: %v", err)
		}
		if !again.remove(added.ID) {
			t.Fatal("the phone is not found by its id")
		}
		if diff := cmp.Diff(string(rewritten), string(rewrite(t, again))); diff != "" {
			t.Fatalf("pairing and revoking left something (-before +after):\n%s", diff)
		}
	})
}

// As many phones as a registry takes, with the longest of everything, fit into a file that is read.
func TestAFullRegistryFitsItsFile(t *testing.T) {
	doc := newDocument()
	d := testDevice("")
	d.Name, d.Platform = strings.Repeat("😀", maxName), strings.Repeat("😀", maxPlatform)
	d.PushToken = secret.New(strings.Repeat("😀", maxPushToken))
	d.PublicKey = seal.XWing.GenerateKey().Public()
	d.CreatedBy, d.UpdatedAt, d.UpdatedBy = strings.Repeat("😀", 64), d.CreatedAt, strings.Repeat("😀", 64)
	doc.put(d)
	for range MaxDevices - 1 {
		doc.records = append(doc.records, doc.records[0]) // bytes looks at no keys
	}
	if size := len(rewrite(t, doc)); size > maxFile {
		t.Errorf("%d bytes, more than the %d that are read", size, maxFile)
	}
}

func rewrite(t *testing.T, doc *document) []byte {
	t.Helper()
	data, err := doc.bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodeFile(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	return v
}
