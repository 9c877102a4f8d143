// Command hostile serves the sealed relay, and the push relay and token service of bridges, on the loopback interface
// to an honest daemon, an honest bridge and ten hostile clients, and says what the ten cost the two:
//
//	go run ./internal/hostile -for 10m
//
// A fifth of the time before and a fifth after the attack nobody is hostile: the medians of both are what the attack's
// is compared with. The servers, set up as docs/self-host.md says, and the hostile clients are processes of their own:
// this program, started again. The clients pace themselves, so that they do not simply use up the processor:
//
//   - two post bodies of which a byte a second arrives, on 50 connections each;
//   - two send requests with 900 KiB of header, five a second each;
//   - two ask for tokens with wrong credentials, 200 at once every two seconds each;
//   - two have credentials, and register made-up devices, 50 a second each, and push to them, twice a second;
//   - two hold 100 connections each, half of which never say anything.
//
// It ends with status 1 if an alert takes more than 3 times as long in the attack, if one is not accepted, or if the
// servers' memory grows during the attack.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "serve" {
		return serve(os.Stdin, os.Stdout)
	}
	if len(args) > 0 && args[0] == "attack" {
		return attack(os.Stdin, os.Stdout)
	}
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	duration := flags.Duration("for", 10*time.Minute, "how long the run takes, a minute at least")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *duration < time.Minute {
		return errors.New("it takes -for, of a minute at least, and nothing else")
	}
	return measure(ctx, *duration)
}

// measure runs the whole and prints what it found.
func measure(ctx context.Context, duration time.Duration) error {
	servers, err := startServers()
	if err != nil {
		return err
	}
	defer servers.stop()
	honest, err := newHonest(servers.at)
	if err != nil {
		return err
	}
	defer honest.close()

	// What happens once comes first: connections, keys, the first collections of garbage.
	if _, err := honest.work(ctx, duration/10); err != nil {
		return err
	}
	before, err := honest.work(ctx, duration/10)
	if err != nil {
		return err
	}
	attackers, err := startAttack(servers.at)
	if err != nil {
		return err
	}
	defer attackers.stop()
	var memory []memoryUse
	during, err := honest.workAnd(ctx, duration*3/5, duration/60, func() error {
		use, err := servers.memory()
		memory = append(memory, use)
		return err
	})
	if err != nil {
		return fmt.Errorf("under attack: %w", err)
	}
	var did map[string]int
	if err := attackers.end(&did); err != nil {
		return err
	}
	after, err := honest.work(ctx, duration/5)
	if err != nil {
		return err
	}
	return report(os.Stdout, duration, before.and(after), during, memory, did)
}
