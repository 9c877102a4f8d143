package seal_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/nacl/box"

	"github.com/sealpush/sealpush/seal"
)

func TestInteroperatesWithAnonymousBox(t *testing.T) {
	private := seal.GenerateKey()
	public, secret := [32]byte(private.Public().Bytes()), [32]byte(private.Bytes())
	message := []byte("disk full on node-a")

	text, err := seal.Seal(private.Public(), message)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := box.OpenAnonymous(nil, raw, &public, &secret); !ok || !bytes.Equal(got, message) {
		t.Errorf("nacl/box does not open our box")
	}

	theirs, err := box.SealAnonymous(nil, message, &public, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := seal.Open(private, base64.StdEncoding.EncodeToString(theirs)); err != nil || !bytes.Equal(got, message) {
		t.Errorf("we do not open nacl/box's box: %v", err)
	}
}

// floor is how many characters of ciphertext every relay takes.
const floor = 3000

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		suite                             seal.Suite
		keySize, overhead, at3000, at3800 int
	}{
		{seal.X25519, 32, 48, 2202, 2802},
		{seal.XWing, 1216, 1136, 1114, 1714},
		{"ed448", 0, 0, 0, 0},
		{"", 0, 0, 0, 0},
	} {
		s := tt.suite
		if s.KeySize() != tt.keySize || s.Overhead() != tt.overhead || s.MaxPlaintext(3000) != tt.at3000 || s.MaxPlaintext(3800) != tt.at3800 {
			t.Errorf("%q: key %d, overhead %d, plaintext %d and %d; want %+v", s, s.KeySize(), s.Overhead(), s.MaxPlaintext(3000), s.MaxPlaintext(3800), tt)
		}
		if tt.keySize == 0 {
			continue
		}
		private := s.GenerateKey()
		for _, limit := range []int{floor, 3001, 3799, 3800, 100_000} {
			full := bytes.Repeat([]byte{0xff}, s.MaxPlaintext(limit))
			text, err := seal.Seal(private.Public(), full)
			if err != nil || len(text) > limit {
				t.Fatalf("%s: sealing %d bytes gives %d characters, %v; at most %d wanted", s, len(full), len(text), err, limit)
			}
			if got, err := seal.Open(private, text); err != nil || !bytes.Equal(got, full) {
				t.Errorf("%s: opening it again: %v", s, err)
			}
			if text, err = seal.Seal(private.Public(), append(full, 0)); err != nil || len(text) <= limit {
				t.Errorf("%s: one byte more than fits %d still takes %d characters, %v", s, limit, len(text), err)
			}
		}
		if room := s.MaxPlaintext(s.Overhead()); room >= 0 {
			t.Errorf("%s: %d bytes fit where not even the overhead does", s, room)
		}
	}
}

func TestUnknownSuites(t *testing.T) {
	for _, suite := range []seal.Suite{"", "X25519", "x25519 ", "kyber", seal.Suite(strings.Repeat("k", 1<<20))} {
		_, parseErr := suite.ParsePublicKey("hOYEMlzO8Lq2VdNjR9RwCrNUhCQn3VxBPVVwY+nxWHw=")
		_, publicErr := suite.NewPublicKey(make([]byte, 32))
		_, privateErr := suite.NewPrivateKey(make([]byte, 32))
		for _, err := range []error{parseErr, publicErr, privateErr} {
			if !errors.Is(err, seal.ErrUnknownSuite) || errors.Is(err, seal.ErrInvalidKey) {
				t.Errorf("%.20q: %v", suite, err)
			} else if len(err.Error()) > 200 || !strings.Contains(err.Error(), "x25519 xwing") {
				t.Errorf("%.20q: the error must be short and say which suites there are: %v", suite, err)
			}
		}
		if key := suite.GenerateKey(); !key.Public().IsZero() || key.Bytes() != nil {
			t.Errorf("%.20q: generated a key", suite)
		}
	}
}

