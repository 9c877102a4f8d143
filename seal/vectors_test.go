package seal_test

import (
	"bytes"
	"crypto/hpke"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/seal"
)

// loadVectors reads a vector file strictly: a member that no test looks at is a
// case that nobody checks.
func loadVectors(tb testing.TB, name string, into any) {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", name))
	if err != nil {
		tb.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
}

type boxVectors struct {
	Open []struct {
		PrivateKey          []byte `json:"private_key"`
		PublicKey           string `json:"public_key"`
		EphemeralPrivateKey []byte `json:"ephemeral_private_key"`
		Plaintext           []byte `json:"plaintext"`
		Ciphertext          string `json:"ciphertext"`
	} `json:"open"`
	Refuse []struct {
		Comment    string `json:"comment"`
		PrivateKey []byte `json:"private_key"`
		PublicKey  string `json:"public_key"`
		Ciphertext string `json:"ciphertext"`
	} `json:"refuse"`
}

func loadBoxes(tb testing.TB) boxVectors {
	tb.Helper()
	var v boxVectors
	loadVectors(tb, "sealed_box.json", &v)
	if len(v.Open) == 0 || len(v.Refuse) == 0 {
		tb.Fatal("sealed_box.json holds no case")
	}
	return v
}

func TestBoxVectors(t *testing.T) {
	for _, c := range loadBoxes(t).Open {
		private, err := seal.NewPrivateKey(c.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		public, err := seal.ParsePublicKey(c.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		if private.Public() != public {
			t.Errorf("public half is %v, want %v", private.Public(), public)
		}

		got, err := seal.Open(private, c.Ciphertext)
		if err != nil || !bytes.Equal(got, c.Plaintext) {
			t.Errorf("Open of a box of %d bytes: %d bytes, %v", len(c.Plaintext), len(got), err)
		}
		text, err := seal.SealWithEphemeral([32]byte(c.EphemeralPrivateKey), public, c.Plaintext)
		if err != nil || text != c.Ciphertext {
			t.Errorf("sealing %d bytes with the known ephemeral key: %v\n got %s\nwant %s", len(c.Plaintext), err, text, c.Ciphertext)
		}
		fresh, err := seal.Seal(public, c.Plaintext)
		if err != nil {
			t.Fatal(err)
		}
		if fresh == c.Ciphertext || len(fresh) != len(c.Ciphertext) {
			t.Errorf("a fresh box must differ from the vector and have its length")
		}
		if again, err := seal.Open(private, fresh); err != nil || !bytes.Equal(again, c.Plaintext) {
			t.Errorf("opening a fresh box: %v", err)
		}
	}
}

func TestRefusedBoxVectors(t *testing.T) {
	for _, c := range loadBoxes(t).Refuse {
		t.Run(c.Comment, func(t *testing.T) {
			private, err := seal.NewPrivateKey(c.PrivateKey)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := seal.Open(private, c.Ciphertext); !errors.Is(err, seal.ErrOpen) || got != nil {
				t.Errorf("Open = %q, %v; want ErrOpen", got, err)
			}
		})
	}
}

type keyCase struct {
	Comment     string `json:"comment"`
	Input       string `json:"input"`
	Canonical   string `json:"canonical"`
	Fingerprint string `json:"fingerprint"`
	Error       bool   `json:"error"`
}

func loadKeys(tb testing.TB) []keyCase {
	tb.Helper()
	var v struct {
		Cases []keyCase `json:"cases"`
	}
	loadVectors(tb, "public_key.json", &v)
	if len(v.Cases) == 0 {
		tb.Fatal("public_key.json holds no case")
	}
	return v.Cases
}

func TestPublicKeyVectors(t *testing.T) {
	for _, c := range loadKeys(t) {
		t.Run(c.Comment, func(t *testing.T) {
			key, err := seal.ParsePublicKey(c.Input)
			var unmarshalled seal.PublicKey
			if textErr := unmarshalled.UnmarshalText([]byte(c.Input)); (textErr == nil) != (err == nil) {
				t.Errorf("ParsePublicKey says %v, UnmarshalText says %v", err, textErr)
			}
			if unmarshalled != key {
				t.Errorf("UnmarshalText read %v, ParsePublicKey %v", unmarshalled, key)
			}
			if c.Error {
				if !errors.Is(err, seal.ErrInvalidKey) {
					t.Fatalf("error is %v, want ErrInvalidKey", err)
				}
				if text := strings.TrimSpace(c.Input); len(text) > 8 && strings.Contains(err.Error(), text) {
					t.Errorf("the error quotes the text: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if key.String() != c.Canonical || key.Fingerprint() != c.Fingerprint {
				t.Errorf("got %v %v, want %v %v", key, key.Fingerprint(), c.Canonical, c.Fingerprint)
			}
			if again, err := seal.NewPublicKey(key.Bytes()); err != nil || again != key {
				t.Errorf("NewPublicKey(Bytes) = %v, %v", again, err)
			}
			if text, err := key.MarshalText(); err != nil || string(text) != c.Canonical {
				t.Errorf("MarshalText = %s, %v", text, err)
			}
		})
	}
}

type xwingCase struct {
	Seed       []byte `json:"seed"`
	PublicKey  string `json:"publicKey"`
	Plaintext  []byte `json:"plaintext"`
	Ciphertext string `json:"ciphertext"`
	Overhead   int    `json:"overhead"`
}

func loadXWing(tb testing.TB) []xwingCase {
	tb.Helper()
	var v struct {
		Comment string      `json:"comment"`
		Cases   []xwingCase `json:"cases"`
	}
	loadVectors(tb, "xwing_box.json", &v)
	if len(v.Cases) == 0 {
		tb.Fatal("xwing_box.json holds no case")
	}
	return v.Cases
}

// The boxes were made by another implementation. Each is opened by Open and by the
// standard library's HPKE, and so is a fresh box; one changed anywhere is refused.
func TestXWingVectors(t *testing.T) {
	for _, c := range loadXWing(t) {
		private, err := seal.XWing.NewPrivateKey(c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		public, err := seal.XWing.ParsePublicKey(c.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		if private.Public() != public || public.String() != c.PublicKey || !bytes.Equal(private.Bytes(), c.Seed) {
			t.Errorf("the halves of the key are %v and %x", private.Public(), private.Bytes())
		}
		if again, err := seal.XWing.NewPublicKey(public.Bytes()); err != nil || again != public {
			t.Errorf("NewPublicKey(Bytes): %v", err)
		}
		if c.Overhead != seal.XWing.Overhead() {
			t.Errorf("overhead is %d, want %d", seal.XWing.Overhead(), c.Overhead)
		}
		if got, err := seal.Open(private, c.Ciphertext); err != nil || !bytes.Equal(got, c.Plaintext) {
			t.Errorf("Open of a box of %d bytes: %d bytes, %v", len(c.Plaintext), len(got), err)
		}
		fresh, err := seal.Seal(public, c.Plaintext)
		if err != nil {
			t.Fatal(err)
		}
		if fresh == c.Ciphertext || len(fresh) != len(c.Ciphertext) {
			t.Errorf("a fresh box must differ from the vector and have its length")
		}
		if again, err := seal.Open(private, fresh); err != nil || !bytes.Equal(again, c.Plaintext) {
			t.Errorf("opening a fresh box: %v", err)
		}
		for _, text := range []string{c.Ciphertext, fresh} {
			if got := openWithHPKE(t, c.Seed, text); !bytes.Equal(got, c.Plaintext) {
				t.Errorf("crypto/hpke opens %d bytes, want %d", len(got), len(c.Plaintext))
			}
		}
		box, err := base64.StdEncoding.DecodeString(c.Ciphertext)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1087, 1088, 1119, 1120, len(box) - 16, len(box) - 1} { // of the ML-KEM ciphertext, X25519 key, plaintext, tag
			box[i] ^= 1
			if got, err := seal.Open(private, base64.StdEncoding.EncodeToString(box)); !errors.Is(err, seal.ErrOpen) || got != nil {
				t.Errorf("byte %d changed: %q, %v; want ErrOpen", i, got, err)
			}
			box[i] ^= 1
		}
		for _, size := range []int{0, 1119, 1120, 1135, len(box) - 1} {
			if got, err := seal.Open(private, base64.StdEncoding.EncodeToString(box[:size])); !errors.Is(err, seal.ErrOpen) || got != nil {
				t.Errorf("cut to %d bytes: %q, %v; want ErrOpen", size, got, err)
			}
		}
	}
}

// openWithHPKE opens a box with the identifiers that the protocol's document names.
func openWithHPKE(tb testing.TB, seed []byte, text string) []byte {
	tb.Helper()
	kem, err := hpke.NewKEM(0x647a)
	if err != nil {
		tb.Fatal(err)
	}
	kdf, err := hpke.NewKDF(1)
	if err != nil {
		tb.Fatal(err)
	}
	aead, err := hpke.NewAEAD(2)
	if err != nil {
		tb.Fatal(err)
	}
	key, err := kem.NewPrivateKey(seed)
	if err != nil {
		tb.Fatal(err)
	}
	box, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	recipient, err := hpke.NewRecipient(box[:1120], key, kdf, aead, []byte("cronstable-push-xwing"))
	if err != nil {
		tb.Fatal(err)
	}
	plaintext, err := recipient.Open(nil, box[1120:])
	if err != nil {
		tb.Fatal(err)
	}
	return plaintext
}
