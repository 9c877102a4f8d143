package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/qr"
)

// isTerminal reports whether a file is a terminal, or another device that keeps nothing.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// showLink prints a pairing link for a phone, with a caller's token in it.
func showLink(w io.Writer, addr *net.TCPAddr, relayURL string, caller caller) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	address := reachable(addr)
	if others, err := pairing.PhoneAddresses(addr.String()); err == nil { // else only this machine can reach it
		address = others[0]
	}
	link := pairing.Link{Name: name, URL: "http://" + address, Token: caller.token}
	text, err := link.At(relayURL)
	if err != nil {
		return err
	}
	code, err := qr.Encode(text)
	if err != nil {
		return err
	}
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil {
		columns = 80
	}
	fmt.Fprintln(w)
	picture, err := code.Terminal(qr.DarkBackground, columns)
	if err != nil {
		picture = fmt.Sprintf("%v: open the link, or use a window of %d columns.\n", err, code.Width())
	}
	fmt.Fprintln(w, picture)
	_, err = fmt.Fprintf(w, "Link     %s\nAs text  %s\n\nWhoever has the link can pair phones as %s.\n", text, link.JSON(), caller.label)
	if link.ThisMachineOnly() {
		_, err = fmt.Fprintln(w, "This machine only: no phone can reach it. Listen on a network with -listen, behind TLS.")
	}
	return err
}
