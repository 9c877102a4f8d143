//go:build linux

// Command measure prints what "sealpush run" costs, for docs/performance.md:
//
//	cd cmd/sealpush && go run ./internal/measure
//
// It builds the tool as a release is built, and takes about a minute. It fails on no number: what it prints is for
// people to judge. A time is that on the clock, which whatever else runs makes longer. So what is compared is measured in
// turn, and the fastest round of each counts.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	shortRounds = 101
	longRounds  = 9
	gigabyte    = 1 << 30
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch strings.Join(args, " ") {
	case "":
		return measure()
	case "print-gigabyte":
		return printGigabyte(os.Stdout)
	case "print-peak":
		peak, err := peakOf(os.Getppid())
		fmt.Println(peak)
		return err
	}
	return errors.New("it takes no arguments")
}

func measure() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sealpush-measure-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tool := filepath.Join(dir, "sealpush")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", tool, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("run it in cmd/sealpush: %w", err)
	}
	info, err := os.Stat(tool)
	if err != nil {
		return err
	}
	registry := filepath.Join(dir, "devices.json")
	if err := os.WriteFile(registry, []byte(`{"version":1,"devices":[]}`), 0o600); err != nil {
		return err
	}
	wrapped := func(args ...string) []string {
		return append([]string{tool, "run", "-relay-url", "http://127.0.0.1:9", "-registry", registry, "--"}, args...)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s, %d processors, %s/%s, load average before %s\n\n", runtime.Version(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		strings.Fields(string(load) + " ?")[0])
	fmt.Printf("the stripped binary: %.1f MB\n", float64(info.Size())/1e6)

	bare, inTool, err := inTurn(shortRounds, []string{"true"}, wrapped("true"))
	if err != nil {
		return err
	}
	fmt.Printf("true: %v, in run %v: %v more\n", bare, inTool, inTool-bare)

	peak := exec.Command(tool, wrapped(self, "print-peak")[1:]...)
	text, err := peak.Output()
	if err != nil {
		return err
	}
	kilobytes, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	fmt.Printf("memory of run (VmHWM), all of which comes on top of the command's: %.1f MB\n", float64(kilobytes)*1024/1e6)

	print := []string{self, "print-gigabyte"}
	bare, inTool, err = inTurn(longRounds, print, wrapped(print...))
	if err != nil {
		return err
	}
	fmt.Printf("1 GiB of lines through a pipe: %v, in run %v: %+.0f%%\n", bare, inTool, 100*(float64(inTool)/float64(bare)-1))
	return nil
}

// inTurn returns the shortest times of two commands, whose output it reads through a pipe.
func inTurn(rounds int, a, b []string) (shortestA, shortestB time.Duration, err error) {
	shortest := [2]time.Duration{time.Hour, time.Hour}
	for range rounds {
		for i, args := range [][]string{a, b} {
			took, err := timeOf(args)
			if err != nil {
				return 0, 0, err
			}
			shortest[i] = min(shortest[i], took.Round(10*time.Microsecond))
		}
	}
	return shortest[0], shortest[1], nil
}

func timeOf(args []string) (time.Duration, error) {
	cmd := exec.Command(args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	buf := make([]byte, 256<<10)
	for err == nil {
		_, err = out.Read(buf)
	}
	if err == io.EOF {
		err = nil
	}
	return time.Since(start), cmp.Or(cmd.Wait(), err)
}

// printGigabyte prints numbered lines, as a program with a buffered log does.
func printGigabyte(to io.Writer) error {
	out := bufio.NewWriterSize(to, 64<<10)
	for n, printed := 0, 0; printed < gigabyte; n++ {
		more, err := fmt.Fprintf(out, "%d the quick brown fox jumps over the lazy dog, and over the next one\n", n)
		if err != nil {
			return err
		}
		printed += more
	}
	return out.Flush()
}

// peakOf is the most memory that a process has had resident, in KiB.
func peakOf(pid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, errors.New("the kernel tells no peak")
	}
	return strconv.Atoi(fields[0])
}
