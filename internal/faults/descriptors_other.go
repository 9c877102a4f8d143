//go:build !linux && !darwin

package main

import "errors"

func sendWithFewDescriptors(string, int) error {
	return errors.New("this system does not limit descriptors")
}
