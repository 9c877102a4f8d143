package pushauth_test

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/sealpush/sealpush/pushauth"
)

// warmSource has a token in its cache.
func warmSource(tb testing.TB) *pushauth.Source {
	tb.Helper()
	service := handlerTransport{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"access_token":"tok-1","token_type":"Bearer","expires_in":3600}`)
	})}
	source, err := pushauth.NewSource(credentials,
		pushauth.WithHTTPClient(&http.Client{Transport: service}),
		pushauth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		tb.Fatal(err)
	}
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
