package pushauth_test

import (
	"testing"

	"github.com/sealpush/sealpush/pushauth"
)

// warmSource has a token in its cache.
func warmSource(tb testing.TB) *pushauth.Source {
	tb.Helper()
	_, source := newService(tb)
	if _, err := source.Token(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return source
}

func BenchmarkTokenCached(b *testing.B) {
	source, ctx := warmSource(b), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := source.Token(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTokenCachedParallel(b *testing.B) {
	source, ctx := warmSource(b), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := source.Token(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func TestCachedTokenAllocatesNothing(t *testing.T) {
	source, ctx := warmSource(t), t.Context()
	if n := testing.AllocsPerRun(1000, func() { source.Token(ctx) }); n != 0 {
		t.Errorf("a cached token costs %v allocations", n)
	}
}
