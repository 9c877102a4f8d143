// Package sealpush is the documentation of a module with which a program sends encrypted alerts to the phone of its
// owner. Nobody between the program and the phone can read an alert. This package has no code. Which packages to import
// depends on what you write.
//
// A daemon (a scheduler, a backup tool, a CI runner) seals alerts to paired phones and posts the ciphertext to a push
// relay that it does not trust:
//
//   - relayclient: the Notifier that a daemon embeds, and the Client under it
//   - relayclient/pairing: which phones are paired, and the salt of the fleet; relayclient/pairing/qr draws pairing
//     links
//   - payload: the alert itself, fitted to what a push message can carry
//   - seal: keys and sealed boxes, X25519 (libsodium) and X-Wing (HPKE)
//   - secret: the type of push tokens, salts and client secrets, which does not print
//   - integrations/slog, integrations/notify: pages from log/slog and nikoksr/notify
//   - integrations/cron, integrations/gocron: pages about jobs of these schedulers, as modules of their own
//   - integrations/alertmanager: pages from Alertmanager and Grafana
//
// A bridge (between an AI agent and a mobile app) proves who it is with a short-lived JWT and asks a relay to wake the
// phone:
//
//   - relayclient/bridge: register, unregister, notify, buffer
//   - pushauth: client credentials to a cached bearer token
//
// For writing a relay or an app, or for tests of the above:
//
//   - relay: the relays and the token service to run, as http.Handlers
//   - relay/apns, relay/webpush: forwarders to Apple and to browsers
//   - relayclient/relaytest: the same relays, and phones, for tests, on a socket or in memory
//   - relayclient/relaytest/conformance: checks that any relay can be held to
//   - relay/statetest, relayclient/pairing/storetest: tests of a State or a Store of your own
//   - pushauth/verify: a relay's check of bearer tokens
//
// The tool, cmd/sealpush, is a module of its own. So is what needs a large dependency, such as integrations/otel.
//
// # Conventions
//
// In all packages: an option is a function that its constructor calls; one that is nil, or has a bad value, is an error
// of the constructor (of package relaytest, a panic). A nil context is context.Background(). A nil logger is what
// slog.Default() returns at the time of each line. The keys of log lines are the same everywhere: "kind", "name" and
// "run_id" are an alert's, "device" is the id of a phone, "status" the answer of a server, "error" what went wrong. An
// error that can be acted on is a sentinel or an exported type, for [errors.Is] and [errors.As]; a FieldError, of
// whichever package, says which field of an input is wrong.
//
// The programs under examples run as they are; start with
//
//	go run ./examples/quickstart
package sealpush
