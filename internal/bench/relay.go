package main

import (
	"bufio"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// A relayProcess is a relay that accepts everything, in a process of its own so that its CPU time and memory are not
// counted.
type relayProcess struct {
	URL     string
	command *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Reader
}

// Protocols of a relay.
const (
	plainHTTP = "http"
	tlsHTTP1  = "https1"
	tlsHTTP2  = "https2"
)

// startRelay runs this program once more, as a relay that takes so long for each answer.
func startRelay(protocol string, latency time.Duration) (*relayProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &relayProcess{command: exec.Command(self, "relay", protocol, latency.String())}
	r.command.Stderr = os.Stderr
	if r.ask, err = r.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.answers = bufio.NewReader(out)
	if err := r.command.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(r.answers, &r.URL); err != nil {
		return nil, fmt.Errorf("relay process: %w", err)
	}
	return r, nil
}

// connections returns how many connections the relay has accepted.
func (r *relayProcess) connections() (n int, err error) {
	if _, err := fmt.Fprintln(r.ask); err != nil {
		return 0, err
	}
	_, err = fmt.Fscanln(r.answers, &n)
	return n, err
}

func (r *relayProcess) stop() {
	r.ask.Close() // which ends serveRelay
	r.command.Wait()
}

// restart ends the relay's server with all its connections, and starts another one at the same address.
func (r *relayProcess) restart() error {
	if _, err := fmt.Fprintln(r.ask, restartRelay); err != nil {
		return err
	}
	_, err := fmt.Fscanln(r.answers, &r.URL)
	return err
}

const restartRelay = "restart"

// serveRelay is the relay process. It prints its address, then for each line that it reads how many connections it has
// accepted, or its address again after a restart, until its input ends.
func serveRelay(protocol, latency string) error {
	delay, err := time.ParseDuration(latency)
	if err != nil {
		return err
	}
	var connections atomic.Int64
	server, err := newRelay(protocol, delay, &connections, "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(server.URL)
	for questions := bufio.NewScanner(os.Stdin); questions.Scan(); {
		if questions.Text() != restartRelay {
			fmt.Println(connections.Load())
			continue
		}
		server.CloseClientConnections()
		server.Close()
		if server, err = newRelay(protocol, delay, &connections, server.Listener.Addr().String()); err != nil {
			return err
		}
		fmt.Println(server.URL)
	}
	return nil // connections end with the process
}

func newRelay(protocol string, delay time.Duration, connections *atomic.Int64, address string) (*httptest.Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if delay > 0 {
			time.Sleep(delay)
		}
		w.Header().Set("Keep-Alive", "timeout=60") // as our relays announce; or connections would be new in every round
		w.WriteHeader(http.StatusAccepted)
	}))
	server.Listener.Close()
	server.Listener = listener
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a restart ends handshakes
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	if protocol == plainHTTP {
		server.Start()
	} else {
		server.EnableHTTP2 = protocol == tlsHTTP2
		server.StartTLS()
	}
	return server, nil
}

// trustRelays makes this process trust the relay processes' certificate, which httptest shares between processes, by
// way of the system's roots: the client that is measured keeps its own transport. Call it before any TLS connection.
func trustRelays() (undo func(), err error) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	file, err := os.CreateTemp("", "relay-*.pem")
	if err != nil {
		return nil, err
	}
	undo = func() { os.Remove(file.Name()) }
	err = errors.Join(
		pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		file.Close(),
		os.Setenv("SSL_CERT_FILE", file.Name()))
	return undo, err
}
