package main

import (
	"strings"
	"testing"
)

func TestQuickstart(t *testing.T) {
	var out strings.Builder
	if err := run(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"the alert it saw 0.", "PHONE 1  failure: nightly-vet", "PHONE 2  failure: nightly-vet", "exit status 1",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "no/such/package"); n < 3 {
		t.Errorf("the job's own words appear %d times:\n%s", n, out.String())
	}
}
