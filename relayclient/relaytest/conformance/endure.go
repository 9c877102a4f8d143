package conformance

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

func endureChecks() []Check {
	const concurrent = "The POSTs for one alert are issued concurrently, so a relay sees a burst of up to one request per paired device."
	return []Check{
		{
			Name: "endure-slow-header", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: concurrent,
			Does: "Opens a connection on which the request's header arrives a byte at a time and never ends. Wants an envelope on a new connection accepted meanwhile.",
			run: func(ctx context.Context, s *session) error {
				return s.othersServed(ctx, "a header that does not end", func(w io.Writer) error {
					for _, b := range []byte(s.requestHead(300)[:40]) {
						if _, err := w.Write([]byte{b}); err != nil {
							return err
						}
					}
					return nil
				})
			},
		},
		{
			Name: "endure-slow-body", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: concurrent,
			Does: "Opens a connection on which half a body arrives, and then nothing. Wants an envelope on a new connection accepted meanwhile.",
			run: func(ctx context.Context, s *session) error {
				return s.othersServed(ctx, "a body that does not end", s.writeHalf)
			},
		},
		{
			Name: "endure-broken-body", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: concurrent,
			Does: "Opens a connection, sends half a body and resets it. Wants an envelope on a new connection accepted after that.",
			run: func(ctx context.Context, s *session) error {
				conn, err := s.dial(ctx)
				if err != nil {
					return err
				}
				defer conn.Close()
				if err := s.writeHalf(conn); err != nil {
					return s.noAnswer(err)
				}
				reset(conn)
				return during("after half a body and a reset", s.acceptsAnew(ctx))
			},
		},
		{
			Name: "endure-oversize", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: concurrent,
			Does: "Posts a body of 1 MiB. Wants an envelope on a new connection accepted after that. Whatever becomes of the large one, a refusal or the end of its connection, is the relay's business, unless it is taken: no relay has so much to forward.",
			run: func(ctx context.Context, s *session) error {
				r, err := s.sendOnce(ctx, request{method: http.MethodPost, url: s.target.URL, body: newEnvelope().with("ciphertext", ciphertextOf(3<<18)).encode()})
				if err == nil && r.took() {
					return fmt.Errorf("a body of 1 MiB was answered %v", r)
				}
				return during("after a body of 1 MiB", s.acceptsAnew(ctx))
			},
		},
	}
}

// headStart is how long a relay has to turn to a slow request, so that the envelope after it does not overtake it.
const headStart = 100 * time.Millisecond

// othersServed keeps a connection open on which write has sent something, and posts an envelope on another one.
func (s *session) othersServed(ctx context.Context, what string, write func(io.Writer) error) error {
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := write(conn); err != nil {
		return s.noAnswer(err)
	}
	if err := sleep(ctx, headStart); err != nil {
		return err
	}
	return during("during "+what, s.acceptsAnew(ctx))
}

// acceptsAnew expects that an envelope on a new connection is taken: on one that is open already it might be even if no
// other can be opened.
func (s *session) acceptsAnew(ctx context.Context) error {
	s.client.CloseIdleConnections()
	return s.accepts(ctx, newEnvelope().encode())
}

func during(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// writeHalf sends a request up to the middle of its body.
func (s *session) writeHalf(w io.Writer) error {
	body := newEnvelope().encode()
	_, err := io.WriteString(w, s.requestHead(len(body))+string(body[:len(body)/2]))
	return err
}

// dial opens a connection to the sealed relay on which anything can be sent, within the time that an answer may take.
func (s *session) dial(ctx context.Context) (net.Conn, error) {
	u, err := url.Parse(s.target.URL)
	if err != nil {
		return nil, unknown("the target's URL cannot be dialled")
	}
	transport, ok := s.client.Transport.(*http.Transport)
	if s.client.Transport == nil {
		transport, ok = http.DefaultTransport.(*http.Transport)
	}
	if !ok {
		return nil, unknown("the target's client has a transport of its own, through which no broken request can be sent")
	}
	if transport.Proxy != nil {
		if proxy, err := transport.Proxy(&http.Request{URL: u}); err != nil || proxy != nil {
			return nil, unknown("the relay is behind a proxy, through which no broken request can be sent")
		}
	}
	dial := transport.DialContext
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	dialCtx, cancel := context.WithTimeout(ctx, s.target.Timeout)
	defer cancel()
	conn, err := dial(dialCtx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, unknown("no connection for a broken request could be opened: %v", s.noAnswer(err))
	}
	conn.SetDeadline(time.Now().Add(s.target.Timeout))
	if u.Scheme == "http" {
		return conn, nil
	}
	config := transport.TLSClientConfig.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	config.ServerName = cmp.Or(config.ServerName, u.Hostname())
	config.NextProtos = []string{"http/1.1"}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(dialCtx); err != nil {
		conn.Close()
		return nil, unknown("no HTTP/1.1 connection for a broken request could be opened: %v", s.noAnswer(err))
	}
	return secured, nil
}

// reset closes a connection as a machine that goes down does, where the connection can be told.
func reset(conn net.Conn) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// requestHead is the header of a post with a body of that size.
func (s *session) requestHead(size int) string {
	req, err := http.NewRequest(http.MethodPost, s.target.URL, nil)
	if err != nil {
		return "" // unreachable: the URL was looked at
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n",
		req.URL.RequestURI(), req.URL.Host, size)
	if user := req.URL.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
		head += "Authorization: " + req.Header.Get("Authorization") + "\r\n"
	}
	return head + "\r\n"
}
