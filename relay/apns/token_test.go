package apns

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
	"time"
)

func TestTokenIsMadeAnewInTime(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	source := &tokenSource{key: &Key{"ABC123DEFG", "TEAM123456", func() *ecdsa.PrivateKey { return private }}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var last string
	for _, step := range []struct {
		after time.Duration
		anew  bool
	}{
		{0, true},
		{0, false},
		{20 * time.Minute, false}, // Apple refuses a new one any earlier
		{20*time.Minute - time.Nanosecond, false}, // an age of almost 40 min
		{time.Nanosecond, true},
		{45 * time.Minute, true},
		{-time.Hour, true}, // the clock was set back: Apple refuses one from the future
		{10 * 365 * 24 * time.Hour, true},
	} {
		now = now.Add(step.after)
		token, err := source.token(now)
		if err != nil {
			t.Fatal(err)
		}
		if anew := token != last; anew != step.anew {
			t.Errorf("after %v more: anew %t, want %t", step.after, anew, step.anew)
		}
		last = token
	}
}