func TestKeysKnowTheirSuite(t *testing.T) {
	for _, suite := range seal.Suites() {
		private := suite.GenerateKey()
		public := private.Public()
		if public.Suite() != suite || len(public.Bytes()) != suite.KeySize() || len(private.Bytes()) != 32 {
			t.Errorf("a key of %s has suite %q, %d and %d bytes", suite, public.Suite(), len(public.Bytes()), len(private.Bytes()))
		}
		again, err := suite.NewPrivateKey(private.Bytes())
		if err != nil || again.Public() != public {
			t.Errorf("%s: a stored private key has another public half: %v", suite, err)
		}
		for _, other := range seal.Suites() {
			if _, err := other.NewPublicKey(public.Bytes()); (err == nil) != (other == suite) {
				t.Errorf("a key of %s read as %s: %v", suite, other, err)
			}
		}
	}
	if suite := (seal.PublicKey{}).Suite(); suite != "" {
		t.Errorf("no key is of suite %q", suite)
	}
	_, err := seal.ParsePublicKey(seal.XWing.GenerateKey().Public().String())
	if err == nil || !strings.Contains(err.Error(), "one of suite xwing has 1216") {
		t.Errorf("a key of another suite: %v", err)
	}
}

// The two halves of an X-Wing key can each be one that nothing may be sealed to.
func TestXWingKeysAreRefusedAtTheDoor(t *testing.T) {
	good := seal.XWing.GenerateKey().Public().Bytes()
	change := func(f func(key []byte)) []byte {
		key := bytes.Clone(good)
		f(key)
		return key
	}
	order8, err := hex.DecodeString("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, want string
		key        []byte
	}{
		{"empty", "0 bytes", nil},
		{"short", "1215 bytes", good[:1215]},
		{"long", "1217 bytes", append(bytes.Clone(good), 0)},
		{"first coefficient 3329", "ML-KEM", change(func(k []byte) { k[0], k[1] = 0x01, k[1]&0xf0|0x0d })},
		{"last coefficient 4095", "ML-KEM", change(func(k []byte) { k[1150], k[1151] = k[1150]|0xf0, 0xff })},
		{"X25519 half zero", "X25519 half: low-order", change(func(k []byte) { clear(k[1184:]) })},
		{"X25519 half zero, high bit", "X25519 half: low-order", change(func(k []byte) { clear(k[1184:]); k[1215] = 0x80 })},
		{"X25519 half one", "X25519 half: low-order", change(func(k []byte) { clear(k[1184:]); k[1184] = 1 })},
		{"X25519 half of order 8", "X25519 half: low-order", change(func(k []byte) { copy(k[1184:], order8) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, rawErr := seal.XWing.NewPublicKey(tt.key)
			_, textErr := seal.XWing.ParsePublicKey(base64.StdEncoding.EncodeToString(tt.key))
			for _, err := range []error{rawErr, textErr} {
				if !errors.Is(err, seal.ErrInvalidKey) {
					t.Fatalf("error is %v, want ErrInvalidKey", err)
				}
			}
			if !strings.Contains(rawErr.Error(), tt.want) {
				t.Errorf("%v; want %q", rawErr, tt.want)
			}
		})
	}
}

// Anybody can make such a box without a key of their own; libsodium refuses it.
func TestOpenRefusesALowOrderEphemeralKey(t *testing.T) {
	private := seal.GenerateKey()
	var lowOrder, anyKey, boxKey [32]byte
	box.Precompute(&boxKey, &lowOrder, &anyKey)
	nonce := sealedBoxNonce(t, lowOrder[:], private.Public().Bytes())
	forged := box.SealAfterPrecomputation(lowOrder[:], []byte("forged"), &nonce, &boxKey)
	got, err := seal.Open(private, base64.StdEncoding.EncodeToString(forged))
	if !errors.Is(err, seal.ErrOpen) || got != nil {
		t.Errorf("Open = %q, %v; want ErrOpen", got, err)
	}
}

func sealedBoxNonce(t *testing.T, ephemeral, recipient []byte) (nonce [24]byte) {
	t.Helper()
	h, err := blake2b.New(len(nonce), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.Write(ephemeral)
	h.Write(recipient)
	h.Sum(nonce[:0])
	return nonce
}

// One box has one text, or what a relay compares is not what a phone opens.
func TestOpenTakesCanonicalBase64Alone(t *testing.T) {
	private := seal.GenerateKey()
	text, err := seal.Seal(private.Public(), []byte("x")) // 49 bytes: two characters of padding
	if err != nil {
		t.Fatal(err)
	}
	last := strings.IndexByte(text, '=') - 1
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	stray := alphabet[strings.IndexByte(alphabet, text[last])+1] // sets a bit that no byte has
	for name, changed := range map[string]string{
		"stray bits":      text[:last] + string(stray) + text[last+1:],
		"no padding":      strings.TrimRight(text, "="),
		"line break":      text[:64] + "\n" + text[64:],
		"line break last": text + "\n",
		"space before":    " " + text,
	} {
		if got, err := seal.Open(private, changed); !errors.Is(err, seal.ErrOpen) || got != nil {
			t.Errorf("%s: Open = %q, %v; want ErrOpen", name, got, err)
		}
	}
}

func TestAppendSealKeepsWhatIsThere(t *testing.T) {
	message := []byte("disk full on node-a")
	for _, suite := range seal.Suites() {
		private := suite.GenerateKey()
		for _, room := range []int{0, floor} {
			dst := append(make([]byte, 0, 8+room), "before: "...)
			got, err := seal.AppendSeal(dst, private.Public(), message)
			if err != nil || !bytes.HasPrefix(got, dst) {
				t.Fatalf("AppendSeal = %q, %v", got, err)
			}
			if opened, err := seal.Open(private, string(got[len(dst):])); err != nil || !bytes.Equal(opened, message) {
				t.Errorf("opening what was appended: %q, %v", opened, err)
			}
		}
	}
	if got, err := seal.AppendSeal([]byte("x"), seal.PublicKey{}, message); got != nil || !errors.Is(err, seal.ErrInvalidKey) {
		t.Errorf("sealing to no key: %q, %v", got, err)
	}
}

// An ephemeral key of low order makes the X25519 half of an X-Wing agreement known
// to all; libraries refuse it, and so does Open.
func TestOpenRefusesALowOrderXWingShare(t *testing.T) {
	private := seal.XWing.GenerateKey()
	text, err := seal.Seal(private.Public(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw[1088:1120])
	if got, err := seal.Open(private, base64.StdEncoding.EncodeToString(raw)); !errors.Is(err, seal.ErrOpen) || got != nil {
		t.Errorf("Open = %q, %v; want ErrOpen", got, err)
	}
}

// A key of one suite opens nothing that was sealed to one of another.
func TestBoxesOfTheOtherSuite(t *testing.T) {
	for _, suite := range seal.Suites() {
		text, err := seal.Seal(suite.GenerateKey().Public(), make([]byte, 2000))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range seal.Suites() {
			if got, err := seal.Open(other.GenerateKey(), text); !errors.Is(err, seal.ErrOpen) || got != nil {
				t.Errorf("a key of %s opens a box of %s: %q, %v", other, suite, got, err)
			}
		}
	}
}

func TestZeroKeysAreRefused(t *testing.T) {
	var public seal.PublicKey
	var private seal.PrivateKey
	if !public.IsZero() || seal.GenerateKey().Public().IsZero() {
		t.Error("IsZero is wrong")
	}
	if _, err := seal.Seal(public, nil); !errors.Is(err, seal.ErrInvalidKey) {
		t.Errorf("Seal: %v", err)
	}
	if _, err := seal.Open(private, ""); !errors.Is(err, seal.ErrInvalidKey) {
		t.Errorf("Open: %v", err)
	}
	if _, err := public.MarshalText(); !errors.Is(err, seal.ErrInvalidKey) {
		t.Errorf("MarshalText: %v", err)
	}
	if private.Bytes() != nil || private.Public() != public || public.Bytes() != nil || public.String() != "" {
		t.Error("a zero key has bytes")
	}
}

func TestRawKeysOfTheWrongSize(t *testing.T) {
	for _, size := range []int{0, 31, 33, 64} {
		if _, err := seal.NewPublicKey(make([]byte, size)); !errors.Is(err, seal.ErrInvalidKey) {
			t.Errorf("public key of %d bytes: %v", size, err)
		}
		if _, err := seal.NewPrivateKey(make([]byte, size)); !errors.Is(err, seal.ErrInvalidKey) {
			t.Errorf("private key of %d bytes: %v", size, err)
		}
	}
}

func TestKeyErrorsSayWhatTheTextLooksLike(t *testing.T) {
	// A key with both characters in which the two alphabets differ.
	raw := bytes.Repeat([]byte{0xfb, 0xff, 0xfe, 0x01}, 8)
	standard := base64.StdEncoding.EncodeToString(raw)
	tests := []struct{ name, text, want string }{
		{"URL-safe", base64.URLEncoding.EncodeToString(raw), "URL-safe base64;"},
		{"URL-safe without padding", base64.RawURLEncoding.EncodeToString(raw), "URL-safe base64 without padding"},
		{"without padding", base64.RawStdEncoding.EncodeToString(raw), "looks like base64 without padding"},
		{"hex", hex.EncodeToString(raw), "looks like hex"},
		{"upper-case hex", strings.ToUpper(hex.EncodeToString(raw)), "looks like hex"},
		{"space inside", standard[:20] + " " + standard[20:], "white space inside"},
		{"line break inside", standard[:20] + "\n" + standard[20:], "white space inside"},
		{"empty", " \n", "empty"},
		{"not base64", strings.Repeat("!", 44), "not base64"},
		{"short", base64.StdEncoding.EncodeToString(raw[:16]), "16 bytes; a public key of suite x25519 has 32"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := seal.ParsePublicKey(tt.text)
			if !errors.Is(err, seal.ErrInvalidKey) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestXWingKeyErrorsSayWhatTheTextLooksLike(t *testing.T) {
	raw := seal.XWing.GenerateKey().Public().Bytes()
	standard := base64.StdEncoding.EncodeToString(raw)
	for _, tt := range []struct{ name, text, want string }{
		{"URL-safe", base64.URLEncoding.EncodeToString(raw), "URL-safe base64;"},
		{"URL-safe without padding", base64.RawURLEncoding.EncodeToString(raw), "URL-safe base64 without padding"},
		{"without padding", base64.RawStdEncoding.EncodeToString(raw), "looks like base64 without padding"},
		{"hex", hex.EncodeToString(raw), "looks like hex"},
		{"wrapped", standard[:76] + "\n" + standard[76:], "white space inside"},
		{"empty", "", "expected 1624 characters"},
		{"of the other suite", seal.GenerateKey().Public().String(), "one of suite x25519 has 32"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := seal.XWing.ParsePublicKey(tt.text)
			if !errors.Is(err, seal.ErrInvalidKey) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if len(err.Error()) > 200 {
				t.Errorf("an error of %d bytes quotes the text", len(err.Error()))
			}
		})
	}
}

func TestUnmarshalLeavesTheKeyOnError(t *testing.T) {
	key := seal.GenerateKey().Public()
	before := key
	if err := key.UnmarshalText([]byte("nonsense")); err == nil || key != before {
		t.Errorf("key changed to %v with error %v", key, err)
	}
}

func TestPublicKeyInJSON(t *testing.T) {
	key := seal.GenerateKey().Public()
	text, err := json.Marshal(map[seal.PublicKey]seal.PublicKey{key: key})
	if err != nil {
		t.Fatal(err)
	}
	var back map[seal.PublicKey]seal.PublicKey
	if err := json.Unmarshal(text, &back); err != nil || back[key] != key {
		t.Errorf("%s came back as %v, %v", text, back, err)
	}
}

func TestBytesAreTheCallersOwn(t *testing.T) {
	for _, suite := range seal.Suites() {
		private := suite.GenerateKey()
		public, secret := private.Public(), private.Bytes()
		clear(private.Bytes())
		clear(public.Bytes())
		if private.Public() != public || !bytes.Equal(private.Bytes(), secret) || !bytes.Equal(public.Bytes(), private.Public().Bytes()) {
			t.Errorf("%s: changing a returned slice changed the key", suite)
		}
		raw := public.Bytes()
		key, err := suite.NewPublicKey(raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := suite.NewPrivateKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		clear(raw)
		clear(secret)
		if key != public || !bytes.Equal(again.Bytes(), private.Bytes()) {
			t.Errorf("%s: changing the slice that a key was made of changed the key", suite)
		}
	}
}

// Two keys are one map key exactly when suite and bytes are the same.
func TestPublicKeysAreComparable(t *testing.T) {
	seen := map[seal.PublicKey]seal.Suite{}
	for _, suite := range seal.Suites() {
		key := suite.GenerateKey().Public()
		again, err := suite.ParsePublicKey(" " + key.String() + "\n")
		if err != nil || again != key {
			t.Errorf("%s: the same key read again is another: %v", suite, err)
		}
		seen[key], seen[again], seen[suite.GenerateKey().Public()] = suite, suite, suite
	}
	if want := 2 * len(seal.Suites()); len(seen) != want {
		t.Errorf("%d map keys, want %d", len(seen), want)
	}
}

func TestPrivateKeyNeverPrints(t *testing.T) {
	for _, suite := range seal.Suites() {
		t.Run(string(suite), func(t *testing.T) { testNeverPrints(t, suite.GenerateKey()) })
	}
}

func testNeverPrints(t *testing.T, key seal.PrivateKey) {
	type holder struct{ key seal.PrivateKey }
	type Exported struct{ Key seal.PrivateKey }
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&out, verb+"\n", key)
		fmt.Fprintf(&out, verb+"\n", &key)
		fmt.Fprintf(&out, verb+"\n", holder{key})
		fmt.Fprintf(&out, verb+"\n", Exported{key})
		fmt.Fprintf(&out, verb+"\n", []seal.PrivateKey{key})
	}
	text := slog.New(slog.NewTextHandler(&out, nil))
	text.Info("key", "key", key, "holder", holder{key}, "exported", Exported{key})
	js := slog.New(slog.NewJSONHandler(&out, nil))
	js.Info("key", "key", key, "holder", holder{key}, "exported", Exported{key})
	if _, err := json.Marshal(key); err == nil {
		t.Error("encoding/json wrote a private key")
	}

	secret := key.Bytes()
	for _, form := range []string{
		base64.StdEncoding.EncodeToString(secret), hex.EncodeToString(secret),
		strings.ToUpper(hex.EncodeToString(secret)), string(secret), strings.Trim(fmt.Sprint(secret), "[]"),
	} {
		if strings.Contains(out.String(), form[:len(form)/2]) {
			t.Errorf("output holds the key as %q:\n%s", form, out.String())
		}
	}
	if !strings.Contains(out.String(), "REDACTED") {
		t.Errorf("nothing says that a key was left out:\n%s", out.String())
	}
}

func TestConcurrentUse(t *testing.T) {
	for _, suite := range seal.Suites() {
		private := suite.GenerateKey()
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				text, err := seal.Seal(private.Public(), []byte("x"))
				if err != nil {
					t.Error(err)
				}
				if _, err := seal.Open(private, text); err != nil {
					t.Error(err)
				}
				_ = private.Public().Fingerprint() + private.String()
			})
		}
		wg.Wait()
	}
}
