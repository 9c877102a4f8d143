package verify_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/pushauth/verify"
)

func TestVerifyReportsTheClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := newVerifier(t)
		now := time.Now()
		token := sign(t, jwt.SigningMethodRS256, "first", firstKey(),
			good("aud", []string{"https://other.example", audience}, "scope", "admin push:write", "unknown", 7))
		got, err := v.Verify(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		want := verify.Claims{
			Subject:   "bridge-home-office",
			Issuer:    issuer,
			Audience:  []string{"https://other.example", audience},
			Scopes:    []string{"admin", "push:write"},
			IssuedAt:  now,
			ExpiresAt: now.Add(time.Hour),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestVerifyWithoutIssuedAt(t *testing.T) {
	v, _ := newVerifier(t)
	claims, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, "first", firstKey(), good("iat", nil)))
	if err != nil || !claims.IssuedAt.IsZero() {
		t.Errorf("got %+v, %v", claims, err)
	}
}

// Claim names are case-sensitive: another's claim is another claim.
func TestClaimNamesAreExact(t *testing.T) {
	v, _ := newVerifier(t)
	claims := good("SUB", "somebody-else", "Sub", "somebody-else", "EXP", 1, "ISS", "x", "AUD", "x", "SCOPE", "x", "NBF", int64(1)<<40, "IAT", "x")
	got, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, "first", firstKey(), claims))
	if err != nil || got.Subject != "bridge-home-office" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestNilContext(t *testing.T) {
	v, _ := newVerifier(t)
	var none context.Context
	if _, err := v.Verify(none, signGood(t, "first", firstKey())); err != nil {
		t.Error(err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	public := &firstKey().PublicKey
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	pemPKIX := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	pemPKCS1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(public)})
	genuine := signGood(t, "first", firstKey())
	parts := strings.Split(genuine, ".")
	now := time.Now().Unix()
	claims := func(changes ...any) string {
		return sign(t, jwt.SigningMethodRS256, "first", firstKey(), good(changes...))
	}
	critical := jwt.NewWithClaims(jwt.SigningMethodRS256, good())
	critical.Header["kid"], critical.Header["crit"] = "first", []string{"exp"}
	withCritical, err := critical.SignedString(firstKey())
	if err != nil {
		t.Fatal(err)
	}
	numericKid := jwt.NewWithClaims(jwt.SigningMethodRS256, good())
	numericKid.Header["kid"] = 1
	withNumericKid, err := numericKid.SignedString(firstKey())
	if err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		name  string
		token string
		want  error
	}{
		{"nothing", "", jwt.ErrTokenMalformed},
		{"no token", "not-a-token", jwt.ErrTokenMalformed},
		{"two parts", parts[0] + "." + parts[1], jwt.ErrTokenMalformed},
		{"four parts", genuine + ".x", jwt.ErrTokenMalformed},
		{"no signature", parts[0] + "." + parts[1] + ".", jwt.ErrTokenSignatureInvalid},
		{"signature of another token", parts[0] + "." + parts[1] + "." + strings.Split(claims("sub", "x"), ".")[2], jwt.ErrTokenSignatureInvalid},
		{"claims of another token", parts[0] + "." + strings.Split(claims("sub", "x"), ".")[1] + "." + parts[2], jwt.ErrTokenSignatureInvalid},
		{"too long", claims("padding", strings.Repeat("x", verify.MaxTokenSize)), verify.ErrInvalidToken},

		{"alg none", sign(t, jwt.SigningMethodNone, "first", jwt.UnsafeAllowNoneSignatureType, good()), jwt.ErrTokenSignatureInvalid},
		{"HS256 keyed with the modulus", sign(t, jwt.SigningMethodHS256, "first", public.N.Bytes(), good()), jwt.ErrTokenSignatureInvalid},
		{"HS256 keyed with the DER", sign(t, jwt.SigningMethodHS256, "first", der, good()), jwt.ErrTokenSignatureInvalid},
		{"HS256 keyed with the PEM", sign(t, jwt.SigningMethodHS256, "first", pemPKIX, good()), jwt.ErrTokenSignatureInvalid},
		{"HS256 keyed with the PKCS#1 PEM", sign(t, jwt.SigningMethodHS256, "first", pemPKCS1, good()), jwt.ErrTokenSignatureInvalid},
		{"RS384 of the right key", sign(t, jwt.SigningMethodRS384, "first", firstKey(), good()), jwt.ErrTokenSignatureInvalid},
		{"RS512 of the right key", sign(t, jwt.SigningMethodRS512, "first", firstKey(), good()), jwt.ErrTokenSignatureInvalid},
		{"PS256 of the right key", sign(t, jwt.SigningMethodPS256, "first", firstKey(), good()), jwt.ErrTokenSignatureInvalid},
		{"another key under the right id", signGood(t, "first", secondKey()), jwt.ErrTokenSignatureInvalid},
		{"unknown key id", signGood(t, "second", firstKey()), verify.ErrInvalidToken},
		{"no key id", signGood(t, "", firstKey()), verify.ErrInvalidToken},
		{"key id that is a number", withNumericKid, verify.ErrInvalidToken},
		{"critical header", withCritical, verify.ErrInvalidToken},

		{"other issuer", claims("iss", "https://token.example.evil"), jwt.ErrTokenInvalidIssuer},
		{"issuer with a slash more", claims("iss", issuer+"/"), jwt.ErrTokenInvalidIssuer},
		{"no issuer", claims("iss", nil), verify.ErrInvalidToken},
		{"other audience", claims("aud", "https://other.example"), jwt.ErrTokenInvalidAudience},
		{"no audience", claims("aud", nil), verify.ErrInvalidToken},
		{"expired", claims("exp", now-60), jwt.ErrTokenExpired},
		{"no expiry", claims("exp", nil), jwt.ErrTokenRequiredClaimMissing},
		{"expiry that is no number", claims("exp", "tomorrow"), jwt.ErrTokenMalformed},
		{"not yet valid", claims("nbf", now+60), jwt.ErrTokenNotValidYet},
		{"issued in the future", claims("iat", now+60), jwt.ErrTokenUsedBeforeIssued},
		{"expiry in the year 10000", claims("exp", int64(253402300800)), jwt.ErrTokenMalformed},
		{"expiry beyond every clock", claims("exp", 1e300), jwt.ErrTokenMalformed},
		{"expiry of null", claims("exp", json.RawMessage("null")), jwt.ErrTokenMalformed},
		{"expiry that is a text", claims("exp", strconv.FormatInt(now+3600, 10)), jwt.ErrTokenMalformed},
		{"not before 1970", claims("nbf", -1), jwt.ErrTokenMalformed},
		{"not before a text", claims("nbf", "0"), jwt.ErrTokenMalformed},
		{"not before null", claims("nbf", json.RawMessage("null")), jwt.ErrTokenMalformed},
		{"issued long ago", claims("iat", -1e300), jwt.ErrTokenMalformed},
		{"issued at null", claims("iat", json.RawMessage("null")), jwt.ErrTokenMalformed},
		{"subject in capitals", claims("sub", nil, "SUB", "bridge-home-office"), verify.ErrInvalidToken},
		{"expiry in capitals", claims("exp", nil, "Exp", now+3600), jwt.ErrTokenRequiredClaimMissing},
		{"audience in capitals", claims("aud", nil, "AUD", audience), verify.ErrInvalidToken},
		{"scope in capitals", claims("scope", nil, "Scope", "push:write"), verify.ErrInsufficientScope},
		{"no subject", claims("sub", nil), verify.ErrInvalidToken},
		{"empty subject", claims("sub", ""), verify.ErrInvalidToken},
		{"subject that is a number", claims("sub", 7), jwt.ErrTokenMalformed},

		{"no scope", claims("scope", nil), verify.ErrInsufficientScope},
		{"other scope", claims("scope", "admin"), verify.ErrInsufficientScope},
		{"scope that starts alike", claims("scope", "push:writer"), verify.ErrInsufficientScope},
		{"scopes with commas", claims("scope", "admin,push:write"), verify.ErrInsufficientScope},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, _ := newVerifier(t)
			claims, err := v.Verify(t.Context(), tt.token)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if class := verify.ErrInvalidToken; tt.want != verify.ErrInsufficientScope && !errors.Is(err, class) {
				t.Errorf("got %v, want %v", err, class)
			}
			if diff := cmp.Diff(verify.Claims{}, claims); diff != "" {
				t.Errorf("claims of a refused token: %s", diff)
			}
		})
	}
}

