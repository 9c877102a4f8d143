package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// A row is one goal of the project and what was measured of it.
type row struct {
	what     string
	goal     string
	measured string
	met      bool
	detail   string
}

// printTable writes the rows as Markdown.
func printTable(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| what | goal | measured | | from |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, r := range rows {
		verdict := "met"
		if !r.met {
			verdict = "missed"
		}
		fmt.Fprintf(w, "| %s | %s | **%s** | %s | %s |\n", r.what, r.goal, r.measured, verdict, r.detail)
	}
}

// conditions says where and when the table was measured. The load average before the first measurement is other
// programs' doing.
func conditions(loadBefore string) string {
	return fmt.Sprintf("Measured on %s, on %s (%d CPUs, %s/%s), with %s and libsodium %s. Load average before: %s.",
		time.Now().Format(time.DateOnly), cpuModel(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version(), sodiumVersion(), loadBefore)
}

func cpuModel() string {
	return procField("/proc/cpuinfo", "model name")
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	average, _, _ := strings.Cut(string(text), " ")
	return average
}

// procField returns the first "key: value" of a file under /proc.
func procField(path, key string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
