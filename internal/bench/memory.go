package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// memory compares the peak memory of two processes that send one alert, the list
// of phones included. The relay takes a while to answer, so that both have 100
// POSTs in flight.
func memory() ([]row, error) {
	relay, err := startRelay(plainHTTP, 20*time.Millisecond)
	if err != nil {
		return nil, err
	}
	defer relay.stop()
	var few, many series
	for range 5 {
		for phones, peaks := range map[int]*series{100: &few, 10_000: &many} {
			peak, err := peakOf(relay.URL, phones)
			if err != nil {
				return nil, err
			}
			*peaks = append(*peaks, peak)
		}
	}
	more := many.median() - few.median()
	return []row{{
		what:     "peak memory of `Send` to 10 000 phones over 100",
		goal:     "≤ 8 MB more",
		measured: fmt.Sprintf("%.1f MB more", more),
		met:      more <= 8,
		detail:   fmt.Sprintf("%.1f MB and %.1f MB resident (VmHWM), the list of phones included", many.median(), few.median()),
	}}, nil
}

// peakOf runs this program once more, as a daemon with so many phones.
func peakOf(url string, phones int) (megabytes float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	command := exec.Command(self, "send", url, strconv.Itoa(phones))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("send process: %w", err)
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

// sendOnce is the send process. It prints its peak memory in megabytes.
func sendOnce(url, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	client, err := relayclient.New(url)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := sendAll(client, relayclient.Push{Alert: longFailure(), Salt: payload.NewSalt()}, phones(n)); err != nil {
		return err
	}
	// Not getrusage's maximum, which a new process inherits.
	kilobytes, err := strconv.Atoi(strings.TrimSuffix(procField("/proc/self/status", "VmHWM"), " kB"))
	if err != nil {
		return err
	}
	fmt.Println(float64(kilobytes) * 1024 / 1e6)
	return nil
}
