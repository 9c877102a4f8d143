package sealpush_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/internal/transport"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// attack answers one request on a raw connection, which is closed when it returns. Its writes fail when the client has
// gone.
type attack struct {
	name   string
	answer func(conn net.Conn, request []byte)
	says   string // what every caller's error says; empty when they differ
}

func say(text string) func(net.Conn, []byte) {
	return func(conn net.Conn, _ []byte) { io.WriteString(conn, text) }
}

// sayAndHang leaves the connection open until the client closes it.
func sayAndHang(text string) func(net.Conn, []byte) {
	return func(conn net.Conn, _ []byte) {
		io.WriteString(conn, text)
		io.Copy(io.Discard, conn)
	}
}

func drip(head string) func(net.Conn, []byte) {
	return func(conn net.Conn, _ []byte) {
		_, err := io.WriteString(conn, head)
		for err == nil {
			advance(time.Second)
			_, err = io.WriteString(conn, "1")
		}
	}
}

// flood writes up to a gigabyte and fails the test when anybody reads more than a little of it.
func flood(head, piece string) func(net.Conn, []byte) {
	return func(conn net.Conn, _ []byte) {
		_, err := io.WriteString(conn, head)
		piece := strings.Repeat(piece, 1+4096/len(piece))
		written := 0
		for err == nil && written < 1<<30 {
			var n int
			n, err = io.WriteString(conn, piece)
			written += n
		}
		if written > 1<<20 {
			panic(fmt.Sprintf("the client read %d bytes", written))
		}
	}
}

// quote answers with what it was asked, the secrets in it included.
func quote(format string) func(net.Conn, []byte) {
	return func(conn net.Conn, request []byte) {
		text := strings.Join(strings.Fields(string(request)), "_")
		fmt.Fprintf(conn, format, text)
	}
}

