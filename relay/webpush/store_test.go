package webpush_test

import (
	"testing"

	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relay/webpush/storetest"
)

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) func(*testing.T) webpush.Store {
		s := webpush.NewMemoryStore()
		return func(*testing.T) webpush.Store { return s }
	})
}
