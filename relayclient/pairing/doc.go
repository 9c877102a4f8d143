// Package pairing remembers which phones a daemon pages, and the one salt that a fleet's collapse ids share.
//
// A [Store] keeps both: [FileStore] in one JSON file, for one machine, in the format of the deployed Python daemon;
// [SQLStore] in PostgreSQL or SQLite, for fleets. A [Registry] over it is what a daemon works with, and [Handler] lets
// people pair, list, test and revoke phones over HTTP:
//
//	store, err := pairing.OpenFile("/var/lib/mydaemon/devices.json")
//	if err != nil {
//		return err
//	}
//	registry, err := pairing.NewRegistry(store)
//	if err != nil {
//		return err
//	}
//	api, err := pairing.Handler(registry, test) // see the next section before mounting it
//	if err != nil {
//		return err
//	}
//	mux.Handle("/push/", requireToken(token, api))
//
// # The handler authenticates nobody
//
// Anybody who can reach [Handler] can pair a phone and read every alert from then on. It checks no token, no session
// and no address. The caller must put a check in front of it, and serve it over TLS or on a loopback address:
// docs/daemon.md shows a bearer token compared in constant time. The fingerprint in its answers is for a person to
// compare with the one the phone shows, so that a key that was replaced on its way is noticed.
//
// # Links
//
// A person pairs a phone by pointing its camera at a QR code. The code holds a [Link]: the daemon's name, the URL of
// the handler as the phone reaches it, and the bearer token. [PhoneAddresses] says what that URL may be, and package qr
// draws the code. A [WebLink] is for a page in a browser, which may not call a daemon at plain http, and for a daemon
// that the phone cannot reach: it names a mailbox at the relay, where the page leaves its request.
//
// # When the store is down
//
// An alert is sent to the phones that were last known, so that it does not depend on a database: see
// [Registry.Recipients]. What people do (list, pair, revoke) always asks the store and fails with [ErrUnavailable]; the
// handler answers 503.
//
// # The salt
//
// Every node derives the collapse id of an alert under the same salt, so that the relay recognises their copies of it
// (relay protocol, "Inbound request"). The store's first user makes it, once; the relay never sees it.
//
// # Secrets
//
// A push token and the salt are secrets, and each is a [secret.Text]. The store has both in clear: protect the file or
// the database.
//
// # Concurrency
//
// A [Registry], a [FileStore], an [SQLStore] and the [Handler] are safe for concurrent use. Devices, requests, results
// and errors are plain values: several goroutines may read one, and nobody may change it meanwhile.
package pairing
