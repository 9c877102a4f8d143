package seal

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

var errSpaceInside = errors.New("white space inside")

// decodeBase64 reads padded base64. The decoder of encoding/base64 skips line
// breaks wherever they stand; a key or box with one inside was mangled on its
// way, and other implementations would refuse it.
func decodeBase64(enc *base64.Encoding, text string) ([]byte, error) {
	if strings.ContainsAny(text, " \t\r\n") {
		return nil, errSpaceInside
	}
	return enc.DecodeString(text)
}

// describeKeyText says what to do about text that is no public key, given what
// came of decoding it.
func describeKeyText(text string, raw []byte, err error) string {
	const want = "expected 44 characters of standard base64 with padding"
	urlSafe := strings.ContainsAny(text, "-_")
	unpadded := !strings.HasSuffix(text, "=")
	switch {
	case text == "":
		return "empty; " + want
	case errors.Is(err, errSpaceInside):
		return "white space inside; " + want + " on one line"
	case isHex(text):
		return "this looks like hex; " + want
	case urlSafe && unpadded && holdsKey(base64.RawURLEncoding, text):
		return "this looks like URL-safe base64 without padding; " + want
	case urlSafe && holdsKey(base64.URLEncoding, text):
		return "this looks like URL-safe base64; " + want
	case unpadded && holdsKey(base64.RawStdEncoding, text):
		return "this looks like base64 without padding; " + want
	case err != nil:
		return "not base64; " + want
	default:
		return fmt.Sprintf("%d bytes after decoding; a public key has %d", len(raw), KeySize)
	}
}

func isHex(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == KeySize
}

func holdsKey(enc *base64.Encoding, text string) bool {
	raw, err := enc.DecodeString(text)
	return err == nil && len(raw) == KeySize
}
