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

func TestSizes(t *testing.T) {
	private := seal.GenerateKey()
	full := bytes.Repeat([]byte{0xff}, seal.MaxPlaintext)
	text, err := seal.Seal(private.Public(), full)
	if err != nil || len(text) != seal.MaxCiphertext {
		t.Fatalf("sealing MaxPlaintext bytes: %d characters, %v; want %d", len(text), err, seal.MaxCiphertext)
	}
	if got, err := seal.Open(private, text); err != nil || !bytes.Equal(got, full) {
		t.Errorf("opening it again: %v", err)
	}
	text, err = seal.Seal(private.Public(), append(full, 0))
	if !errors.Is(err, seal.ErrTooLarge) || text != "" {
		t.Errorf("one byte more: %d characters, %v; want ErrTooLarge", len(text), err)
	}
	if !strings.Contains(err.Error(), "2203") || !strings.Contains(err.Error(), "2202") {
		t.Errorf("the error names neither size nor limit: %v", err)
	}
}

func TestAppendSealKeepsWhatIsThere(t *testing.T) {
	private := seal.GenerateKey()
	message := []byte("disk full on node-a")
	for _, room := range []int{0, seal.MaxCiphertext} {
		dst := append(make([]byte, 0, 8+room), "before: "...)
		got, err := seal.AppendSeal(dst, private.Public(), message)
		if err != nil || !bytes.HasPrefix(got, dst) {
			t.Fatalf("AppendSeal = %q, %v", got, err)
		}
		if opened, err := seal.Open(private, string(got[len(dst):])); err != nil || !bytes.Equal(opened, message) {
			t.Errorf("opening what was appended: %q, %v", opened, err)
		}
	}
	if got, err := seal.AppendSeal([]byte("x"), seal.PublicKey{}, message); got != nil || !errors.Is(err, seal.ErrInvalidKey) {
		t.Errorf("sealing to no key: %q, %v", got, err)
	}
}

func TestOpenTakesBoxesOverTheRelayLimit(t *testing.T) {
	private := seal.GenerateKey()
	public := [32]byte(private.Public().Bytes())
	big := bytes.Repeat([]byte("x"), 100_000)
	raw, err := box.SealAnonymous(nil, big, &public, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := seal.Open(private, base64.StdEncoding.EncodeToString(raw)); err != nil || !bytes.Equal(got, big) {
		t.Errorf("Open: %v", err)
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
	if private.Bytes() != nil || private.Public() != public {
		t.Error("the zero PrivateKey has halves")
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
		{"short", base64.StdEncoding.EncodeToString(raw[:16]), "16 bytes after decoding"},
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
	private := seal.GenerateKey()
	public := private.Public()
	clear(private.Bytes())
	clear(public.Bytes())
	if private.Public() != public || bytes.Equal(private.Bytes(), make([]byte, seal.KeySize)) {
		t.Error("changing a returned slice changed the key")
	}
}

func TestPrivateKeyNeverPrints(t *testing.T) {
	key := seal.GenerateKey()
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
	private := seal.GenerateKey()
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
