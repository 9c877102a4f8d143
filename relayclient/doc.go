// Package relayclient sends alerts from a daemon to paired phones, through a push relay that cannot read them.
//
// A [Client] seals an alert to each phone's key and posts one envelope a phone to the relay's URL, at most 100 at once:
//
//	client, err := relayclient.New("https://relay.example/v1/push")
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	alert := payload.NewFailure(host, "nightly-backup")
//	alert.LogTail = payload.LogTail(output)
//	for _, outcome := range client.Send(ctx, relayclient.Push{Alert: alert, Salt: salt}, phones) {
//		if outcome.Err != nil {
//			// Already logged. Nothing to handle: the job goes on.
//		}
//	}
//
// A daemon that keeps its phones in a [pairing.Registry] embeds a [Notifier] instead, which looks up phones and salt by
// itself.
//
// # What a failure costs
//
// A failed alert must not break the program that sends it. Send returns one [Outcome] a device, in the devices' order,
// whatever happens: a phone with an unusable key costs its own alert only, an alert that cannot be sent at all gives
// every device the same error, and nothing panics or returns early. Each failure is logged once, by the device's id and
// the alert's kind, name and run id; one that all devices share is one line. An accepted alert for which the phone will
// not ring, by the relay's own word, is logged as well; see [RelayOutcome].
//
// A POST that the relay may have seen is never repeated (relay protocol, "Responses"), because a second one could page
// somebody twice. A POST that the relay certainly has not seen is sent on another connection: when no connection could
// be made, when not a byte of it was written, or when the relay declared its stream unprocessed (RFC 9113, section
// 8.7). That goes on until the patience of its Send has ended; see [WithPatience]. The one exception is a relay that
// refuses a ciphertext of more than 3000 characters: the alert is posted once more, with at most 3000; see
// [WithMaxCiphertext].
//
// # Storms, and watching
//
// A relay refuses what comes beyond some 60 alerts at once for one phone. With
// [WithStormGuard] a Notifier holds back a part of a storm, sums it up in one alert,
// and keeps room for what is critical. [WithObserver] tells of each alert, for metrics.
//
// # Connections
//
// A [Client] keeps its connections, so that alerts within a second of each other share them. An HTTP/1.1 connection
// that was idle for longer is not used again, for the relay may be closing it at that moment, unless the relay has
// announced how long it keeps it (Keep-Alive: timeout=N); new ones resume their TLS sessions. When a POST times out,
// later ones use new connections. A Send has at most [MaxInFlight] of them open.
//
// # What the relay learns
//
// The phone's device token, the ciphertext, an id that is the same for repetitions of one alert and means nothing
// without the salt, the [Priority], and whether the alert is a daemon event. Every name, host and log line is inside
// the sealed box.
//
// # Secrets
//
// Device tokens, the relay URL's credentials and query, steps of its path that are no ordinary words, and the salt are
// in no error and no log line. What a relay answers is quoted in errors as printable text without them, however it
// encodes them (percent, base64, JSON), and without what looks like somebody else's token: 16 hex digits in a row, or
// 40 characters of base64url.
//
// # Concurrency
//
// A [Client] and a [Notifier] are safe for concurrent use. Pushes, sealed alerts, outcomes and errors are plain values:
// several goroutines may read one, and nobody may change it meanwhile.
package relayclient
