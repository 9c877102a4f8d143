// Package relay has the servers between daemons or bridges and the push services, as HTTP handlers for a program of
// your own:
//
//   - [New] makes the sealed relay. Daemons post sealed alerts to it, each for one device; it forwards them to a push
//     service and cannot read them.
//   - [NewBridge] makes the push relay that bridges register phones with and send wake-ups through, and
//     [NewTokenService] the token service whose tokens it takes.
//   - [NewMailboxes] makes the mailboxes through which a phone pairs with a daemon that it cannot reach.
//
// A sealed relay needs a push service to forward to. Package relay/apns has Apple's:
//
//	key, err := apns.LoadKey("AuthKey_ABC123DEFG.p8", "TEAM123456")
//	if err != nil {
//		return err
//	}
//	forwarder, err := apns.New(key, "com.example.pager")
//	if err != nil {
//		return err
//	}
//	defer forwarder.Close()
//	sealed, err := relay.New(relay.WithForwarder(forwarder))
//	if err != nil {
//		return err
//	}
//	defer sealed.Close()
//
// Package relay/webpush has the push services of browsers, and what a page needs to subscribe. Another push service is a
// package of its own with a [Forwarder]: it decides what a device token looks like, and makes its message from an
// [Envelope].
//
// A [Policy] says how often a device may be paged. What a relay remembers of each device for that is kept in a [State]:
// in memory, or in a database if it must survive a restart or if several relays share it.
//
// # What the sealed relay answers
//
// Envelopes are posted to the path "/". Every answer is JSON with "v":1. What is accepted is answered 202 with an
// outcome: "forwarded", "coalesced" with a page that was just forwarded, "suppressed" because the same alert is
// repeated often, or "digested" because the device's quota is used up (see [Policy]). An invalid envelope is answered
// 400 with an error text, whose first word is the member that is wrong. Further answers are 408 for a body that takes
// more than 10 s to arrive, 410 for a device token that is dead, 413 for a body over 8192 bytes, 429 with Retry-After
// for a device that is paged too often, 502 when the push service did not take the message, and 503 when the state has
// no room for another device.
//
// # What the services for bridges answer
//
// The push relay and the token service answer as the deployed ones do: paths, member names and the word "Bearer" are
// exact, unknown methods and paths are answered 404, and every answer is JSON with "ok", or a token. Where they are
// stricter by default there is an option: [WithMaxBody], [WithPushData], [WithOutageStatus]. Further answers are 408
// and 413 as above, 409 for another device of a client that has the maximum number ([WithMaxDevices]), and 429 with
// Retry-After for a client that asks for many tokens at once. docs/security.md has a table of what bounds the work and
// the memory that a client can cause.
//
// # Timeouts
//
// Everything here is a handler, and the server around it needs its own limits: ReadHeaderTimeout, ReadTimeout,
// WriteTimeout (a forward may take 30 s), IdleTimeout and MaxHeaderBytes. docs/self-host.md has a whole program. A
// handler never lifts a limit of its server. It announces the idle timeout in Keep-Alive, so that a client does not
// post on a connection that is just being closed.
//
// # Concurrency
//
// The handlers are safe for concurrent use, as every [net/http.Handler] is. Options, policies, envelopes and errors are
// values that do not change.
package relay
