// Package browsertest tests the web phone in a real browser, Chromium, driven over the DevTools protocol. It needs
// chromium in the path:
//
//	go test -C webphone/browsertest ./...
//	go test -C webphone/browsertest -screenshots DIR ./...
//
// A browser that was installed for a test has no push service to reach. So the tests supply the subscription that
// PushManager.subscribe would return, and hand the browser what a push service was sent for it; all else is real.
package browsertest