func TestVerifyErrorsDoNotQuoteTheToken(t *testing.T) {
	const secret = "s3cret"
	none := jwt.NewWithClaims(jwt.SigningMethodNone, good("sub", secret))
	none.Header["alg"], none.Header["kid"], none.Header["typ"] = secret, secret, secret
	signed, err := none.SigningString()
	if err != nil {
		t.Fatal(err)
	}
	tokens := []string{
		secret, secret + ".b.c", signed + "." + secret,
		sign(t, jwt.SigningMethodRS256, secret, firstKey(), good()),
		sign(t, jwt.SigningMethodRS256, "first", firstKey(), good("iss", secret, "aud", secret, "sub", secret)),
		sign(t, jwt.SigningMethodRS256, "first", firstKey(), good("exp", secret)),
		sign(t, jwt.SigningMethodRS256, "first", firstKey(), good("scope", secret)),
	}
	for _, token := range tokens {
		v, _ := newVerifier(t)
		_, err := v.Verify(t.Context(), token)
		if err == nil {
			t.Fatal("accepted")
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), token) {
			t.Errorf("the error quotes the token: %v", err)
		}
	}
}

func TestVerifyAtTheBoundary(t *testing.T) {
	tests := []struct {
		name   string
		leeway time.Duration
		claims func() jwt.MapClaims
		passes time.Duration // first moment at which it is valid
		ends   time.Duration // first moment at which it no longer is
	}{
		{"no leeway", 0, func() jwt.MapClaims { return good() }, 0, time.Hour},
		{"default leeway", 30 * time.Second, func() jwt.MapClaims { return good() }, 0, time.Hour + 30*time.Second},
		{"not before", 30 * time.Second, func() jwt.MapClaims { return good("nbf", time.Now().Unix()+90) }, time.Minute, time.Hour + 30*time.Second},
		{"issued at", 30 * time.Second, func() jwt.MapClaims { return good("iat", time.Now().Unix()+90) }, time.Minute, time.Hour + 30*time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, _ := newVerifier(t, verify.WithLeeway(tt.leeway), verify.WithKeyLifetime(24*time.Hour))
				start, token := time.Now(), sign(t, jwt.SigningMethodRS256, "first", firstKey(), tt.claims())
				at := func(d time.Duration, valid bool) {
					t.Helper()
					advance(time.Until(start.Add(d)))
					if _, err := v.Verify(t.Context(), token); (err == nil) != valid {
						t.Errorf("after %v: %v", d, err)
					}
				}
				if tt.passes > 0 {
					at(tt.passes-time.Nanosecond, false)
				}
				at(tt.passes, true)
				at(tt.ends-time.Nanosecond, true)
				at(tt.ends, false)
				at(tt.ends+time.Nanosecond, false)
			})
		})
	}
}

