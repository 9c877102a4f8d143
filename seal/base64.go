package seal

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

var errSpaceInside = errors.New("white space inside")

// decodeBase64 reads padded base64. The decoder of encoding/base64 skips line breaks wherever they stand; a key or box
// with one inside was damaged on its way, and other implementations would refuse it.
func decodeBase64(enc *base64.Encoding, text string) ([]byte, error) {
	if strings.ContainsAny(text, " \t\r\n") {
		return nil, errSpaceInside
	}
	return enc.DecodeString(text)
}

// describeKeyText says what is wrong with text that is no public key of the suite, given the result of decoding it.
func (s Suite) describeKeyText(text string, raw []byte, err error) string {
	want := fmt.Sprintf("expected %d characters of standard base64 with padding", base64.StdEncoding.EncodedLen(s.KeySize()))
	urlSafe := strings.ContainsAny(text, "-_")
	unpadded := !strings.HasSuffix(text, "=")
	switch {
	case text == "":
		return "empty; " + want
	case errors.Is(err, errSpaceInside):
		return "white space inside; " + want + " on one line"
	case s.isKey(hex.DecodeString(text)):
		return "this looks like hex; " + want
	case urlSafe && unpadded && s.isKey(base64.RawURLEncoding.DecodeString(text)):
		return "this looks like URL-safe base64 without padding; " + want
	case urlSafe && s.isKey(base64.URLEncoding.DecodeString(text)):
		return "this looks like URL-safe base64; " + want
	case unpadded && s.isKey(base64.RawStdEncoding.DecodeString(text)):
		return "this looks like base64 without padding; " + want
	case err != nil:
		return "not base64; " + want
	default:
		return s.describeKeySize(len(raw))
	}
}

// isKey reports whether what a decoder returned has the size of a key of the suite.
func (s Suite) isKey(raw []byte, err error) bool { return err == nil && len(raw) == s.KeySize() }

func (s Suite) describeKeySize(size int) string {
	text := fmt.Sprintf("%d bytes; a public key of suite %s has %d", size, s, s.KeySize())
	for _, other := range Suites() {
		if size == other.KeySize() {
			text += fmt.Sprintf(", one of suite %s has %d", other, size)
		}
	}
	return text
}
