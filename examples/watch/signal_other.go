//go:build !unix

package main

import (
	"os"
	"syscall"
)

// passedOn are the signals that this system can tell a process of.
var passedOn = []os.Signal{os.Interrupt, syscall.SIGTERM}
