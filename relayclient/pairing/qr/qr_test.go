package qr_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"strings"
	"testing"

	goqr "github.com/piglig/go-qr"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/qr"
	"github.com/sealpush/sealpush/secret"
)

func link(t testing.TB) string {
	t.Helper()
	text, err := pairing.Link{
		Name: "nightly ☎", URL: "http://192.168.1.7:8787/push/devices", Token: secret.New("0123456789abcdef0123456789abcdef"),
	}.At("https://relay.example")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// photograph makes the picture that a camera sees of a terminal.
func photograph(lines string, ink, paper color.Gray) image.Image {
	const scale = 4
	rows := strings.Split(strings.TrimSuffix(lines, "\n"), "\n")
	width := len([]rune(rows[0]))
	// The window goes on around the code.
	picture := image.NewGray(image.Rect(0, 0, width*scale, 2*len(rows)*scale))
	for i := range picture.Pix {
		picture.Pix[i] = paper.Y
	}
	fill := func(x, y int) {
		for dy := range scale {
			for dx := range scale {
				picture.SetGray(x*scale+dx, y*scale+dy, ink)
			}
		}
	}
	for y, row := range rows {
		for x, c := range []rune(row) {
			if c == '█' || c == '▀' {
				fill(x, 2*y)
			}
			if c == '█' || c == '▄' {
				fill(x, 2*y+1)
			}
		}
	}
	return picture
}

func TestACameraReadsTheTerminal(t *testing.T) {
	text := link(t)
	code, err := qr.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	white, black := color.Gray{Y: 255}, color.Gray{}
	for name, c := range map[string]struct {
		background qr.Background
		ink, paper color.Gray
	}{
		"dark background":  {qr.DarkBackground, white, black},
		"light background": {qr.LightBackground, black, white},
	} {
		lines, err := code.Terminal(c.background, code.Width())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := goqr.Decode(photograph(lines, c.ink, c.paper)); err != nil || got != text {
			t.Errorf("%s: a camera reads %q, %v", name, got, err)
		}
	}
}

func TestTooNarrowAWindowSaysSo(t *testing.T) {
	code, err := qr.Encode(link(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := code.Terminal(qr.DarkBackground, code.Width()-1); !errors.Is(err, qr.ErrTooNarrow) {
		t.Errorf("one column too few: %v", err)
	}
	if code.Width() > 80 {
		t.Errorf("a usual link takes %d columns, a terminal has 80", code.Width())
	}
}

func TestACameraReadsTheSVG(t *testing.T) {
	text := link(t)
	code, err := qr.Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		ViewBox string   `xml:"viewBox,attr"`
		Path    struct {
			D string `xml:"d,attr"`
		} `xml:"path"`
	}
	if err := xml.Unmarshal([]byte(code.SVG()), &document); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("0 0 %[1]d %[1]d", code.Width()); document.ViewBox != want {
		t.Errorf("viewBox %q, want %q", document.ViewBox, want)
	}
	// The path is a square for each dark module.
	const scale = 4
	picture := image.NewGray(image.Rect(0, 0, code.Width()*scale, code.Width()*scale))
	draw.Draw(picture, picture.Rect, image.White, image.Point{}, draw.Src)
	for square := range strings.SplitSeq(strings.TrimPrefix(document.Path.D, "M"), "M") {
		var x, y int
		if _, err := fmt.Sscanf(square, "%d,%dh1v1h-1z", &x, &y); err != nil {
			t.Fatalf("%q is no square: %v", square, err)
		}
		draw.Draw(picture, image.Rect(x*scale, y*scale, (x+1)*scale, (y+1)*scale), image.Black, image.Point{}, draw.Src)
	}
	if got, err := goqr.Decode(picture); err != nil || got != text {
		t.Errorf("a camera reads %q, %v", got, err)
	}
}

func TestTextThatIsTooLong(t *testing.T) {
	if _, err := qr.Encode(strings.Repeat("x", 3000)); err == nil {
		t.Error("3000 bytes fit no QR code")
	}
}
