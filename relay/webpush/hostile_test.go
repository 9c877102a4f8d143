package webpush_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
	"github.com/sealpush/sealpush/secret"
)

func TestAddressesThatAreNotPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8":                true,
		"142.250.0.1":            true,
		"2a00:1450:4001::200a":   true,
		"64:ff9b::808:808":       true, // 8.8.8.8 by NAT64
		"0.0.0.0":                false,
		"0.1.2.3":                false,
		"10.0.0.1":               false,
		"100.64.0.1":             false,
		"100.127.255.255":        false,
		"127.0.0.1":              false,
		"127.255.255.254":        false,
		"169.254.169.254":        false, // where clouds have credentials
		"172.16.0.1":             false,
		"172.31.255.255":         false,
		"192.0.0.170":            false,
		"192.168.1.1":            false,
		"198.18.0.1":             false,
		"224.0.0.1":              false,
		"240.0.0.1":              false,
		"255.255.255.255":        false,
		"::":                     false,
		"::1":                    false,
		"::ffff:127.0.0.1":       false,
		"::ffff:10.0.0.1":        false,
		"::7f00:1":               false,
		"64:ff9b::7f00:1":        false, // 127.0.0.1 by NAT64
		"64:ff9b::a9fe:a9fe":     false,
		"64:ff9b:1::808:808":     false,
		"100::1":                 false,
		"2001::1":                false,
		"2001:db8::1":            false,
		"2002:7f00:1::":          false, // 127.0.0.1 by 6to4
		"fc00::1":                false,
		"fd12:3456::1":           false,
		"fe80::1":                false,
		"fe80::1%eth0":           false,
		"2a00:1450::1%eth0":      false,
		"fec0::1":                false,
		"ff02::1":                false,
		"fd00:ec2::254":          false,
		"::ffff:169.254.169.254": false,
	} {
		if got := webpush.IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public %t", address, got)
		}
	}
}

// browserKeys are those of the example of RFC 8291, section 5.
var browserKeys = webpushtest.Keys{
	P256DH: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
	Auth:   "BTBZMqHH6r4Tts7J_aSIgg",
}

// forward subscribes with an endpoint and sends a page to it.
func forward(t *testing.T, ctx context.Context, f *webpush.Forwarder, store webpush.Store, endpoint string) error {
	t.Helper()
	token := strings.Repeat("ab", 32)
	err := store.Add(ctx, webpush.Stored{Device: webpush.DeviceKey(token), Subscription: webpush.Subscription{
		Endpoint: secret.New(endpoint), P256DH: browserKeys.P256DH, Auth: secret.New(browserKeys.Auth),
	}}, 10)
	if err != nil {
		t.Fatal(err)
	}
	return f.Forward(ctx, relay.Envelope{Device: secret.New(token), Suite: "x25519", Ciphertext: strings.Repeat("A", 68),
		CollapseID: collapseID, Priority: relay.Passive})
}

// wantBadGateway checks that a forward failed, and not as if the phone were gone.
func wantBadGateway(t *testing.T, name string, err error) {
	t.Helper()
	failure, ok := errors.AsType[*relay.ForwardError](err)
	if !ok || failure.Status != 0 && failure.Status != http.StatusBadGateway {
		t.Errorf("%s: %v", name, err)
	}
}

// startInternal is a service that only the relay's host can reach. It counts its
// connections.
func startInternal(t *testing.T, handler http.HandlerFunc) (server *httptest.Server, connections *atomic.Int64) {
	t.Helper()
	connections = &atomic.Int64{}
	server = httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, connections
}

func trusting(server *httptest.Server) webpush.Option {
	return webpush.WithTLSConfig(server.Client().Transport.(*http.Transport).TLSClientConfig)
}

// An operator who allows a push service has not allowed that its name means an
// address inside: neither as it is, nor by DNS, whatever it meant before.
func TestInternalServicesAreNotReached(t *testing.T) {
	server, connections := startInternal(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "example.com", "0.0.0.0"} {
		t.Run(host, func(t *testing.T) {
			resolveTo(t, "example.com.", "127.0.0.1") // a name that its owner lets mean this
			store := webpush.NewMemoryStore()
			endpoint := "https://" + host + ":" + port + "/push"
			f := newForwarder(t, webpush.GenerateKey(), store, webpush.WithPushService(host+":"+port), trusting(server))
			err := forward(t, t.Context(), f, store, endpoint)
			wantBadGateway(t, host, err)
			if connections.Load() != 0 {
				t.Fatalf("%d connections", connections.Load())
			}
		})
	}

	// The name is fine, and leads there, where the network is allowed.
	resolveTo(t, "example.com.", "127.0.0.1")
	store := webpush.NewMemoryStore()
	f := newForwarder(t, webpush.GenerateKey(), store, webpush.WithPushService("example.com:"+port), trusting(server), loopback)
	if err := forward(t, t.Context(), f, store, "https://example.com:"+port+"/push"); err != nil || connections.Load() != 1 {
		t.Errorf("allowed: %v, %d connections", err, connections.Load())
	}
}

