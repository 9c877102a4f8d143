// Package webpushtest has a push service and the browsers behind it, for tests of what sends Web Push messages:
//
//	service := webpushtest.New(t)
//	subscription := service.Subscribe() // what a page gets from pushManager.subscribe
//	…                                   // push to subscription.Endpoint with service.Client()
//	message, err := service.Await(t.Context())
//
// The service refuses what RFC 8030, RFC 8188, RFC 8291 and RFC 8292 forbid: a message without TTL, one that is larger
// than 4096 bytes, a VAPID token that is expired or for another service. It opens each message as the browser would,
// and shares no code with any sender: it is written from these documents with the standard library alone.
//
// A service is safe for concurrent use. Keys, subscriptions and messages are plain values: several goroutines may read
// one, and nobody may change it meanwhile.
package webpushtest
