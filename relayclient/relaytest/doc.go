// Package relaytest has the other ends of both push protocols, for the tests of a daemon or a bridge and for trying
// things out on one machine: relays and a token service that run in the test's own process, and the phones behind them.
// The relays and the token service are package relay's, which people run. They read the protocols on their own, sharing
// no code with the clients, so that a misreading on one side shows.
//
// # A daemon's test
//
// A [Relay] takes sealed alerts; a [Phone] reads them:
//
//	relay := relaytest.NewRelay()
//	defer relay.Close()
//	phone := relaytest.NewPhone()
//
//	// Point the daemon at relay.URL, pair phone.PublicKey() and
//	// phone.PushToken(), let a job fail …
//
//	if _, err := relay.WaitInbox(t.Context(), phone.PushToken(), 1); err != nil {
//		t.Fatal(err)
//	}
//	pages, err := phone.Received(relay)
//
// What the relay could see is in [Relay.Requests], the message that Apple's push service would get in [Relay.Inbox],
// and how the client behaved on the network in [Relay.Stats].
//
// Envelopes are read as the hosted relay reads them: all members by their exact names, each within its bounds; of two
// of one name the last counts. Whatever is not right is answered with 400 and an error whose first word is the member,
// as {"v":1,"error":"collapseId must be 32 lower-case hex digits"}. Members that the protocol does not know are
// ignored. A body over 8192 bytes is answered 413, one that takes more than 10 s to arrive 408.
//
// # Scripted faults
//
// [Relay.Script] says what becomes of the next requests: a status and a body, a delay, a dropped connection.
// [Relay.ScriptDevice] does so for one phone.
//
//	relay.Script(1, relaytest.Answer{
//		Status: http.StatusTooManyRequests,
//		Header: http.Header{"Retry-After": {"30"}},
//	})
//
// An [Answer] can hold requests until the test lets go. With [Relay.WaitInFlight] that shows how many a client keeps on
// the way at once.
//
// # How often a phone is paged
//
// A relay decides how many alerts of a flood reach a phone: it coalesces, suppresses and limits as the hosted relay
// does (see [relay.Policy]). So a test that sends one alert twice finds one message, and the second answer says
// "coalesced". With [WithoutPolicy] every alert arrives; in a bubble a test can also wait until the windows have
// passed.
//
// A relay forwards to its own inbox, from which phones in other processes fetch through [Relay.InboxHandler]. The relay
// itself is package relay's: with [WithRelay] a test sets it up.
//
// # A bridge's test
//
// A [BridgeService] is a token service and a push relay. It registers devices, takes pushes and issues the tokens that
// both ask for.
//
// # Bubbles
//
// By default a server listens on the loopback interface. With [InMemory] it does not use the network, and its Client
// reaches it inside a testing/synctest bubble, where waiting for ten minutes takes no time. All timers here use the
// bubble's clock.
//
// # Concurrency
//
// A [Relay], a [BridgeService] and a [Phone] are safe for concurrent use. Answers, requests, notifications and stats
// are plain values: several goroutines may read one, and nobody may change it meanwhile.
package relaytest