// A name that meant a public address when it was first asked for means another one
// at each later question.
func TestRebinding(t *testing.T) {
	server, connections := startInternal(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	resolveTo(t, "example.com.", "192.0.2.1", "127.0.0.1", "127.0.0.1", "10.0.0.1", "169.254.169.254")
	addresses, err := net.DefaultResolver.LookupHost(t.Context(), "example.com")
	if err != nil || fmt.Sprint(addresses) != "[192.0.2.1]" {
		t.Fatalf("resolved to %v, %v", addresses, err)
	}
	store := webpush.NewMemoryStore()
	f := newForwarder(t, webpush.GenerateKey(), store, webpush.WithPushService("example.com:"+port), trusting(server))
	s := newSubscriptions(t, f)
	a := request(t, s, http.MethodPost, "/subscriptions", invitation,
		fmt.Sprintf(`{"endpoint":"https://example.com:%s/push","keys":{"p256dh":%q,"auth":%q}}`, port, browserKeys.P256DH, browserKeys.Auth))
	if a.status != http.StatusCreated {
		t.Fatalf("%d %v", a.status, a.body)
	}
	r := newRelay(t, f)
	for id := range 4 {
		if a := page(t, r, a.text("deviceToken"), id, "passive"); a.status != http.StatusBadGateway {
			t.Errorf("%d %v", a.status, a.body)
		}
	}
	if connections.Load() != 0 {
		t.Errorf("%d connections", connections.Load())
	}
}

// resolveTo answers questions for the IPv4 address of a name, one address a
// question and the last for good, until the test ends.
func resolveTo(t *testing.T, name string, addresses ...string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	resolver := net.DefaultResolver
	t.Cleanup(func() {
		net.DefaultResolver = resolver
		conn.Close()
	})
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	go func() {
		buffer := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Name.String() == name && q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addresses[0]).As4()},
				}}
				addresses = addresses[min(1, len(addresses)-1):]
			}
			if answer, err := m.Pack(); err == nil {
				conn.WriteTo(answer, from)
			}
		}
	}()
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	inside, connections := startInternal(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		server, _ := startInternal(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside.URL, status) })
		store := webpush.NewMemoryStore()
		f := newForwarder(t, webpush.GenerateKey(), store, webpush.WithPushService(strings.TrimPrefix(server.URL, "https://")), trusting(server), loopback)
		wantBadGateway(t, fmt.Sprint(status), forward(t, t.Context(), f, store, server.URL+"/push"))
	}
	if connections.Load() != 0 {
		t.Errorf("%d connections", connections.Load())
	}
}

func TestHugeAnswers(t *testing.T) {
	junk := strings.Repeat("a", 64<<10)
	var sent atomic.Int64
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil && sent.Add(int64(len(junk))) < 1<<30 {
			io.WriteString(w, junk)
		}
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		ok      bool
	}{
		"endless body of a 201": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			endless(w, r)
		}, true},
		"endless body of a 400": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"reason":"`)
			endless(w, r)
		}, false},
		"header": {func(w http.ResponseWriter, _ *http.Request) {
			for n := range 32 {
				w.Header().Set(fmt.Sprintf("X-%d", n), junk)
			}
			w.WriteHeader(http.StatusCreated)
		}, false},
		"reason that is no word": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			json.NewEncoder(w).Encode(map[string]string{"reason": "<script>\x1b[2J"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := startInternal(t, test.handler)
			store := webpush.NewMemoryStore()
			f := newForwarder(t, webpush.GenerateKey(), store, webpush.WithPushService(strings.TrimPrefix(server.URL, "https://")), trusting(server), loopback)
			sent.Store(0)
			err := forward(t, t.Context(), f, store, server.URL+"/push")
			server.Close()            // after the handler, which ends when the forwarder hangs up
			if sent.Load() > 64<<20 { // buffers of both ends hold some
				t.Errorf("read on after %d bytes", sent.Load())
			}
			if test.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantBadGateway(t, name, err)
			if failure, ok := errors.AsType[*relay.ForwardError](err); ok && (failure.Reason != "" || len(err.Error()) > 200) {
				t.Errorf("it says %q, reason %q", err, failure.Reason)
			}
		})
	}
}

