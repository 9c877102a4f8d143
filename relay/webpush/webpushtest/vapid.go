package webpushtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"time"
)

// maxLife is how far in the future a token may expire (RFC 8292, section 2).
const maxLife = 24 * time.Hour

// VAPID is what a sender says of itself (RFC 8292).
type VAPID struct {
	PublicKey string // base64url without padding, 65 bytes
	Audience  string // origin of the push service
	Expires   time.Time
	Subject   string // mailto: or https: address of whoever runs the sender; "" for none
}

// checkVAPID reads an Authorization header for the push service at origin and checks its token.
func checkVAPID(authorization, origin string, now time.Time) (VAPID, error) {
	parameters, ok := strings.CutPrefix(authorization, "vapid ")
	if !ok {
		return VAPID{}, errors.New(`the scheme of Authorization must be "vapid"`)
	}
	var token, key string
	for parameter := range strings.SplitSeq(parameters, ",") {
		switch name, value, _ := strings.Cut(strings.TrimSpace(parameter), "="); name {
		case "t":
			token = value
		case "k":
			key = value
		}
	}
	public, err := parseKey(key)
	if err != nil {
		return VAPID{}, err
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return VAPID{}, errors.New("the token is no JWT")
	}
	var header struct{ Alg string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err = errors.Join(err, decode(parts[0], &header), decode(parts[1], &claims)); err != nil {
		return VAPID{}, fmt.Errorf("the token cannot be read: %w", err)
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if header.Alg != "ES256" || len(signature) != 64 ||
		!ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return VAPID{}, errors.New("the token is not signed by the key with ES256")
	}
	vapid := VAPID{PublicKey: key, Audience: claims.Aud, Expires: time.Unix(claims.Exp, 0), Subject: claims.Sub}
	switch {
	case vapid.Audience != origin:
		return VAPID{}, errors.New("the token is for another push service")
	case !vapid.Expires.After(now):
		return VAPID{}, errors.New("the token is expired")
	case vapid.Expires.After(now.Add(maxLife)):
		return VAPID{}, errors.New("the token expires more than 24 hours from now")
	case vapid.Subject != "" && !isContact(vapid.Subject):
		return VAPID{}, errors.New("the subject is no mailto: or https: address")
	}
	return vapid, nil
}

func isContact(subject string) bool {
	u, err := url.Parse(subject)
	switch {
	case err != nil:
		return false
	case u.Scheme == "mailto":
		user, domain, found := strings.Cut(u.Opaque, "@")
		return found && user != "" && domain != "" && !strings.ContainsAny(u.Opaque, ":/")
	}
	return u.Scheme == "https" && u.Host != ""
}

func parseKey(text string) (*ecdsa.PublicKey, error) {
	point, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("the VAPID key is not base64url without padding")
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		return nil, errors.New("the VAPID key is no uncompressed point of P-256")
	}
	return public, nil
}

func decode(part string, into any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
