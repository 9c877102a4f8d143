// Command faults sends alerts to relays and through networks that misbehave, and prints what became of them, each
// figure by its name beside the one that is wanted:
//
//	go run ./internal/faults [name…]
//
// It listens on the loopback interface only, and takes about two minutes of real time, because servers, resolvers and
// handshakes have their own clocks. It exits with 1 when a figure is not as wanted. The tests of package relayclient
// hold the same rules in memory, without waiting.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// A fault is something that goes wrong between an alert and its relay.
type fault struct {
	name   string
	what   string
	wanted string
	run    func() (got string, ok bool, err error)
}

func main() {
	// The program starts itself as a process with few descriptors.
	if len(os.Args) == 4 && os.Args[1] == "-few-descriptors" {
		limit, _ := strconv.Atoi(os.Args[3])
		if err := sendWithFewDescriptors(os.Args[2], limit); err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			os.Exit(1)
		}
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // every lost page is a line
	if !runAll(os.Args[1:]) {
		os.Exit(1)
	}
}

func runAll(names []string) bool {
	undo, err := trustLoopback()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return false
	}
	defer undo()
	allOK := true
	for _, f := range slices.Concat(connectionFaults(), dialFaults(), answerFaults()) {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		got, ok, err := f.run()
		verdict := "ok"
		switch {
		case err != nil:
			got, ok, verdict = err.Error(), false, "ERROR"
		case !ok:
			verdict = "NOT AS WANTED"
		}
		allOK = allOK && ok
		fmt.Printf("%-22s %s\n%-22s got %s; wanted %s: %s\n", f.name, f.what, "", got, f.wanted, verdict)
	}
	return allOK
}

// devices are n phones with one key, for sealing takes the same time for any.
func devices(n int) []pairing.Device {
	key := seal.GenerateKey().Public()
	list := make([]pairing.Device, n)
	for i := range list {
		list[i] = pairing.Device{ID: rand.Text(), PushToken: secret.New(rand.Text() + rand.Text()), PublicKey: key}
	}
	return list
}

func alert() relayclient.Push {
	a := payload.NewFailure("faults", "job-"+rand.Text())
	a.LogTail = []string{"rsync: connection reset", "gave up"}
	return relayclient.Push{Alert: a, CollapseID: payload.NewCollapseID()}
}

// send sends one alert to n phones and returns how many got it.
func send(client *relayclient.Client, n int) (delivered int) {
	for _, outcome := range client.Send(context.Background(), alert(), devices(n)) {
		if outcome.Err == nil {
			delivered++
		}
	}
	return delivered
}

// sendOften sends an alert to n phones every so often.
func sendOften(client *relayclient.Client, times int, every time.Duration, n int) (delivered int) {
	results := make(chan int, times)
	for range times {
		go func() { results <- send(client, n) }()
		time.Sleep(every)
	}
	for range times {
		delivered += <-results
	}
	return delivered
}

func of(got, all int) string { return fmt.Sprintf("%d of %d", got, all) }