// A push service that echoes the request in place of an answer puts no endpoint into
// the log.
func TestAnswersThatEchoTheEndpoint(t *testing.T) {
	const path = "/push/eyJhbGciOiJub25lIn0-the-browsers-own"
	server, _ := startInternal(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\n\r\n", r.URL.Path)
	})
	store := webpush.NewMemoryStore()
	f := newForwarder(t, webpush.GenerateKey(), store, webpush.WithPushService(strings.TrimPrefix(server.URL, "https://")), trusting(server), loopback)
	err := forward(t, t.Context(), f, store, server.URL+path)
	wantBadGateway(t, "echo", err)
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.Contains(text, "browsers-own") || strings.Contains(text, "eyJ") {
			t.Errorf("it says %q", text)
		}
	}
}

// An endpoint that never answers costs one forward 20 seconds, at whatever point it
// stops.
func TestEndpointsThatNeverAnswer(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	config := &tls.Config{Certificates: certified.TLS.Certificates}
	pool := certified.Client().Transport.(*http.Transport).TLSClientConfig
	silence := func(conn net.Conn) { io.Copy(io.Discard, conn) }
	for name, serve := range map[string]func(conn net.Conn){
		"no handshake": silence,
		"no header":    func(conn net.Conn) { silence(tls.Server(conn, config)) },
		"half a header": func(conn net.Conn) {
			secured := tls.Server(conn, config)
			go io.WriteString(secured, "HTTP/1.1 201 Created\r\nContent-Le")
			silence(secured)
		},
		"half a body": func(conn net.Conn) {
			secured := tls.Server(conn, config)
			go io.WriteString(secured, "HTTP/1.1 500 Trouble\r\nContent-Length: 4000\r\n\r\n{\"reason\":")
			silence(secured)
		},
		"a byte a second": func(conn net.Conn) {
			secured := tls.Server(conn, config)
			go silence(secured)
			io.WriteString(secured, "HTTP/1.1 500 Trouble\r\nX: ")
			for {
				if _, err := io.WriteString(secured, "x"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var served sync.WaitGroup
				store := webpush.NewMemoryStore()
				f := newForwarder(t, webpush.GenerateKey(), store, webpush.WithPushService("example.com:8443"), webpush.WithTLSConfig(pool))
				f.DialWith(func(context.Context, string, string) (net.Conn, error) {
					client, server := net.Pipe()
					served.Go(func() {
						defer server.Close()
						serve(server)
					})
					return client, nil
				})
				started := time.Now()
				wantBadGateway(t, name, forward(t, t.Context(), f, store, "https://example.com:8443/push"))
				if took := time.Since(started); took > 20*time.Second {
					t.Errorf("took %v", took)
				}
				served.Wait() // until the forwarder has hung up
			})
		})
	}
}

// A program that forwards what no relay takes is told so.
func TestOversizedEnvelopes(t *testing.T) {
	s := newSetup(t)
	token, _ := s.subscribe(t, s.service.Subscribe())
	err := s.forwarder.Forward(t.Context(), relay.Envelope{Device: secret.New(token), Ciphertext: strings.Repeat("A", 4000)})
	wantBadGateway(t, "4000 characters", err)
	if len(s.service.Messages()) != 0 {
		t.Error("sent")
	}
}

// Ten thousand browsers are served, and the next is told that there is no room. One
// more page costs no more than before.
func TestTenThousandSubscriptions(t *testing.T) {
	s := newSetup(t)
	subscription := s.service.Subscribe()
	body := toJSON(t, subscription)
	tokens := map[string]bool{}
	for range webpush.DefaultMaxSubscriptions {
		a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, body)
		if a.status != http.StatusCreated {
			t.Fatalf("%d %v", a.status, a.body)
		}
		tokens[a.text("deviceToken")] = true
	}
	if len(tokens) != webpush.DefaultMaxSubscriptions {
		t.Errorf("%d device tokens", len(tokens))
	}
	if a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, body); a.status != http.StatusInsufficientStorage {
		t.Errorf("one more: %d %v", a.status, a.body)
	}
	pages := 0
	for token := range tokens {
		if pages++; pages > 50 {
			break
		}
		if a := page(t, s.relay, token, pages, "passive"); a.status != http.StatusAccepted {
			t.Fatalf("%d %v", a.status, a.body)
		}
	}
}
