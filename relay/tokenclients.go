package relay

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"sync"
)

// tokenClients are the clients of a token service. Of their secrets it holds PBKDF2-SHA256 hashes alone.
//
// Such a hash takes some 30 ms, which is work that strangers could order by the hundred. So a secret carries a tag that
// only this service can make, for one client id: half of it is random, half an HMAC-SHA256 of that. One without the
// right tag is refused for a microsecond's work. The others are hashed one at a time, and few of one client wait for
// that.
type tokenClients struct {
	rounds  int
	tagKey  [32]byte
	hashing chan struct{} // holds one while a hash is computed

	mu   sync.Mutex
	byID map[string]*tokenClient
}

type tokenClient struct {
	scope   string
	salt    [16]byte
	hash    []byte
	waiting int // requests of this client that are being hashed, or wait for it
}

const (
	maxClients = 10_000
	maxWaiting = 8 // of one client

	// A secret is 64 hex digits: so many are random, the others the tag.
	randomDigits = 32
	secretDigits = 64
)

var (
	errCredentials    = errors.New("no client with that id and secret")
	errBusy           = errors.New("the client asks for too many tokens at once")
	errClientExists   = errors.New("client exists")
	errTooManyClients = errors.New("too many clients")
)

func newTokenClients(rounds int) *tokenClients {
	c := &tokenClients{rounds: rounds, hashing: make(chan struct{}, 1), byID: map[string]*tokenClient{}}
	rand.Read(c.tagKey[:])
	return c
}

// newSecret makes a secret for the client of that id.
func (c *tokenClients) newSecret(id string) string {
	var random [randomDigits / 2]byte
	rand.Read(random[:])
	digits := hex.EncodeToString(random[:])
	return digits + c.tag(id, digits)
}

// tag is 128 bits of an HMAC, in hex.
func (c *tokenClients) tag(id, digits string) string {
	mac := hmac.New(sha256.New, c.tagKey[:])
	mac.Write([]byte(digits)) // of one length, so that nothing else is written alike
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil))[:secretDigits-randomDigits]
}

// made reports whether newSecret has made the secret, for that id.
func (c *tokenClients) made(id, secret string) bool {
	return len(secret) == secretDigits &&
		subtle.ConstantTimeCompare([]byte(c.tag(id, secret[:randomDigits])), []byte(secret[randomDigits:])) == 1
}

// hash computes a PBKDF2 hash when no other is being computed.
func (c *tokenClients) hash(ctx context.Context, secret string, salt [16]byte) ([]byte, error) {
	select {
	case c.hashing <- struct{}{}:
		defer func() { <-c.hashing }()
		return pbkdf2.Key(sha256.New, secret, salt[:], c.rounds, sha256.Size)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// add creates a client and returns its secret. Without replace it fails if there is a client of that id, or if there
// are as many clients as there may be.
func (c *tokenClients) add(ctx context.Context, id, scope string, replace bool) (secret string, err error) {
	secret = c.newSecret(id)
	client := &tokenClient{scope: scope}
	rand.Read(client.salt[:])
	if client.hash, err = c.hash(ctx, secret, client.salt); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, exists := c.byID[id]
	switch {
	case exists && !replace:
		return "", errClientExists
	case !replace && len(c.byID) >= maxClients:
		return "", errTooManyClients
	}
	c.byID[id] = client
	return secret, nil
}

func (c *tokenClients) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// authenticate returns the scope of the client with these credentials. Its error is errCredentials, errBusy, or that
// ctx has ended.
func (c *tokenClients) authenticate(ctx context.Context, id, secret string) (scope string, err error) {
	if !c.made(id, secret) {
		return "", errCredentials
	}
	client, err := c.enter(id)
	if err != nil {
		return "", err
	}
	defer c.leave(client)
	hash, err := c.hash(ctx, secret, client.salt)
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare(hash, client.hash) != 1 {
		return "", errCredentials
	}
	return client.scope, nil
}

// enter counts a request of the client until leave.
func (c *tokenClients) enter(id string) (*tokenClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client, known := c.byID[id]
	switch {
	case !known:
		return nil, errCredentials
	case client.waiting >= maxWaiting:
		return nil, errBusy
	}
	client.waiting++
	return client, nil
}

func (c *tokenClients) leave(client *tokenClient) {
	c.mu.Lock()
	defer c.mu.Unlock()
	client.waiting--
}
