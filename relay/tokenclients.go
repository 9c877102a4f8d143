package relay

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"
)

// tokenClients are the clients of a token service. Of their secrets it holds
// PBKDF2-SHA256 hashes alone.
type tokenClients struct {
	rounds int
	nobody tokenClient // what an unknown id is compared with, at the same cost

	mu   sync.Mutex
	byID map[string]tokenClient
}

type tokenClient struct {
	scope string
	salt  [16]byte
	hash  []byte
}

func newTokenClients(rounds int) *tokenClients {
	nobody := tokenClient{hash: make([]byte, sha256.Size)} // of no secret that can be found
	rand.Read(nobody.salt[:])
	rand.Read(nobody.hash)
	return &tokenClients{rounds: rounds, nobody: nobody, byID: map[string]tokenClient{}}
}

func (c *tokenClients) client(secret, scope string) tokenClient {
	client := tokenClient{scope: scope}
	rand.Read(client.salt[:])
	client.hash = c.hash(secret, client.salt)
	return client
}

func (c *tokenClients) hash(secret string, salt [16]byte) []byte {
	hash, err := pbkdf2.Key(sha256.New, secret, salt[:], c.rounds, sha256.Size)
	if err != nil {
		panic(err) // only for parameters that are not ours
	}
	return hash
}

// set creates or replaces a client.
func (c *tokenClients) set(id, secret, scope string) {
	client := c.client(secret, scope)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID[id] = client
}

// add creates a client, or reports false if there is one of that id.
func (c *tokenClients) add(id, secret, scope string) bool {
	client := c.client(secret, scope)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, exists := c.byID[id]; exists {
		return false
	}
	c.byID[id] = client
	return true
}

// remove reports whether there was such a client.
func (c *tokenClients) remove(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, exists := c.byID[id]
	delete(c.byID, id)
	return exists
}

// authenticate returns the scope of the client with these credentials.
func (c *tokenClients) authenticate(id, secret string) (scope string, ok bool) {
	c.mu.Lock()
	client, known := c.byID[id]
	c.mu.Unlock()
	if !known {
		client = c.nobody
	}
	same := subtle.ConstantTimeCompare(c.hash(secret, client.salt), client.hash) == 1
	return client.scope, same && known
}
