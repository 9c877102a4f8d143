package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/sealpush/sealpush/relayclient"
)

// answerFaults are about what relays answer, and to whom they do.
func answerFaults() []fault {
	return []fault{{
		name: "early-answers", wanted: "0 of 120",
		what: "120 POSTs to a relay that answers 404 before it has read the body, and closes: answers without a status",
		run: func() (string, bool, error) {
			lost := 0
			for _, encrypted := range []bool{false, true} {
				more, err := earlyAnswers(encrypted)
				if err != nil {
					return "", false, err
				}
				lost += more
			}
			return of(lost, 120), lost == 0, nil
		},
	}, {
		name: "private-authority", wanted: "0 and 0 connections",
		what: "a second alert to 100 phones, HTTP/1.1 and HTTP/2, with a private authority and a client certificate",
		run: func() (string, bool, error) {
			h1, err1 := privateAuthority("https1")
			h2, err2 := privateAuthority("https2")
			if err1 != nil {
				err2 = err1
			}
			return fmt.Sprintf("%d and %d", h1, h2), h1 == 0 && h2 == 0, err2
		},
	}}
}

// earlyAnswers returns how many of 60 answers came out without a status.
func earlyAnswers(encrypted bool) (lost int, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	scheme := "http"
	if encrypted {
		s := serve("https1", nil, nil)
		certificates := s.TLS.Certificates
		s.Close()
		l, scheme = tls.NewListener(l, &tls.Config{Certificates: certificates}), "https"
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				head := bufio.NewReaderSize(conn, 16) // reads little more than the head
				for {
					line, err := head.ReadString('\n')
					if err != nil {
						return
					}
					if line == "\r\n" {
						io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found")
						return
					}
				}
			}()
		}
	}()
	client, err := relayclient.New(scheme + "://" + l.Addr().String() + "/wrong")
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for range 3 {
		for _, outcome := range client.Send(context.Background(), alert(), devices(20)) {
			if outcome.Status != http.StatusNotFound {
				lost++
			}
		}
	}
	return lost, nil
}

// privateAuthority returns how many connections a second alert opened.
func privateAuthority(protocol string) (opened int, err error) {
	s := serve(protocol, accept(300*time.Millisecond), func(s *server) {
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	})
	defer s.Close()
	config := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.Certificates = s.TLS.Certificates
	client, err := relayclient.New(s.URL, relayclient.WithTLSConfig(config))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if got := send(client, 100); got != 100 {
		return 0, fmt.Errorf("the first alert reached %d of 100", got)
	}
	before, _ := s.connections()
	send(client, 100)
	after, _ := s.connections()
	return after - before, nil
}
