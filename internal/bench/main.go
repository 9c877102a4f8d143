// Command bench measures sealpush against its goals and prints the table of docs/performance.md:
//
//	cd internal/bench && go run .
//
// It is a module of its own because it compares with libsodium, through cgo (apt-get install libsodium-dev), and it
// runs on Linux. It takes about a minute, listens on the loopback interface only, and fails on no number: what it
// prints is for people to judge.
//
// Times are CPU time of this process, in kernel and user mode, not time on the clock, so that programs that run
// meanwhile distort them little. What is compared is measured in turn, round by round, and a ratio is the median of the
// rounds' ratios. Relays, and the senders whose memory is measured, are processes of their own: this program, started
// once more.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		return measureAll()
	case len(args) == 3 && args[0] == "relay":
		return serveRelay(args[1], args[2])
	case len(args) == 4 && args[0] == "send":
		return sendOnce(args[1], args[2], args[3])
	}
	return fmt.Errorf("it takes no arguments")
}

func measureAll() error {
	if err := sodiumInit(); err != nil {
		return err
	}
	undo, err := trustRelays()
	if err != nil {
		return err
	}
	defer undo()
	where := conditions(loadAverage())
	var rows []row
	for _, measure := range []func() ([]row, error){sealing, sending, memory, alerts, bridging, connections, relaying} {
		more, err := measure()
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	fmt.Println(where)
	fmt.Println()
	printTable(os.Stdout, rows)
	return nil
}
