package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

func startAttack(at addresses) (*process, error) {
	p, err := start("attack")
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(p.ask).Encode(at); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// What the hostile clients do, and how often they did it.
const (
	slowBody        = "slow bodies"
	bigHeader       = "big headers"
	wrongCredential = "wrong credentials refused"
	registration    = "registrations"
	push            = "pushes"
	idleConnection  = "idle connections"
)

type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[what]++
}

// attack is the process of the hostile clients. Its input is the addresses, and then nothing until it is to end. Its
// output is what they did.
func attack(in io.Reader, out io.Writer) error {
	input := bufio.NewReader(in)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return err
	}
	var at addresses
	if err := json.Unmarshal(line, &at); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	did := &counts{of: map[string]int{}}
	var clients sync.WaitGroup
	for i, id := range hostileBridges() {
		for _, client := range []func(){
			func() { slowBodies(ctx, at, did) },
			func() { bigHeaders(ctx, at, did) },
			func() { wrongCredentials(ctx, at, did, i) },
			func() { registrations(ctx, at, did, id) },
			func() { idleConnections(ctx, at, did) },
		} {
			clients.Go(client)
		}
	}
	io.Copy(io.Discard, input)
	stop()
	clients.Wait()
	return json.NewEncoder(out).Encode(did.of)
}

// every calls f at each interval, whatever it returns, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// many does the same on so many goroutines. What it does ends early when a server hangs up, and is begun again within a
// second.
func many(ctx context.Context, n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			f(i)
			every(ctx, time.Second, func() { f(i) })
		})
	}
	all.Wait()
}

// dial opens a connection to one of the services, which is closed when ctx ends.
func dial(ctx context.Context, base string) (conn net.Conn, done func()) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return nil, func() {}
	}
	undo := context.AfterFunc(ctx, func() { conn.Close() })
	return conn, func() {
		undo()
		conn.Close()
	}
}

// slowBodies posts bodies that arrive a byte a second.
func slowBodies(ctx context.Context, at addresses, did *counts) {
	targets := []struct{ base, path string }{{at.Sealed, "/"}, {at.Token, "/token"}, {at.Push, "/push"}}
	many(ctx, 50, func(i int) {
		target := targets[i%len(targets)]
		conn, done := dial(ctx, target.base)
		defer done()
		if conn == nil {
			return
		}
		_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{", target.path)
		for err == nil {
			select {
			case <-time.After(time.Second):
				_, err = conn.Write([]byte(" "))
			case <-ctx.Done():
				return
			}
		}
		did.add(slowBody) // until the server hung up
	})
}

// bigHeaders sends requests whose header the servers must not keep.
func bigHeaders(ctx context.Context, at addresses, did *counts) {
	header := strings.Repeat("x", 900<<10)
	bases, next := []string{at.Sealed, at.Token, at.Push}, 0
	every(ctx, 200*time.Millisecond, func() {
		next++
		conn, done := dial(ctx, bases[next%len(bases)])
		defer done()
		if conn != nil {
			fmt.Fprintf(conn, "GET /health HTTP/1.1\r\nHost: x\r\nX-Big: %s\r\n\r\n", header)
			io.Copy(io.Discard, io.LimitReader(conn, 64<<10))
			did.add(bigHeader)
		}
	})
}

// wrongCredentials asks for tokens, for clients that there are and for others.
func wrongCredentials(ctx context.Context, at addresses, did *counts, which int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	guesses := 0
	every(ctx, 2*time.Second, func() {
		var burst sync.WaitGroup
		for i := range 200 {
			guesses++
			id, secret := []string{honestBridge, "admin", "nobody"}[i%3], fmt.Sprintf("%032d%032d", which, guesses)
			burst.Go(func() {
				var answer struct{}
				err := post(ctx, client, at.Token+"/token", "", fmt.Sprintf(`{"client_id":%q,"client_secret":%q}`, id, secret), &answer)
				if refused, ok := errors.AsType[statusError](err); ok && refused.status == http.StatusUnauthorized {
					did.add(wrongCredential)
				}
			})
		}
		burst.Wait()
	})
}

// registrations makes a client of the bridge relay's register devices without end.
func registrations(ctx context.Context, at addresses, did *counts, id string) {
	client := &http.Client{Timeout: 10 * time.Second}
	var token struct {
		Value string `json:"access_token"`
	}
	credentials := fmt.Sprintf(`{"client_id":%q,"client_secret":%q}`, id, at.Secrets[id])
	if err := post(ctx, client, at.Token+"/token", "", credentials, &token); err != nil {
		fmt.Fprintln(os.Stderr, "hostile: a registering client got no token:", err)
		return
	}
	made := 0
	every(ctx, 20*time.Millisecond, func() {
		var answer struct{}
		made++
		err := post(ctx, client, at.Push+"/register", token.Value, fmt.Sprintf(`{"device_token":"%s%d","platform":"ios"}`, strings.Repeat("x", 1000), made), &answer)
		if _, refused := errors.AsType[statusError](err); err == nil || refused { // refused are those beyond 256 devices
			did.add(registration)
		}
		if made%25 == 0 {
			body := fmt.Sprintf(`{"title":"t","body":%q}`, strings.Repeat("x", 7<<10))
			if post(ctx, client, at.Push+"/push", token.Value, body, &answer) == nil {
				did.add(push)
			}
		}
	})
}

// idleConnections holds connections, half of them after a request.
func idleConnections(ctx context.Context, at addresses, did *counts) {
	bases := []string{at.Sealed, at.Token, at.Push}
	many(ctx, 100, func(i int) {
		conn, done := dial(ctx, bases[i%len(bases)])
		defer done()
		if conn == nil {
			return
		}
		if i%2 == 0 {
			fmt.Fprint(conn, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
		}
		did.add(idleConnection)
		io.Copy(io.Discard, conn) // until the server hangs up
	})
}
