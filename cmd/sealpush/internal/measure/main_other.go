//go:build !linux

// Command measure runs on Linux.
package main

func main() { panic("it runs on Linux") }
