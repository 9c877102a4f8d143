package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A disk that fills up must not end the command, nor cost the page its log tail.
func TestOutputOnAFullDisk(t *testing.T) {
	f := newRunFixture(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := f.run(t, "--", os.Args[0], "job", "much")
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	if code := exitCode(t, cmd); code != 4 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr.String(), "output is lost") {
		t.Errorf("standard error says %q", stderr.String())
	}
	if alert := f.onlyAlert(t); alert.LogTail[len(alert.LogTail)-1] != "the reason" {
		t.Errorf("log tail %q", alert.LogTail)
	}
}

// onFullDisk has the tool run where no file can grow.
func onFullDisk(cmd *exec.Cmd) *exec.Cmd {
	cmd.Args = append([]string{"sh", "-c", `ulimit -f 0 && exec "$0" "$@"`}, cmd.Args...)
	cmd.Path = "/bin/sh"
	return cmd
}

func TestSpoolOnAFullDisk(t *testing.T) {
	f := newRunFixture(t)
	spool := t.TempDir()
	said := runSays(t, 3, onFullDisk(f.run(t, "-spool", spool, "--", os.Args[0], "job", "fail")))
	if !strings.Contains(said, "the alert cannot be kept in "+spool+" if it is not delivered now") {
		t.Errorf("the tool says %q", said)
	}
	f.onlyAlert(t)
	f.newDoor(t)
	said = runSays(t, 3, onFullDisk(f.run(t, briefly, "-spool", spool, "--", os.Args[0], "job", "fail")))
	if kept := entries(t, spool); len(kept) != 0 || !strings.Contains(said, "alert not delivered") || strings.Contains(said, "for the next run") {
		t.Errorf("the spool holds %v; the tool says %q", kept, said)
	}
}

// What -quiet cannot keep is printed at once.
func TestQuietOnAFullDisk(t *testing.T) {
	f := newRunFixture(t)
	cmd := onFullDisk(f.run(t, "-quiet", "--", os.Args[0], "job", "very-much"))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed, _ := io.ReadAll(stdout)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 || len(printed) != veryMuch || !strings.Contains(stderr.String(), "is not held back any more") {
		t.Errorf("exit code %d, %d bytes; standard error says %q", code, len(printed), stderr.String())
	}
	f.onlyAlert(t)
}

// A network that is down for the first dials and then back. That they fail shows here, where the relay's certificate is
// waited for; SSL_CERT_FILE says on Linux that it is to be trusted.
func TestNetworkDownAndBack(t *testing.T) {
	f := newRunFixture(t, relaytest.WithTLS())
	relayAddress := strings.TrimPrefix(f.relay.URL, "https://")
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	failed := make(chan int, 1)
	go func() {
		for dials := 0; ; dials++ {
			conn, err := front.Accept()
			if err != nil {
				return
			}
			if dials < 3 {
				conn.Close()
				continue
			}
			select {
			case failed <- dials:
			default:
			}
			back, err := net.Dial("tcp", relayAddress)
			if err != nil {
				conn.Close()
				continue
			}
			go func() { io.Copy(back, conn); back.Close() }()
			go func() { io.Copy(conn, back); conn.Close() }()
		}
	}()
	conn, err := f.relay.Client().Get(f.relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	conn.Body.Close()
	trusted := filepath.Join(t.TempDir(), "ca.pem")
	write(t, trusted, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: conn.TLS.PeerCertificates[0].Raw})))
	f.url = "https://" + front.Addr().String()
	cmd := f.run(t, "-patience", "5m", "--", os.Args[0], "job", "fail")
	cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+trusted)
	said := runSays(t, 3, cmd)
	if n := <-failed; n != 3 || strings.Contains(said, "not delivered") {
		t.Errorf("%d dials failed; the tool says %q", n, said)
	}
	f.onlyAlert(t)
}