func attacks() []attack {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 256 {
		z.Write(make([]byte, 64<<10))
	}
	z.Close()
	const ok = "HTTP/1.1 200 OK\r\n"
	sized := func(status, body string) func(net.Conn, []byte) {
		return say(fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, len(body), body))
	}
	list := []attack{
		{"silence", sayAndHang(""), ""},
		{"header byte by byte", drip("HTTP/1.1 200 O"), ""},
		{"body byte by byte", drip(ok + "Content-Length: 100000\r\n\r\n"), ""},
		{"failure byte by byte", drip("HTTP/1.1 400 Bad\r\nContent-Length: 100000\r\n\r\n"), ""},
		{"refusal byte by byte", drip("HTTP/1.1 401 No\r\nContent-Length: 100000\r\n\r\n"), ""},
		{"head, then nothing", sayAndHang(ok + "Content-Length: 10\r\n\r\n"), ""},
		{"endless body", flood(ok+"\r\n", "x"), ""},
		{"endless failure", flood("HTTP/1.1 500 No\r\n\r\n", "x"), ""},
		{"a gigabyte", flood(ok+"Content-Length: 1073741824\r\n\r\n", "{"), ""},
		{"endless header", flood(ok, "X-Header: 1\r\n"), ""},
		{"endless status line", flood("HTTP/1.1 200 ", "O"), ""},
		{"endless early hints", flood("", "HTTP/1.1 103 Early Hints\r\n\r\n"), ""},
		{"endless chunk size", flood(ok+"Transfer-Encoding: chunked\r\n\r\n", "0"), ""},
		{"switches protocols", sayAndHang("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), "101"},
		{"gzip bomb", say(ok + "Content-Encoding: gzip\r\n\r\n" + bomb.String()), ""},
		{"HTML", sized("200 OK", "<html>sign in</html>"), ""},
		{"binary", sized("200 OK", "\x00\xff\x1b[31m"), ""},
		{"list", sized("200 OK", `[{"ok":true}]`), ""},
		{"null", sized("200 OK", `null`), ""},
		{"other shape", sized("200 OK", `{"ok":"yes","access_token":{"a":1},"keys":7,"results":{}}`), ""},
		{"forged log lines", sized("400 Bad Request", "no\r\nlevel=ERROR msg=\"all is lost\"\n\x1b[2J"), ""},
		{"forged log line in the status", say("HTTP/1.1 503 x\rlevel=ERROR\r\nContent-Length: 0\r\n\r\n"), ""},
		{"closed at once", say(""), ""},
		{"closed in the status line", say("HTTP/1.1 20"), ""},
		{"closed in the header", say(ok + "Content-Le"), ""},
		{"closed in the body", say(ok + "Content-Length: 100\r\n\r\n{"), ""},
		{"negative length", say(ok + "Content-Length: -5\r\n\r\n"), ""},
		{"absurd length", say(ok + "Content-Length: 99999999999999999999\r\n\r\n"), ""},
		{"two lengths", say(ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), ""},
		{"absurd Retry-After", say("HTTP/1.1 429 Slow Down\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n"), ""},
		{"negative Retry-After", say("HTTP/1.1 503 Later\r\nRetry-After: -1\r\nContent-Length: 0\r\n\r\n"), ""},
		{"quotes in the protocol", quote("%s\r\n\r\n"), ""},
		{"quotes in the status", quote("HTTP/1.1 503 %s\r\nContent-Length: 0\r\n\r\n"), ""},
		{"quotes in a bad header", quote("HTTP/1.1 200 OK\r\n%s\r\n\r\n"), ""},
		{"quotes in the length", quote("HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n"), ""},
		{"quotes in a bad location", quote("HTTP/1.1 302 Found\r\nLocation: http://[%s\r\nContent-Length: 0\r\n\r\n"), ""},
		{"quotes in the body", quote("HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n%s"), ""},
		{"quotes as an error", quote("HTTP/1.1 400 Bad\r\nConnection: close\r\n\r\n{\"ok\":false,\"error\":%q}"), ""},
		{"quotes as results", quote("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"ok\":true,\"results\":[{\"status\":\"failed\",\"reason\":%q}]}"), "any"},
	}
	for _, code := range []string{"300", "301", "302", "303", "305", "307", "308"} {
		list = append(list, attack{"redirect " + code,
			say("HTTP/1.1 " + code + " Go\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n"), code})
	}
	return list
}

// statuses are the answers that are failures by their status alone.
func statuses() []attack {
	var list []attack
	for status := 104; status < 600; status++ {
		if status/100 == 2 || status/100 == 3 || status == 401 {
			continue
		}
		answer, says := fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", status), fmt.Sprint(status)
		if status < 200 { // not the last word
			list = append(list, attack{"status " + says, sayAndHang(answer), ""})
			continue
		}
		list = append(list, attack{"status " + says, say(answer), says})
	}
	return list
}

// firstTokens are those that the honest services of each scheme issue as a bubble begins. All bubbles begin at the same
// time, and RS256 signs the same claims alike, so each is signed once.
var firstTokens sync.Map

func (w *world) firstToken() string {
	token, ok := firstTokens.Load(w.scheme)
	if !ok {
		token, _ = firstTokens.LoadOrStore(w.scheme, w.honest.Token("bridge"))
	}
	return token.(string)
}

// world is a network in memory with one host under attack and an honest service behind all others.
type world struct {
	t        *testing.T
	scheme   string // with https, an attack is against the client's handshake
	honest   *relaytest.BridgeService
	attacked string // host
	attack   atomic.Pointer[attack]
	open     atomic.Int64 // connections
	client   *http.Client
	log      bytes.Buffer // by a handler that serialises
	logger   *slog.Logger
	secrets  []string
}

var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// certified is a server for the sake of its certificate. It is made outside any bubble.
var certified = sync.OnceValue(func() *httptest.Server { return httptest.NewTLSServer(nil) })

func newWorld(t *testing.T, attacked, scheme string) *world {
	w := &world{t: t, scheme: scheme, attacked: attacked}
	w.honest = relaytest.NewUnstartedBridgeService(scheme+"://token.example", scheme+"://relay.example",
		relaytest.WithHashRounds(1), relaytest.WithSigningKey(signingKey()))
	own := transport.New() // what users get
	own.Proxy, own.DialContext = nil, w.dial
	if scheme == "https" {
		own.TLSClientConfig = certified().Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		own.TLSClientConfig.ServerName = "example.com" // a name in httptest's certificate
	}
	w.client = &http.Client{Transport: own}
	w.logger = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return w
}

func (w *world) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	if host == "evil.example" {
		w.t.Error("followed the redirect to another host")
		return nil, errors.New("unreachable")
	}
	client, server := net.Pipe()
	w.open.Add(1)
	go func() {
		defer w.open.Add(-1)
		defer server.Close()
		if w.scheme == "http" {
			w.serve(host, server)
			return
		}
		if a := w.attack.Load(); a != nil && host == w.attacked {
			a.answer(server, nil)
			return
		}
		w.serve(host, tls.Server(server, &tls.Config{Certificates: certified().TLS.Certificates}))
	}()
	return client, nil
}

