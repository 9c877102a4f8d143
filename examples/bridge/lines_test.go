package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEachLine(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for name, tt := range map[string]struct {
		in   string
		want []string
	}{
		"lines":             {"one\ntwo\n", []string{"one", "two"}},
		"no end":            {"one\ntwo", []string{"one", "two"}},
		"CRLF":              {"one\r\ntwo\r\n", []string{"one", "two"}},
		"blank":             {"\n\r\n\none\n\n", []string{"one"}},
		"nothing":           {"", nil},
		"longest":           {long + "\none\n", []string{long, "one"}},
		"longest with CRLF": {long + "\r\none\n", []string{long, "one"}},
		"longest at end":    {long, []string{long}},
		"too long":          {"one\n" + long + "x\ntwo\n", []string{"one", "two"}},
		"far too long":      {"one\n" + strings.Repeat(long, 9) + "\ntwo\n", []string{"one", "two"}},
		"too long at end":   {"one\n" + long + "xyz", []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				var got []string
				if err := eachLine(in, len(long), func(line []byte) { got = append(got, string(line)) }); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("%d lines: %.50q", len(got), got)
				}
			}
		})
	}
	broken := errors.New("broken")
	if err := eachLine(iotest.ErrReader(broken), 10, nil); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
