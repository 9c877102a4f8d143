package payload_test

import (
	"math"
	"testing"

	"github.com/sealpush/sealpush/payload"
)

func TestParseTakesAWindowsStatus(t *testing.T) {
	plaintext := `{"v":1,"kind":"failure","name":"n","success":false,"host":"h","ts":"2026-07-23T01:02:03Z","exit_code":3221225477}`
	alert, err := payload.Parse([]byte(plaintext))
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0xC0000005)
	if math.MaxInt == math.MaxInt32 {
		want -= 1 << 32
	}
	if int64(*alert.ExitCode) != want {
		t.Errorf("exit code %d, want %d", *alert.ExitCode, want)
	}
}