func TestNewRefuses(t *testing.T) {
	config := func(change func(*verify.Config)) verify.Config {
		c := verify.Config{JWKSURL: issuer + "/jwks", Issuer: issuer, Audience: audience, Scope: "push:write"}
		change(&c)
		return c
	}
	same := func(*verify.Config) {}
	tests := []struct {
		name   string
		config verify.Config
		opts   []verify.Option
		want   string
	}{
		{"no key URL", config(func(c *verify.Config) { c.JWKSURL = "" }), nil, "Config.JWKSURL"},
		{"no issuer", config(func(c *verify.Config) { c.Issuer = "" }), nil, "Config.Issuer"},
		{"no audience", config(func(c *verify.Config) { c.Audience = "" }), nil, "Config.Audience"},
		{"no scope", config(func(c *verify.Config) { c.Scope = "" }), nil, "Config.Scope"},
		{"two scopes", config(func(c *verify.Config) { c.Scope = "push:write admin" }), nil, "Config.Scope"},
		{"relative URL", config(func(c *verify.Config) { c.JWKSURL = "/jwks?s3cret" }), nil, "Config.JWKSURL"},
		{"no host", config(func(c *verify.Config) { c.JWKSURL = "https:///jwks?s3cret" }), nil, "Config.JWKSURL"},
		{"other scheme", config(func(c *verify.Config) { c.JWKSURL = "ftp://s3cret@token.example" }), nil, "Config.JWKSURL"},
		{"credentials", config(func(c *verify.Config) { c.JWKSURL = "https://user:s3cret@token.example/jwks" }), nil, "Config.JWKSURL"},
		{"malformed URL", config(func(c *verify.Config) { c.JWKSURL = "https://s3cret%zz" }), nil, "Config.JWKSURL"},
		{"nil option", config(same), []verify.Option{nil}, "option"},
		{"nil client", config(same), []verify.Option{verify.WithHTTPClient(nil)}, "WithHTTPClient"},
		{"negative leeway", config(same), []verify.Option{verify.WithLeeway(-1)}, "WithLeeway"},
		{"an hour of leeway", config(same), []verify.Option{verify.WithLeeway(time.Hour)}, "WithLeeway"},
		{"no key lifetime", config(same), []verify.Option{verify.WithKeyLifetime(0)}, "WithKeyLifetime"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := verify.New(tt.config, tt.opts...)
			if err == nil || v != nil {
				t.Fatal("accepted")
			}
			if !strings.HasPrefix(err.Error(), "verify: ") || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error is %q, which should name %s and no secret", err, tt.want)
			}
		})
	}
}

