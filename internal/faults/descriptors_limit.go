//go:build linux || darwin

package main

import (
	"fmt"
	"log/slog"
	"syscall"

	"github.com/sealpush/sealpush/relayclient"
)

// sendWithFewDescriptors is the process that may have so many descriptors. It prints how many of 300 phones it reached.
func sendWithFewDescriptors(url string, descriptors int) error {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = uint64(descriptors)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	client, err := relayclient.New(url)
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Println(send(client, 100) + send(client, 100) + send(client, 100))
	return nil
}