func (w *world) serve(host string, conn net.Conn) {
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		if a := w.attack.Load(); a != nil && host == w.attacked {
			head := ""
			for name, values := range request.Header {
				head += name + ":" + strings.Join(values, ",") + " "
			}
			a.answer(conn, append([]byte(head), body...))
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		recorder := httptest.NewRecorder()
		switch {
		case host == "token.example":
			w.honest.TokenHandler().ServeHTTP(recorder, request)
		case request.URL.Path == "/":
			recorder.WriteHeader(http.StatusAccepted)
		default:
			w.honest.RelayHandler().ServeHTTP(recorder, request)
		}
		answer := recorder.Result()
		answer.ContentLength = int64(recorder.Body.Len())
		if answer.Write(conn) != nil {
			return
		}
	}
}

// caller is one of our ways to call a service.
type caller struct {
	name        string
	host        string        // that is attacked
	limit       time.Duration // that the caller promises
	everyStatus bool          // is tried, once for each code that reads statuses
	call        func(t *testing.T, w *world) func(context.Context) error
}

func callers() []caller {
	config := func(w *world) bridge.Config {
		clientSecret := w.honest.AddClient("bridge").Reveal()
		w.secrets = append(w.secrets, clientSecret, w.firstToken())
		return bridge.Config{URL: w.scheme + "://relay.example", TokenURL: w.scheme + "://token.example", ClientID: "bridge", ClientSecret: secret.New(clientSecret)}
	}
	newBridge := func(t *testing.T, w *world) *bridge.Client {
		c, err := bridge.New(config(w), bridge.WithHTTPClient(w.client), bridge.WithLogger(w.logger))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	device := bridge.Device{Token: secret.New(fcmToken), Platform: "android"}
	return []caller{
		{"Source.Token", "token.example", 10 * time.Second, true, func(t *testing.T, w *world) func(context.Context) error {
			c := config(w)
			source, err := pushauth.NewSource(pushauth.Credentials{TokenURL: c.TokenURL, ClientID: c.ClientID, ClientSecret: c.ClientSecret},
				pushauth.WithHTTPClient(w.client), pushauth.WithLogger(w.logger))
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) error {
				_, err := source.Token(ctx)
				return err
			}
		}},
		{"Register", "relay.example", 20 * time.Second, false, func(t *testing.T, w *world) func(context.Context) error {
			c := newBridge(t, w)
			return func(ctx context.Context) error { return c.Register(ctx, device) }
		}},
		{"Unregister", "relay.example", 20 * time.Second, false, func(t *testing.T, w *world) func(context.Context) error {
			c := newBridge(t, w)
			return func(ctx context.Context) error { return c.Unregister(ctx, device.Token) }
		}},
		{"Notify", "relay.example", 20 * time.Second, true, func(t *testing.T, w *world) func(context.Context) error {
			c := newBridge(t, w)
			return func(ctx context.Context) error {
				result := c.Notify(ctx, bridge.Notification{Title: "Agent", Body: "New activity"})
				fmt.Fprintf(&w.log, "%+v %#v\n", result, result)
				return result.Err
			}
		}},
		{"Notify without a token", "token.example", 20 * time.Second, false, func(t *testing.T, w *world) func(context.Context) error {
			c := newBridge(t, w)
			return func(ctx context.Context) error {
				return c.Notify(ctx, bridge.Notification{Title: "Agent", Body: "New activity"}).Err
			}
		}},
		{"Verify", "token.example", 5 * time.Second, false, func(t *testing.T, w *world) func(context.Context) error {
			verifier, err := verify.New(verify.Config{JWKSURL: w.scheme + "://token.example/.well-known/jwks.json", Issuer: w.scheme + "://token.example",
				Audience: w.scheme + "://relay.example", Scope: "push:write"}, verify.WithHTTPClient(&http.Client{Transport: w.client.Transport,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}), verify.WithLogger(w.logger))
			if err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context) error {
				_, err := verifier.Verify(ctx, w.honest.Token("bridge"))
				return err
			}
		}},
		{"Send", "relay.example", relayclient.DefaultTimeout, true, func(t *testing.T, w *world) func(context.Context) error {
			client, err := relayclient.New(w.scheme+"://"+relayUser+":"+relayPass+"@relay.example/?"+relayQuery,
				relayclient.WithHTTPClient(w.client), relayclient.WithLogger(w.logger))
			if err != nil {
				t.Fatal(err)
			}
			phone := pairing.Device{ID: "02177c7da112d2b0", Name: "phone", Platform: "ios", PushToken: secret.New(deviceToken), PublicKey: phoneKey.Public()}
			return func(ctx context.Context) error {
				push := relayclient.Push{Alert: payload.NewTest("host"), Salt: secret.New(fleetSalt)}
				return client.Send(ctx, push, []pairing.Device{phone})[0].Err
			}
		}},
	}
}

