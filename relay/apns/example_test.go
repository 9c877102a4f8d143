package apns_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
)

// A relay of one's own, for an app that was run from Xcode.
func Example() {
	serve := func(keyFile string) error {
		key, err := apns.LoadKey(keyFile, "TEAM123456")
		if err != nil {
			return err
		}
		forwarder, err := apns.New(key, "com.example.pager", apns.WithHost(apns.Sandbox))
		if err != nil {
			return err
		}
		defer forwarder.Close()
		sealed, err := relay.New(relay.WithForwarder(forwarder))
		if err != nil {
			return err
		}
		defer sealed.Close()
		server := &http.Server{
			Addr:              ":8080",
			Handler:           sealed,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       40 * time.Second,
			WriteTimeout:      time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
		}
		return server.ListenAndServe()
	}
	fmt.Println(serve("key.p8"))
	// Output:
	// apns: invalid key: the file is called "key.p8", not AuthKey_…….p8, so its key id is not known
}
