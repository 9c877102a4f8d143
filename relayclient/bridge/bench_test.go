package bridge_test

import (
	"testing"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

// foreign is 1 KiB of what a phone tells an agent: prose and code, with the escapes that JSON gives them.
var foreign = []byte(`{"jsonrpc":"2.0","id":17,"method":"session/prompt","params":{"sessionId":"sess_9f2c41d07be6","prompt":[{"type":"text","text":` +
	`"Please look at why the nightly job fails since Tuesday. The log says:\n\n\tretry 3 of 5: dial tcp: lookup db.internal: no such host\n` +
	`\nI think it is the resolver, not the job itself. Put a timeout of 30 s around the lookup, like this:\n\n\tfunc lookup(ctx context.Context, ` +
	`host string) error {\n\t\tif len(host) \u003c 1 {\n\t\t\treturn errEmpty\n\t\t}\n\t\tctx, cancel := context.WithTimeout(ctx, 30*time.Second)\n` +
	`\t\tdefer cancel()\n\t\t_, err := resolver.LookupHost(ctx, host)\n\t\treturn err\n\t}\n\nThen run the tests again and tell me whether \"make check\" is ` +
	`green. If it is, push the branch, open a pull request against main, and write two sentences about what was wrong in the description. Do not touch ` +
	`the migration scripts, the other team owns them. When you are done, send me a short summary of what you changed and what is left to do; I read it on my way home tonight, so keep it to a few lines."}]}}`)

// debounced is a client that has just sent a notification.
func debounced(tb testing.TB) *bridge.Client {
	tb.Helper()
	_, client := newClient(tb)
	if result := client.Notify(tb.Context(), notification); result.Status != bridge.StatusSent {
		tb.Fatal(result)
	}
	return client
}

func BenchmarkNotifyDebounced(b *testing.B) {
	client, ctx := debounced(b), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		client.Notify(ctx, notification)
	}
}

func BenchmarkNotifyDebouncedParallel(b *testing.B) {
	client, ctx := debounced(b), b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			client.Notify(ctx, notification)
		}
	})
}

func BenchmarkHandleForeignMessage(b *testing.B) {
	_, client := newClient(b)
	ctx := b.Context()
	b.ReportAllocs()
	b.SetBytes(int64(len(foreign)))
	for b.Loop() {
		if handled, _ := client.HandleMessage(ctx, foreign); handled {
			b.Fatal("handled")
		}
	}
}

func TestHotPathsAllocateNothing(t *testing.T) {
	client, ctx := debounced(t), t.Context()
	if n := testing.AllocsPerRun(1000, func() { client.Notify(ctx, notification) }); n != 0 {
		t.Errorf("a debounced notification costs %v allocations", n)
	}
	if n := testing.AllocsPerRun(1000, func() { client.HandleMessage(ctx, foreign) }); n != 0 {
		t.Errorf("a foreign message costs %v allocations", n)
	}
}
