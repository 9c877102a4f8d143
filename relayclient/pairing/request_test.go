package pairing_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

type requestCase struct {
	Comment string
	Body    json.RawMessage
	Device  *struct{ Name, Platform, PushToken, PublicKey string }
	Error   string
}

// requestCases are the pairing requests that the deployed daemon was asked about, with its answers.
func requestCases(t testing.TB) []requestCase {
	t.Helper()
	var file struct{ Cases []requestCase }
	if err := json.Unmarshal(vector(t, "pairing.json"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatal("pairing.json holds no case")
	}
	return file.Cases
}

func vector(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseRequestVectors(t *testing.T) {
	for _, c := range requestCases(t) {
		t.Run(c.Comment, func(t *testing.T) {
			req, err := pairing.ParseRequest(bytes.NewReader(c.Body))
			if c.Error != "" {
				fe, ok := errors.AsType[*pairing.FieldError](err)
				if !ok || fe.Field != c.Error {
					t.Fatalf("got error %v, want a FieldError about %q", err, c.Error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if req.Name != c.Device.Name || req.Platform != c.Device.Platform ||
				req.PushToken.Reveal() != c.Device.PushToken || req.PublicKey.String() != c.Device.PublicKey {
				t.Errorf("got %v, want %v", req, *c.Device)
			}
		})
	}
}

const key = "hOYEMlzO8Lq2VdNjR9RwCrNUhCQn3VxBPVVwY+nxWHw="

func body(name, platform, publicKey, pushToken string) string {
	return fmt.Sprintf(`{"name":%q,"platform":%q,"publicKey":%q,"pushToken":%q}`, name, platform, publicKey, pushToken)
}

func TestParseRequestRefuses(t *testing.T) {
	lowOrder := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for _, c := range []struct{ name, body, field string }{
		{"nothing", "", "body"},
		{"half a body", `{"name":"phone"`, "body"},
		{"two bodies", body("n", "p", key, "t") + body("n", "p", key, "t"), "body"},
		{"not UTF-8", "{\"name\":\"\xff\"}", "body"},
		{"too large", `{"name":"` + strings.Repeat("x", pairing.MaxRequest) + `"}`, "body"},
		{"names in another case", strings.ToUpper(`{"name":"x"}`), "name"},
		{"name with a NUL", `{"name":"a\u0000b","platform":"p","publicKey":"` + key + `","pushToken":"t"}`, "name"},
		{"low-order key", body("n", "p", lowOrder, "t"), "publicKey"},
		{"short key", body("n", "p", "AAAA", "t"), "publicKey"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := pairing.ParseRequest(strings.NewReader(c.body))
			fe, ok := errors.AsType[*pairing.FieldError](err)
			if !ok || fe.Field != c.field {
				t.Fatalf("got error %v, want a FieldError about %q", err, c.field)
			}
			if c.field == "publicKey" && !errors.Is(err, seal.ErrInvalidKey) {
				t.Errorf("%v is not seal.ErrInvalidKey", err)
			}
		})
	}
}

func TestParseRequestReadsNoMoreThanItMay(t *testing.T) {
	const size = 10 << 20
	r := &io.LimitedReader{R: endless{}, N: size}
	if _, err := pairing.ParseRequest(r); err == nil {
		t.Fatal("a body of 10 MB was accepted")
	}
	if read := size - r.N; read > 2*pairing.MaxRequest {
		t.Errorf("read %d bytes of a body of 10 MB", read)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestParseRequestKeepsTheReadError(t *testing.T) {
	cause := errors.New("connection reset")
	_, err := pairing.ParseRequest(iotest.ErrReader(cause))
	if !errors.Is(err, cause) {
		t.Errorf("%v does not wrap what went wrong", err)
	}
}

func TestParseRequestTrimsAsTheDaemonDoes(t *testing.T) {
	body := `{"name":"\u001c\u00a0 phone\u2003\u001f\n","platform":"ios","publicKey":" ` + key + ` ","pushToken":"\ttoken "}`
	req, err := pairing.ParseRequest(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if req.Name != "phone" || req.PushToken.Reveal() != "token" {
		t.Errorf("got name %q, token %q", req.Name, req.PushToken.Reveal())
	}
}

// FuzzParseRequest holds every request that is accepted to what the store relies on, and every error to being typed.
func FuzzParseRequest(f *testing.F) {
	for _, c := range requestCases(f) {
		f.Add([]byte(c.Body))
	}
	for _, c := range suiteCases(f) {
		f.Add([]byte(c.Body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := pairing.ParseRequest(bytes.NewReader(data))
		if err != nil {
			if _, ok := errors.AsType[*pairing.FieldError](err); !ok {
				t.Fatalf("%v is not a FieldError", err)
			}
			return
		}
		again, err := json.Marshal(map[string]string{"suite": string(req.PublicKey.Suite()), "name": req.Name, "platform": req.Platform,
			"publicKey": req.PublicKey.String(), "pushToken": req.PushToken.Reveal()})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pairing.ParseRequest(bytes.NewReader(again)); err != nil || !reflect.DeepEqual(got, req) {
			t.Fatalf("what was accepted reads back as %v, %v; was %v", got, err, req)
		}
	})
}
