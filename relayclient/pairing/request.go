package pairing

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// MaxRequest is the largest pairing request that is read, in bytes. The longest valid one takes a fifth of it at most.
const MaxRequest = 64 << 10

// Limits of a request's members, in characters (code points), after white space around them is trimmed.
const (
	maxName      = 64
	maxPlatform  = 32
	maxPushToken = 512
)

// Request is what a phone sends to be paired. Build one by hand or with [ParseRequest]; [Registry.Pair] checks either.
type Request struct {
	Name      string         // 1 to 64 characters
	Platform  string         // 1 to 32 characters
	PushToken secret.Text    // 1 to 512 characters
	PublicKey seal.PublicKey // the phone's key, which knows its suite
}

// FieldError says which member of a pairing request is wrong. Its text never quotes the member.
type FieldError struct {
	Field  string // "name", "platform", "publicKey", "pushToken", "suite", or "body" when the request as a whole is wrong
	Reason string // what is expected, to be read after the field: "must be a non-empty string"
	Err    error  // the cause, such as seal.ErrInvalidKey; nil when there is none
}

func (e *FieldError) Error() string { return "pairing: " + e.Field + " " + e.Reason }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// ParseRequest reads one pairing request, a JSON object of at most [MaxRequest] bytes with the string members name,
// platform, pushToken and publicKey (base64), which are trimmed of white space. A member suite names the suite of the
// key; when it is absent or null, that is [seal.X25519]. Unknown members are ignored, so that the protocol can be
// extended. What is wrong with a request is a *[FieldError].
func ParseRequest(r io.Reader) (Request, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxRequest+1))
	if err != nil {
		return Request{}, &FieldError{Field: "body", Reason: "could not be read", Err: err}
	}
	if len(body) > MaxRequest {
		return Request{}, &FieldError{Field: "body", Reason: fmt.Sprintf("is larger than %d bytes", MaxRequest)}
	}
	if !utf8.Valid(body) {
		return Request{}, &FieldError{Field: "body", Reason: "must be UTF-8"}
	}
	// A map rather than a struct: struct fields would match names in any case, and "Name" is not "name".
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return Request{}, &FieldError{Field: "body", Reason: "must be a JSON object", Err: err}
	}
	// What is not a string, null included, decodes to "" and is refused below as an empty one is.
	text := func(name string) string {
		var s string
		if json.Unmarshal(members[name], &s) != nil {
			return ""
		}
		return s
	}
	req := Request{Name: text("name"), Platform: text("platform"), PushToken: secret.New(text("pushToken"))}
	if req, err = req.trimmed(); err != nil {
		return Request{}, err
	}
	suite := seal.X25519
	if raw, ok := members["suite"]; ok && string(raw) != "null" {
		suite = seal.Suite(text("suite"))
	}
	if err := checkSuite(suite, seal.Suites()); err != nil {
		return Request{}, err
	}
	key := trim(text("publicKey"))
	if key == "" {
		return Request{}, &FieldError{Field: "publicKey", Reason: "must be a non-empty string"}
	}
	if req.PublicKey, err = suite.ParsePublicKey(key); err != nil {
		return Request{}, &FieldError{Field: "publicKey", Err: err,
			Reason: fmt.Sprintf("must be a base64 %s public key of %d bytes", suite, suite.KeySize())}
	}
	return req, nil
}

// checked is the request as it is stored, or a *FieldError. Its key must be of one of the suites.
func (r Request) checked(suites []seal.Suite) (Request, error) {
	r, err := r.trimmed()
	if err != nil {
		return Request{}, err
	}
	if r.PublicKey.IsZero() {
		return Request{}, missingKey("publicKey")
	}
	return r, checkSuite(r.PublicKey.Suite(), suites)
}

// missingKey is the error of a zero key. In FIPS-only mode it names the likely cause.
func missingKey(field string) *FieldError {
	if !slices.Contains(seal.Suites(), seal.X25519) {
		return &FieldError{Field: field, Reason: "is missing: " + strings.TrimPrefix(seal.ErrFIPSOnly.Error(), "seal: "),
			Err: fmt.Errorf("%w: %w", seal.ErrInvalidKey, seal.ErrFIPSOnly)}
	}
	return &FieldError{Field: field, Reason: "is missing", Err: seal.ErrInvalidKey}
}

// checkSuite refuses a suite that no alert could be sealed to.
func checkSuite(suite seal.Suite, suites []seal.Suite) error {
	if slices.Contains(suites, suite) {
		return nil
	}
	names := make([]string, len(suites))
	for i, s := range suites {
		names[i] = string(s)
	}
	return &FieldError{Field: "suite", Reason: "must be " + strings.Join(names, " or "), Err: seal.ErrUnknownSuite}
}

// trimmed is the request without the white space around its strings, or a *FieldError about one of them.
func (r Request) trimmed() (Request, error) {
	token := r.PushToken.Reveal()
	for _, f := range []struct {
		name  string
		value *string
		limit int
	}{
		{"name", &r.Name, maxName},
		{"platform", &r.Platform, maxPlatform},
		{"pushToken", &token, maxPushToken},
	} {
		*f.value = trim(*f.value)
		switch {
		case *f.value == "":
			return Request{}, &FieldError{Field: f.name, Reason: "must be a non-empty string"}
		case utf8.RuneCountInString(*f.value) > f.limit:
			return Request{}, &FieldError{Field: f.name, Reason: fmt.Sprintf("must be at most %d characters", f.limit)}
		case !utf8.ValidString(*f.value) || strings.Contains(*f.value, "\x00"):
			// PostgreSQL cannot store a NUL in a text, and every store takes the same devices.
			return Request{}, &FieldError{Field: f.name, Reason: "must be valid text without NUL characters"}
		}
	}
	r.PushToken = secret.New(token)
	return r, nil
}

// trim removes what the deployed daemon's str.strip removes: Unicode white space and the separators U+001C to U+001F,
// which Go does not count as white space.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f })
}

// String describes the request on one line of printable characters, with its push token cut to its last six.
func (r Request) String() string {
	return fmt.Sprintf("pairing request %q (%s, %s key %s, token %s)", r.Name, printable(r.Platform), r.PublicKey.Suite(),
		r.PublicKey.Fingerprint(), printable(cutToken(r.PushToken)))
}
