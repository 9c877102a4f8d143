package conformance

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// dial opens a connection to the sealed relay on which anything can be sent,
// within the time that an answer may take.
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

// reset closes a connection as a machine that goes down does, where the
// connection can be told.
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
