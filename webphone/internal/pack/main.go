// Pack compresses its standard input with gzip, as small as it gets, without name or time.
package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := pack(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(w io.Writer, r io.Reader) error {
	packer, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := io.Copy(packer, r); err != nil {
		return err
	}
	return packer.Close()
}
