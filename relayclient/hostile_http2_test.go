package relayclient_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
)

// HTTP/2 frame types and flags (RFC 9113, section 6).
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway, frameContinuation = 0, 1, 3, 4, 6, 7, 9

	endStream, ack, endHeaders = 1, 1, 4
)

// frame returns one HTTP/2 frame (RFC 9113, section 4.1).
func frame(kind, flags byte, stream uint32, payload string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return string(binary.BigEndian.AppendUint32(append(head, flags), stream)) + payload
}

// status returns a header block that says :status, in plain letters (RFC 7541, section 6.2.2).
func status(code string) string { return "\x08\x03" + code }

// frames is a relay over HTTP/2 which gives its settings and answers each
// request, on the stream it came on, with what reply returns. Pings it answers.
func frames(settings string, reply func(stream uint32) string) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := io.ReadFull(conn, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
			return
		}
		// What a client does not read must not keep us from reading.
		out := make(chan string, 100)
		defer close(out)
		go func() {
			for text := range out {
				io.WriteString(conn, text)
			}
		}()
		write := func(text string) { out <- text }
		write(frame(frameSettings, 0, 0, settings))
		for {
			var head [9]byte
			if _, err := io.ReadFull(conn, head[:]); err != nil {
				return
			}
			payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(conn, payload); err != nil {
				return
			}
			switch {
			case head[3] == frameHeaders:
				write(reply(binary.BigEndian.Uint32(head[5:])))
			case head[3] == framePing && head[4] == 0:
				write(frame(framePing, ack, 0, string(payload)))
			}
		}
	}
}

const (
	noError       = "\x00\x00\x00\x00"
	internalError = "\x00\x00\x00\x02"
	refusedStream = "\x00\x00\x00\x07"
	noStream      = "\x00\x00\x00\x00"
)

func TestHostileHTTP2(t *testing.T) {
	const limit = relayclient.DefaultTimeout
	tests := []struct {
		name     string
		settings string
		reply    func(stream uint32) string
		takes    time.Duration
		want     func(relayclient.Outcome) bool
	}{
		{"never answers", "", func(uint32) string { return "" }, limit, wantNoAnswer("no answer within 10s")},
		{"refuses every stream", "", func(s uint32) string { return frame(frameReset, 0, s, refusedStream) }, limit, wantNoAnswer()},
		{"resets every stream", "", func(s uint32) string { return frame(frameReset, 0, s, internalError) }, 0, wantNoAnswer("INTERNAL_ERROR")},
		{"goes away with an error", "", func(s uint32) string {
			return frame(frameGoAway, 0, 0, string(binary.BigEndian.AppendUint32(nil, s))+internalError)
		}, limit, wantNoAnswer()},
		{"goes away and has seen nothing", "", func(uint32) string { return frame(frameGoAway, 0, 0, noStream+noError) }, limit, wantNoAnswer()},
		{"allows no stream", "\x00\x03\x00\x00\x00\x00", func(uint32) string { return "" }, limit, wantNoAnswer("no answer within 10s")},
		{"changes the protocol", "", func(s uint32) string { return frame(frameHeaders, endHeaders|endStream, s, status("101")) }, limit, func(o relayclient.Outcome) bool {
			return wantNoAnswer()(o) || wantStatus(101)(o)
		}},
		{"informational answers without end", "", func(s uint32) string {
			return strings.Repeat(frame(frameHeaders, endHeaders, s, status("103")), 10_000)
		}, limit, wantNoAnswer()},
		{"headers without end", "", func(s uint32) string {
			block := frame(frameContinuation, 0, s, strings.Repeat("\x00\x01x\x7f\x01"+strings.Repeat("y", 128), 100))
			return frame(frameHeaders, 0, s, status("202")) + strings.Repeat(block, 100)
		}, 0, wantNoAnswer()},
		{"a frame of no kind", "", func(uint32) string { return frame(frameData, 0, 0, "data of no stream") }, 0, wantNoAnswer("PROTOCOL_ERROR")},
		{"not a header block", "", func(s uint32) string { return frame(frameHeaders, endHeaders, s, "\xff\xff\xff\xff\xff\xff") }, 0, wantNoAnswer()},
		{"a body without end", "", func(s uint32) string {
			return frame(frameHeaders, endHeaders, s, status("500")) + strings.Repeat(frame(frameData, 0, s, strings.Repeat("no ", 400)), 10)
		}, limit, wantStatus(500, "no no")},
		{"a success without end", "", func(s uint32) string { return frame(frameHeaders, endHeaders, s, status("202")) }, limit, accepted},
	}
	config, _ := http2Config(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reformed atomic.Bool
				reply := func(stream uint32) string {
					if reformed.Load() {
						return frame(frameHeaders, endHeaders|endStream, stream, status("202"))
					}
					return tt.reply(stream)
				}
				survive(t, "https://relay.sealpush.test", overTLS(config, frames(tt.settings, reply)), &reformed, tt.takes, tt.want)
			})
		})
	}
}

// A relay that goes away says which streams it has not seen. They are sent again.
func TestStreamsThatTheRelayDidNotSee(t *testing.T) {
	config, trusting := http2Config(t)
	for name, reply := range map[string]func(uint32) string{
		"GOAWAY":         func(uint32) string { return frame(frameGoAway, 0, 0, noStream+noError) },
		"REFUSED_STREAM": func(s uint32) string { return frame(frameReset, 0, s, refusedStream) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen atomic.Int32
				answer := func(s uint32) string {
					if seen.Add(1) <= 3 {
						return reply(s)
					}
					return frame(frameHeaders, endHeaders|endStream, s, status("202"))
				}
				client, _ := newClientAt(t, "https://relay.sealpush.test")
				relayclient.SetDial(client, func(context.Context, string, string) (net.Conn, error) {
					conn, peer := net.Pipe()
					go overTLS(config, frames("", answer))(peer)
					return conn, nil
				}, trusting)
				devices := sharedKeyDevices(3)
				wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
				client.Close()
			})
		})
	}
}

// http2Config returns configurations of a relay and of who trusts it.
func http2Config(t *testing.T) (server, client *tls.Config) {
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	client = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName = "example.com"
	return s.TLS.Clone(), client
}

func overTLS(config *tls.Config, relay hostile) hostile {
	return func(conn net.Conn) {
		defer conn.Close()
		secure := tls.Server(conn, config)
		if secure.Handshake() == nil {
			relay(secure)
		}
	}
}