// Each call returns in time with an error that says what happened and holds no secret, leaves nothing behind (a bubble does
// not end while a goroutine does), and the next call works.
func TestHostileServers(t *testing.T) {
	attacks, statuses := attacks(), statuses()
	for _, c := range callers() {
		t.Run(c.name, func(t *testing.T) {
			list := attacks
			if c.everyStatus {
				list = slices.Concat(attacks, statuses)
			}
			for _, a := range list {
				t.Run(a.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { assault(t, c, a, "http") })
				})
			}
		})
	}
}

// The same where TLS fails or stalls: no byte of a request has been sent by then.
func TestHostileHandshakes(t *testing.T) {
	certified()
	untrusted := selfSigned(t)
	for _, c := range callers() {
		t.Run(c.name, func(t *testing.T) {
			for _, a := range []attack{
				{"silence", sayAndHang(""), ""},
				{"closed at once", say(""), ""},
				{"not TLS", sayAndHang("HTTP/1.1 400 Bad Request\r\n\r\n"), ""},
				{"half a record", sayAndHang("\x16\x03\x03\x40\x00\x02"), ""},
				{"byte by byte", drip("\x16\x03\x03\x3f\xff\x02\x00"), ""},
				{"an alert", say("\x15\x03\x03\x00\x02\x02\x28"), ""},
				{"a certificate of nobody's", func(conn net.Conn, _ []byte) {
					tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{untrusted}}).Handshake()
					io.Copy(io.Discard, conn)
				}, "certificate"},
			} {
				t.Run(a.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { assault(t, c, a, "https") })
				})
			}
		})
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signingKey().Public(), signingKey())
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: signingKey()}
}

func assault(t *testing.T, c caller, a attack, scheme string) {
	w := newWorld(t, c.host, scheme)
	call := c.call(t, w)
	w.attack.Store(&a)
	start := time.Now()
	err := call(t.Context())
	if took := time.Since(start); took > c.limit+time.Second {
		t.Errorf("took %v", took)
	}
	ignored := c.name == "Send" || c.name == "Notify" || a.says == "any" // a relay's 2xx means that it has the alert, whatever its body says
	if err == nil && !ignored {
		t.Error("took it for a success")
	}
	if err != nil {
		if text := err.Error(); strings.ContainsAny(text, "\r\n\x1b") || len(text) > 2048 || a.says != "any" && !strings.Contains(text, a.says) {
			t.Errorf("the error is %.3000q", text)
		}
		fmt.Fprintf(&w.log, "%v %+v %#v\n", err, err, err)
	}
	w.attack.Store(nil)
	advance(2 * time.Minute) // past every back-off
	if err := call(t.Context()); err != nil {
		t.Errorf("the next call: %v", err)
	}
	w.client.CloseIdleConnections()
	synctest.Wait()
	if n := w.open.Load(); n != 0 {
		t.Errorf("%d connections are left open", n)
	}
	wantNoSecret(t, w.log.String(), []form{asText}, w.secrets...)
}

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }
