package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/seal"
)

// memory compares the peak memory of processes that send one alert. Both know 10 000 phones, so that the difference is
// Send's alone; a third, which knows as few as it sends to, shows what the list takes. The relay is slow enough for all
// to have 100 POSTs in flight.
func memory() ([]row, error) {
	relay, err := startRelay(plainHTTP, 20*time.Millisecond)
	if err != nil {
		return nil, err
	}
	defer relay.stop()
	const few, many = 100, 10_000
	var toMany, toFew, knowingFew series
	for range 5 {
		for _, process := range []struct {
			known, paged int
			peaks        *series
		}{{many, many, &toMany}, {many, few, &toFew}, {few, few, &knowingFew}} {
			peak, err := peakOf(relay.URL, process.known, process.paged)
			if err != nil {
				return nil, err
			}
			*process.peaks = append(*process.peaks, peak)
		}
	}
	more := toMany.median() - toFew.median()
	return []row{{
		what:     "peak memory of `Send` to 10 000 phones over 100, of 10 000 known",
		goal:     "≤ 8 MB more",
		measured: fmt.Sprintf("%.1f MB more", more),
		met:      more <= 8,
		detail: fmt.Sprintf("%.1f MB and %.1f MB resident (VmHWM); %.1f MB when only the 100 are known, so the list takes part in a growth of %.1f MB",
			toMany.median(), toFew.median(), knowingFew.median(), toMany.median()-knowingFew.median()),
	}}, nil
}

// peakOf runs this program once more, as a daemon that knows so many phones and pages the first of them.
func peakOf(url string, known, paged int) (megabytes float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	command := exec.Command(self, "send", url, strconv.Itoa(known), strconv.Itoa(paged))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("send process: %w", err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

// sendOnce is the send process. It prints its peak memory in megabytes.
func sendOnce(url, known, paged string) error {
	all, err := strconv.Atoi(known)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(paged)
	if err != nil {
		return err
	}
	devices := phones(all, seal.X25519)
	client, err := relayclient.New(url)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := sendAll(client, relayclient.Push{Alert: longFailure(), Salt: payload.NewSalt()}, devices[:n]); err != nil {
		return err
	}
	// Not getrusage's maximum, which a new process inherits.
	kilobytes, err := strconv.Atoi(strings.TrimSuffix(procField("/proc/self/status", "VmHWM"), " kB"))
	if err != nil {
		return err
	}
	runtime.KeepAlive(devices)
	fmt.Println(float64(kilobytes) * 1024 / 1e6)
	return nil
}
