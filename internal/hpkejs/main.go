// Program hpkejs checks suite xwing against another implementation, hpke-js: that each opens the other's boxes, and
// that both make the same public key of a seed. It needs node, and the packages of package-lock.json:
//
//	npm ci --prefix internal/hpkejs && go run ./internal/hpkejs
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sealpush/sealpush/seal"
)

// request and answer are what hpke.mjs reads and writes.
type request struct {
	Seed       []byte   `json:"seed"`
	Boxes      []string `json:"boxes"`
	Plaintexts [][]byte `json:"plaintexts"`
}

type answer struct {
	PublicKey string   `json:"publicKey"`
	Opened    [][]byte `json:"opened"`
	Sealed    []string `json:"sealed"`
	Made      struct {
		Seed      []byte   `json:"seed"`
		PublicKey string   `json:"publicKey"`
		Sealed    []string `json:"sealed"`
	} `json:"made"`
}

func main() {
	dir := filepath.Join("internal", "hpkejs")
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	boxes, err := check(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hpkejs:", err)
		os.Exit(1)
	}
	fmt.Printf("hpke-js opened %d boxes of ours, and we opened %d of its\n", boxes, 2*boxes)
}

// check returns how many boxes were sealed each way.
func check(dir string) (boxes int, err error) {
	phone := seal.XWing.GenerateKey()
	ask := request{Seed: phone.Bytes()}
	for _, size := range []int{0, 1, 2, 3, 15, 16, 17, 1000, seal.XWing.MaxPlaintext(3000), seal.XWing.MaxPlaintext(3800)} {
		plaintext := bytes.Repeat([]byte{byte(size)}, size)
		box, err := seal.Seal(phone.Public(), plaintext)
		if err != nil {
			return 0, err
		}
		ask.Plaintexts = append(ask.Plaintexts, plaintext)
		ask.Boxes = append(ask.Boxes, box)
	}
	got, err := run(dir, ask)
	if err != nil {
		return 0, err
	}
	if got.PublicKey != phone.Public().String() {
		return 0, fmt.Errorf("of our seed it makes the public key %s, and we %v", got.PublicKey, phone.Public())
	}
	if err := same("its opening of our boxes", got.Opened, ask.Plaintexts); err != nil {
		return 0, err
	}
	if err := opens(phone, got.Sealed, ask.Plaintexts); err != nil {
		return 0, err
	}
	theirs, err := seal.XWing.NewPrivateKey(got.Made.Seed)
	if err != nil {
		return 0, err
	}
	if got.Made.PublicKey != theirs.Public().String() {
		return 0, fmt.Errorf("of its seed we make the public key %v, and it %s", theirs.Public(), got.Made.PublicKey)
	}
	return len(ask.Boxes), opens(theirs, got.Made.Sealed, ask.Plaintexts)
}

func run(dir string, ask request) (got answer, err error) {
	in, err := json.Marshal(ask)
	if err != nil {
		return answer{}, err
	}
	node := exec.Command("node", filepath.Join(dir, "hpke.mjs"))
	node.Stdin, node.Stderr = bytes.NewReader(in), os.Stderr
	out, err := node.Output()
	if err != nil {
		return answer{}, fmt.Errorf("node: %w", err)
	}
	return got, json.Unmarshal(out, &got)
}

// opens opens boxes of hpke-js.
func opens(phone seal.PrivateKey, boxes []string, want [][]byte) error {
	var got [][]byte
	for _, box := range boxes {
		plaintext, err := seal.Open(phone, box)
		if err != nil {
			return err
		}
		got = append(got, plaintext)
	}
	return same("our opening of its boxes", got, want)
}

func same(what string, got, want [][]byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d plaintexts, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			return fmt.Errorf("%s: plaintext of %d bytes differs", what, len(want[i]))
		}
	}
	return nil
}
