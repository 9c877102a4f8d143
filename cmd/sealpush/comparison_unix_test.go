//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The lines that docs/comparison.md recommends page the phone when the job fails and tell the other tool what they say that
// they tell it, which is nothing of the job's output.
func TestComparisonRecipes(t *testing.T) {
	document, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, part := range strings.Split(string(document), "\n```sh\n")[1:] {
		line, _, _ := strings.Cut(part, "\n```")
		lines = append(lines, line)
	}
	for i, recipe := range []struct {
		tool                 string
		ofSuccess, ofFailure []string // what the other tool hears
		quiet                bool
	}{
		{"healthchecks", []string{""}, nil, false},
		{"ntfy", nil, []string{"a job has failed: see the pager"}, false},
		{"apprise", nil, []string{"-t backup has failed -b see the pager"}, false},
		{"chronic", nil, nil, true},
	} {
		if len(lines) != 4 {
			t.Fatalf("there are %d lines to try", len(lines))
		}
		t.Run(recipe.tool, func(t *testing.T) {
			for _, fails := range []bool{false, true} {
				heard, output, pages := runLine(t, lines[i], fails)
				want := recipe.ofSuccess
				if fails {
					want = recipe.ofFailure
				}
				if !slices.Equal(heard, want) {
					t.Errorf("the job failed: %t: it heard %q, want %q", fails, heard, want)
				}
				if printed := strings.Contains(output, "no space left on device"); printed != (fails || !recipe.quiet) {
					t.Errorf("the job failed: %t: it printed %q", fails, output)
				}
				if (pages == 1) != fails {
					t.Errorf("the job failed: %t: %d pages", fails, pages)
				}
			}
		})
	}
}

// runLine has a shell run a line of the document, with the tool and a job that prints a line. It returns what another tool
// heard, what was printed, and how many pages the phone got.
func runLine(t *testing.T, line string, fails bool) (heard []string, output string, pages int) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<10))
		heard = append(heard, string(body))
	}))
	defer other.Close()
	f := newRunFixture(t)
	dir := t.TempDir()
	job := "echo no space left on device >&2"
	if fails {
		job += "; exit 1"
	}
	called := filepath.Join(dir, "called")
	for name, script := range map[string]string{
		"backup":   job,
		"apprise":  `echo "${*%http*}" | sed 's/ $//' >` + called,
		"sealpush": "exec env " + asTool + "=1 GORACE=atexit_sleep_ms=0 '" + os.Args[0] + `' "$@"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(line, "/usr/local/bin/backup") {
		t.Fatalf("no job in %q", line)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "/usr/local/bin/backup", filepath.Join(dir, "backup")))
	shell.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SEALPUSH_RELAY_URL="+f.relay.URL, "SEALPUSH_REGISTRY="+f.devices,
		"CHECK_URL="+other.URL, "TOPIC_URL="+other.URL, "ROOM_URL="+other.URL)
	printed, _ := shell.CombinedOutput()
	if words, err := os.ReadFile(called); err == nil {
		heard = append(heard, strings.TrimSpace(string(words)))
	}
	received, err := f.phone.Received(f.relay)
	if err != nil {
		t.Fatal(err)
	}
	return heard, string(printed), len(received)
}
