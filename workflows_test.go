package sealpush_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A tag of an action can be moved to other code, a commit cannot. What a workflow runs may read the repository, and finds
// no token left in the checkout.
func TestWorkflowsArePinnedAndMayOnlyRead(t *testing.T) {
	files, err := filepath.Glob(".github/workflows/*.y*ml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	action := regexp.MustCompile(`(?m)^\s*(?:- )?uses:\s*(.*)$`)
	pinned := regexp.MustCompile(`^\S+@[0-9a-f]{40} # v[0-9.]+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		workflow := strings.ReplaceAll(string(text), "\r\n", "\n")
		for _, use := range action.FindAllStringSubmatch(workflow, -1) {
			if !pinned.MatchString(use[1]) {
				t.Errorf("%s: %q is not pinned as action@commit # version", file, use[1])
			}
		}
		if checkouts := strings.Count(workflow, "actions/checkout@"); strings.Count(workflow, "persist-credentials: false") != checkouts {
			t.Errorf("%s: a checkout keeps its credentials", file)
		}
		if !strings.Contains(workflow, "\npermissions: {}\n") {
			t.Errorf("%s: the repository's default permissions hold for jobs that name none", file)
		}
		if strings.Contains(workflow, ": write") || strings.Contains(workflow, "write-all") {
			t.Errorf("%s: something may write", file)
		}
	}
}
