package main

import (
	"fmt"
	"os"
	"time"
)

// demoJob, as the first argument, makes this program one of its own jobs. These commands exist on every machine.
const demoJob = "demo-job"

// demoJobs are what runs when no job was given: one that fails, one that succeeds and one that takes too long.
func demoJobs() ([]job, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []job{
		{name: "nightly-backup", command: []string{self, demoJob, "fail"}},
		{name: "rotate-logs", command: []string{self, demoJob, "succeed"}},
		{name: "sync-mirror", command: []string{self, demoJob, "dawdle"}, maxRuntime: 100 * time.Millisecond},
	}, nil
}

// runDemoJob is such a job; it returns the exit code.
func runDemoJob(how string) int {
	switch how {
	case "fail":
		fmt.Println("copying /srv/data")
		fmt.Fprintln(os.Stderr, "write /backup/data.tar: no space left on device")
		return 3
	case "dawdle":
		time.Sleep(500 * time.Millisecond)
		fmt.Println("the mirror is up to date")
	default:
		fmt.Println("rotated 12 logs")
	}
	return 0
}
