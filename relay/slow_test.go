package relay_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A pipeListener hands out one end of the connections that are dialled.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	conn, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l pipeListener) Close() error   { return nil }
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// handlers are those that people serve.
func handlers(t *testing.T) map[string]http.Handler {
	t.Helper()
	sealed, err := relay.New(relay.WithForwarder(forwarderFunc(nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sealed.Close)
	tokens, err := relay.NewTokenService(relay.WithIssuer("https://token.example"), relay.WithAudience("https://push.example"))
	if err != nil {
		t.Fatal(err)
	}
	bridge, err := relay.NewBridge(relay.WithAuthenticator(&verify.Verifier{}), relay.WithBridgeForwarder(nobody{}))
	if err != nil {
		t.Fatal(err)
	}
	inTests := relaytest.NewUnstartedRelay()
	t.Cleanup(inTests.Close)
	return map[string]http.Handler{"/": sealed, "/token": tokens, "/push": bridge, "/?in=tests": inTests}
}

type nobody struct{ relay.BridgeForwarder }

// A body that never ends is given up after ten seconds, or sooner if the server
// around the handler says so, and its connection with it.
func TestSlowBodiesDoNotStayOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		limit time.Duration // the server's ReadTimeout
		want  time.Duration
	}{
		"a server without limits":       {0, 10 * time.Second},
		"a server with a shorter limit": {3 * time.Second, 3 * time.Second},
		"a server with a longer limit":  {time.Minute, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for path, handler := range handlers(t) {
					listener := make(pipeListener)
					server := &http.Server{Handler: handler, ReadTimeout: tt.limit}
					go server.Serve(listener)
					client, conn := net.Pipe()
					listener <- conn
					begin := time.Now()
					fmt.Fprintf(client, "POST %s HTTP/1.1\r\nHost: relay\r\nContent-Length: 100\r\n\r\n{", path)
					answers := bufio.NewReader(client)
					resp, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Fatalf("%s: %v", path, err)
					}
					io.Copy(io.Discard, resp.Body)
					if resp.StatusCode != http.StatusRequestTimeout || !resp.Close {
						t.Errorf("%s: answered %s, the connection is to close: %v", path, resp.Status, resp.Close)
					}
					if _, err := answers.ReadByte(); err != io.EOF {
						t.Errorf("%s: after the answer: %v", path, err)
					}
					// The server lingers for half a second, so that the answer arrives.
					if waited := time.Since(begin).Truncate(time.Second); waited != tt.want {
						t.Errorf("%s: open for %v, want %v", path, waited, tt.want)
					}
					client.Close()
					close(listener)
					server.Close()
				}
			})
		})
	}
}

// A forward may take longer than a body: the limit of the one does not end the
// other, nor the next request on the connection.
func TestSlowForwardsAreNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		inTests := relaytest.NewRelay(relaytest.InMemory(), relaytest.WithoutPolicy())
		defer inTests.Close()
		for n := range 3 {
			inTests.Script(1, relaytest.Answer{Delay: 25 * time.Second})
			if got := outcomeOf(t, inTests); got != "forwarded" {
				t.Errorf("request %d: %s", n, got)
			}
		}
		if stats := inTests.Stats(); stats.Connections != 1 || time.Since(begin) < 75*time.Second {
			t.Errorf("%d connections", stats.Connections)
		}
	})
}

func TestKeepAliveIsAnnounced(t *testing.T) {
	for name, tt := range map[string]struct {
		idle, read time.Duration
		want       string
	}{
		"idle timeout":    {90*time.Second + time.Millisecond, 15 * time.Second, "timeout=90"},
		"read timeout":    {0, 15 * time.Second, "timeout=15"},
		"less than 1 s":   {900 * time.Millisecond, 0, "timeout=0"},
		"no limit is set": {0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for path, handler := range handlers(t) {
					listener := make(pipeListener)
					server := &http.Server{Handler: handler, IdleTimeout: tt.idle, ReadTimeout: tt.read}
					go server.Serve(listener)
					client, conn := net.Pipe()
					listener <- conn
					answers := bufio.NewReader(client)
					for _, version := range []string{"HTTP/1.1\r\nHost: relay", "HTTP/1.1\r\nHost: relay\r\nConnection: close"} {
						fmt.Fprintf(client, "POST %s %s\r\nContent-Length: 2\r\n\r\n{}", path, version)
						resp, err := http.ReadResponse(answers, nil)
						if err != nil {
							t.Fatalf("%s: %v", path, err)
						}
						io.Copy(io.Discard, resp.Body)
						want := tt.want
						if strings.Contains(version, "close") {
							want = ""
						}
						if got := resp.Header.Get("Keep-Alive"); got != want {
							t.Errorf("%s: Keep-Alive %q, want %q", path, got, want)
						}
					}
					client.Close()
					close(listener)
					server.Close()
				}
			})
		})
	}
}
