package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every Go block of a guide stands, but for its indentation, in a test of this
// package or, where it takes a database or a module of its own, of those that have
// one, and so compiles and runs.
func TestGoBlocksAreTested(t *testing.T) {
	var tested strings.Builder
	for _, name := range glob(t, "*_test.go", "../relayclient/pairing/sqltest/*_test.go", "../relay/sqltest/*_test.go",
		"../integrations/*/*_test.go", "../integrations/notify/notifytest/*_test.go") {
		tested.WriteString(unindented(readFile(t, name)))
	}
	guides := glob(t, "*.md")
	blocks := 0
	for _, name := range guides {
		for _, block := range goBlocks(readFile(t, name)) {
			blocks++
			if !strings.Contains(tested.String(), unindented(block)) {
				t.Errorf("%s: no test holds this block:\n%s", name, block)
			}
		}
	}
	if blocks < 10 {
		t.Errorf("found %d Go blocks in %d guides", blocks, len(guides))
	}
}

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var names []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		names = append(names, found...)
	}
	return names
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n")
}

func goBlocks(markdown string) []string {
	var blocks []string
	for _, part := range strings.Split(markdown, "\n```go\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}

// unindented drops white space at both ends of each line, and empty lines.
func unindented(code string) string {
	var out strings.Builder
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
