// Package sealpush lets a program on somebody's own machine page somebody's own
// phone, with nobody in between able to read the page. This package holds no
// code; what to import depends on who you are.
//
// A daemon (a scheduler, a backup tool, a CI runner) seals alerts to paired
// phones and posts the ciphertext to a push relay that it does not trust:
//
//   - relayclient: the [relayclient.Notifier] that a daemon embeds, and the
//     [relayclient.Client] under it
//   - relayclient/pairing: which phones are paired, and the salt of the fleet
//   - payload: the alert itself, fitted to what a push message can carry
//   - seal: X25519 keys and libsodium sealed boxes
//
// A bridge (between an AI agent and a mobile app) proves who it is with a
// short-lived JWT and asks a relay to wake the phone:
//
//   - relayclient/bridge: register, unregister, notify, buffer
//   - pushauth: client credentials to a cached bearer token
//
// Whoever writes a relay or an app, or tests one of the above:
//
//   - relay: relays to run, with a token service for bridges; relay/apns forwards to Apple
//   - relayclient/relaytest: these relays and phones for tests, on a
//     socket or in memory
//   - pushauth/verify: a relay's check of bearer tokens
//
// The programs under examples run as they are; start with
//
//	go run ./examples/quickstart
package sealpush
