// Package qr draws a pairing link as a QR code, in a terminal or as SVG, for a phone's camera:
//
//	link, err := pairing.Link{Name: "node-a", URL: "https://daemon.lan:8787", Token: token}.At(relayURL)
//	…
//	code, err := qr.Encode(link)
//	…
//	picture, err := code.Terminal(qr.DarkBackground, columns)
//
// The code shows the link's bearer token to whoever sees it. It is a package of its own, so that a daemon that draws
// nothing does not depend on the library that encodes QR codes.
package qr

import (
	"errors"
	"fmt"
	"strings"

	goqr "github.com/piglig/go-qr"
)

// border is the width of the empty margin that readers need (ISO/IEC 18004, section 6.3.8), in modules.
const border = 4

// ErrTooNarrow is the error of [Code.Terminal] for a window that has too few columns for the code. The link can still
// be shown as text, or as SVG.
var ErrTooNarrow = errors.New("qr: the window is too narrow for the QR code")

// A Background says what a terminal writes on. Drawn for the wrong one, a code is inverted, and some cameras do not
// read it.
type Background int

// The backgrounds.
const (
	DarkBackground  Background = iota // light characters on a dark background
	LightBackground                   // dark characters on a light background
)

// A Code is a QR code. It does not change and is safe for concurrent use.
type Code struct{ code *goqr.QrCode }

// Encode makes the QR code of a text of at most some 2900 bytes. A link of 250 bytes makes a code that is 65 columns
// wide with its margin.
func Encode(text string) (*Code, error) {
	code, err := goqr.EncodeText(text, goqr.Low) // a screen is not torn or stained: the smallest code is the easiest to read
	if err != nil {
		return nil, fmt.Errorf("qr: the text is too long for a QR code: %w", err)
	}
	return &Code{code}, nil
}

// Width is how many columns the code takes in a terminal, its margin included.
func (c *Code) Width() int { return c.code.Size() + 2*border }

// Terminal returns the code as lines of block characters, two modules high each, for a window of so many columns. The
// error is [ErrTooNarrow] when it does not fit.
func (c *Code) Terminal(background Background, columns int) (string, error) {
	if width := c.Width(); width > columns {
		return "", fmt.Errorf("%w: it takes %d columns and there are %d", ErrTooNarrow, width, columns)
	}
	// A character is drawn where the background is not: for the light modules on a dark background.
	drawn := func(x, y int) bool { return c.dark(x, y) == (background == LightBackground) }
	var b strings.Builder
	for y := -border; y < c.code.Size()+border; y += 2 {
		for x := -border; x < c.code.Size()+border; x++ {
			upper, lower := drawn(x, y), drawn(x, y+1)
			if y+1 == c.code.Size()+border {
				lower = false // the last row of an odd number
			}
			switch {
			case upper && lower:
				b.WriteRune('█')
			case upper:
				b.WriteRune('▀')
			case lower:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// dark reports whether a module is dark. Those of the margin are not.
func (c *Code) dark(x, y int) bool {
	return x >= 0 && y >= 0 && x < c.code.Size() && y < c.code.Size() && c.code.Module(x, y)
}

// SVG returns the code as an SVG document without scripts or references, one unit a module.
func (c *Code) SVG() string {
	var path strings.Builder
	for y := range c.code.Size() {
		for x := range c.code.Size() {
			if c.dark(x, y) {
				fmt.Fprintf(&path, "M%d,%dh1v1h-1z", x+border, y+border)
			}
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[1]d" shape-rendering="crispEdges">`+
		`<rect width="100%%" height="100%%" fill="#fff"/><path d="%[2]s" fill="#000"/></svg>`+"\n", c.Width(), path.String())
}
