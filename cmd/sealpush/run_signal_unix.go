//go:build unix

package main

import (
	"os"
	"syscall"
)

// passedOn are the signals that people send to a job, and so to us for it.
var passedOn = []os.Signal{
	os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}
