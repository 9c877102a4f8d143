package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
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
