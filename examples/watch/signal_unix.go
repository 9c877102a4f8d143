//go:build unix

package main

import (
	"os"
	"syscall"
)

// passedOn are the signals that one process sends another to ask something of it.
var passedOn = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}
