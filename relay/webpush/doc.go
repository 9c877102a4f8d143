// Package webpush forwards alerts from a [relay.Relay] to browsers, by Web Push (RFC 8030, 8291 and 8292): Chrome and
// Firefox on Android, Safari for pages on an iPhone's home screen, and browsers on desktops. It needs no developer
// account.
//
//	store, err := webpush.NewSQLStore(db, relay.SQLite)
//	if err != nil {
//		return err
//	}
//	key, err := store.Key(ctx)
//	if err != nil {
//		return err
//	}
//	forwarder, err := webpush.New(key, "mailto:ops@example.com", store)
//	if err != nil {
//		return err
//	}
//	defer forwarder.Close()
//	sealed, err := relay.New(relay.WithForwarder(forwarder))
//	if err != nil {
//		return err
//	}
//	defer sealed.Close()
//	invitation, err := store.Invitation(ctx)
//	if err != nil {
//		return err
//	}
//	subscriptions, err := webpush.NewSubscriptions(forwarder, invitation)
//	if err != nil {
//		return err
//	}
//	mux.Handle("/subscriptions", subscriptions)
//	mux.Handle("/subscriptions/", subscriptions)
//
// A page posts what its browser's pushManager.subscribe returned to [Subscriptions] and gets a device token, which it
// gives to a daemon. The daemon posts alerts for that token like for any other.
//
// # What a browser is sent
//
// A message is JSON of at most 3993 bytes, encrypted for the browser:
//
//	{"v":1,"suite":"x25519","ciphertext":"…","collapseId":"…","priority":"time-sensitive"}
//
// or, as a digest, {"v":1,"collapseId":"digest","priority":"passive","kind":"digest"}. The push service sees that there
// is a message of always the same size, its urgency (high for a time-sensitive alert, normal for a passive one), a
// topic, which is a hash of the collapse id, and a time to live of 600 seconds.
//
// What a push service refuses comes back as a [relay.ForwardError]: 410 when the subscription is no more, which the
// service says with 404 or 410; 429 when it is sent too much; 502 for anything else. Nothing is repeated. A device
// token that is dead comes to life again when its browser subscribes anew within 30 days.
//
// # Where a forwarder connects to
//
// An endpoint is a URL that a stranger chooses. So it must be https, at a push service that is known or that the
// operator allows ([WithPushService]), and the address that its host has when it is dialled must be public, unless it
// is of a network that the operator allows ([WithPrivateNetworks]). Redirects are not followed, proxies not used,
// answers read up to 4096 bytes, and 20 seconds are all that a message gets.
//
// # Concurrency
//
// A [Forwarder], a [MemoryStore], an [SQLStore] and the handler [Subscriptions] are safe for concurrent use.
// Subscriptions and what a store returns are plain values: several goroutines may read one, and nobody may change it
// meanwhile.
package webpush
