package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/sealpush/sealpush/relayclient"
)

// dialFaults are about connections that there are not yet.
func dialFaults() []fault {
	return []fault{{
		name: "outage", wanted: "300 of 300",
		what: "six alerts to a port that refuses, then three to 100 phones at once, by a relay 20 ms away, timeout 1 s",
		run:  pastOutage,
	}, {
		name: "back-in-time", wanted: "100 of 100, found within 1 s",
		what: "an alert to 100 phones; the port refuses for 4 s",
		run:  backInTime,
	}, {
		name: "dead-name-server", wanted: "100 of 100",
		what: "an alert to 100 phones; the first name server never answers, the resolver asks the next after 5 s",
		run:  deadNameServer,
	}, {
		name: "descriptors", wanted: "300 of 300",
		what: "three alerts to 100 phones by a process that may have 64 descriptors",
		run:  fewDescriptors,
	}}
}

func pastOutage() (string, bool, error) {
	address, err := freeAddress()
	if err != nil {
		return "", false, err
	}
	client, err := relayclient.New("https://"+address, relayclient.WithTimeout(time.Second))
	if err != nil {
		return "", false, err
	}
	defer client.Close()
	for range 6 {
		send(client, 100)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", false, err
	}
	s := serve("https1", accept(20*time.Millisecond), func(s *server) {
		s.Listener.Close()
		s.Listener = l
		slowHandshakes(20 * time.Millisecond)(s)
	})
	defer s.Close()
	results := make(chan int)
	got := 0
	for range 3 {
		go func() { results <- send(client, 100) }()
	}
	for range 3 {
		got += <-results
	}
	return of(got, 300), got == 300, nil
}

func backInTime() (string, bool, error) {
	address, err := freeAddress()
	if err != nil {
		return "", false, err
	}
	client, err := relayclient.New("http://" + address)
	if err != nil {
		return "", false, err
	}
	defer client.Close()
	var s *server
	started := make(chan error)
	const away = 4 * time.Second
	start := time.Now()
	go func() {
		time.Sleep(away)
		var err error
		s, err = serveAt(address, "http", nil)
		started <- err
	}()
	got := send(client, 100)
	late := time.Since(start) - away
	if err := <-started; err != nil {
		return "", false, err
	}
	s.Close()
	return fmt.Sprintf("%s, %v later", of(got, 100), late.Round(10*time.Millisecond)), got == 100 && late <= time.Second, nil
}

func deadNameServer() (string, bool, error) {
	s := serve("http", nil, nil)
	defer s.Close()
	dns, err := newNameServers()
	if err != nil {
		return "", false, err
	}
	defer dns.close()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dns.dial}
	defer func() { net.DefaultResolver = before }()
	client, err := relayclient.New(fmt.Sprintf("http://relay.sealpush.test:%d", s.Listener.Addr().(*net.TCPAddr).Port))
	if err != nil {
		return "", false, err
	}
	defer client.Close()
	start := time.Now()
	got := send(client, 100)
	return fmt.Sprintf("%s, in %v", of(got, 100), time.Since(start).Round(100*time.Millisecond)), got == 100, nil
}

// nameServers are one that never answers, which a resolver asks first, and one that says 127.0.0.1.
type nameServers struct {
	dead, live net.PacketConn
	mu         sync.Mutex
	since      time.Time // of the latest lookup
}

func newNameServers() (*nameServers, error) {
	dead, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	live, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := live.ReadFrom(query)
			if err != nil {
				return
			}
			live.WriteTo(loopbackAnswer(query[:n]), from)
		}
	}()
	return &nameServers{dead: dead, live: live}, nil
}

func (n *nameServers) close() { n.dead.Close(); n.live.Close() }

// dial leads the first questions of a lookup to the server that is dead.
func (n *nameServers) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := time.Since(n.since)
	if asked > 8*time.Second { // a lookup of its own
		n.since, asked = time.Now(), 0
	}
	to := n.live
	if asked < 4*time.Second {
		to = n.dead
	}
	return (&net.Dialer{}).DialContext(ctx, network, to.LocalAddr().String())
}

// loopbackAnswer answers a question for an IPv4 address with 127.0.0.1 and any other with nothing (RFC 1035, section
// 4).
func loopbackAnswer(query []byte) []byte {
	const typeA = 1
	name := bytes.IndexByte(query[12:], 0) + 1
	question := query[12 : 12+name+4]
	isA := binary.BigEndian.Uint16(question[name:]) == typeA
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if isA {
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
	}
	return answer
}

func fewDescriptors() (string, bool, error) {
	s := serve("http", accept(20*time.Millisecond), nil)
	defer s.Close()
	self, err := os.Executable()
	if err != nil {
		return "", false, err
	}
	child := exec.Command(self, "-few-descriptors", s.URL, "64")
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		return "", false, err
	}
	var got int
	if _, err := fmt.Sscan(string(out), &got); err != nil {
		return "", false, err
	}
	return of(got, 300), got == 300, nil
}