func TestAuthenticate(t *testing.T) {
	token := signGood(t, "first", firstKey())
	tests := []struct {
		name   string
		header http.Header
		status int
	}{
		{"bearer", http.Header{"Authorization": {"Bearer " + token}}, 200},
		{"lower case", http.Header{"Authorization": {"bearer " + token}}, 401},
		{"two spaces", http.Header{"Authorization": {"Bearer  " + token}}, 401},
		{"no header", http.Header{}, 401},
		{"two headers", http.Header{"Authorization": {"Bearer " + token, "Bearer " + token}}, 401},
		{"basic", http.Header{"Authorization": {"Basic " + token}}, 401},
		{"the token alone", http.Header{"Authorization": {token}}, 401},
		{"no token", http.Header{"Authorization": {"Bearer "}}, 401},
		{"other scope", http.Header{"Authorization": {"Bearer " + sign(t, jwt.SigningMethodRS256, "first", firstKey(), good("scope", "admin"))}}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, _ := newVerifier(t)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/push", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = tt.header
			claims, err := v.Authenticate(req)
			if got := verify.StatusCode(err); got != tt.status {
				t.Errorf("got %d (%v), want %d", got, err, tt.status)
			}
			if accepted := claims.Subject == "bridge-home-office"; accepted != (tt.status == 200) {
				t.Errorf("the subject is %q", claims.Subject)
			}
		})
	}
	if got := verify.StatusCode(errors.New("something else")); got != 500 {
		t.Errorf("an error of another origin is %d, want 500", got)
	}
}
