package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sealpush/sealpush/secret"
)

// minToken is the least number of characters of a bearer token: short ones can be guessed.
const minToken = 16

// callers are those who may pair and revoke phones, each known by a bearer token. They print as their labels.
type callers []caller

type caller struct {
	label  string
	digest [sha256.Size]byte // of the token, so that every comparison has the same length
	token  secret.Text       // for a link
}

// add takes LABEL=TOKEN. The error does not quote it.
func (c *callers) add(labelled string) error {
	label, token, found := strings.Cut(labelled, "=")
	if !found || label == "" {
		return errors.New("want LABEL=TOKEN")
	}
	if len(token) < minToken {
		return fmt.Errorf("the token of %q has less than %d characters", label, minToken)
	}
	*c = append(*c, caller{label, sha256.Sum256([]byte(token)), secret.New(token)})
	return nil
}

// ensure adds a caller when no token was given: with the token in the file, which it makes if it is missing.
func (c *callers) ensure(tokenFile string) (used bool, err error) {
	if len(*c) > 0 {
		return false, nil
	}
	token, err := ensureToken(tokenFile)
	if err != nil {
		return false, err
	}
	if err := c.add("local=" + token); err != nil {
		return false, fmt.Errorf("%s: %w", tokenFile, err)
	}
	return true, nil
}

// label says whose token this is, in a time that does not depend on how much of a token was guessed.
func (c callers) label(token string) (label string, known bool) {
	digest := sha256.Sum256([]byte(token))
	for _, caller := range c {
		if subtle.ConstantTimeCompare(digest[:], caller.digest[:]) == 1 {
			label, known = caller.label, true
		}
	}
	return label, known
}

func (c callers) String() string {
	labels := make([]string, len(c))
	for i, caller := range c {
		labels[i] = caller.label
	}
	return strings.Join(labels, ", ")
}

// Format prints the labels alone, for every verb.
func (c callers) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

type callerKey struct{}

// callerOf is the label of the token that a request was let in with.
func callerOf(r *http.Request) string {
	label, _ := r.Context().Value(callerKey{}).(string)
	return label
}

// only lets requests with a known bearer token through to next (RFC 6750).
func (c callers) only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		bearer := strings.EqualFold(scheme, "Bearer") && token != ""
		if label, known := c.label(token); bearer && known {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, label)))
			return
		}
		challenge := `Bearer realm="daemon"`
		if bearer {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"error":"a bearer token of this daemon is required"}`+"\n")
	})
}
