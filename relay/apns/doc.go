// Package apns forwards alerts from a [relay.Relay] to Apple's push service:
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
// The key is a .p8 file from Apple's developer pages ("Keys", with Apple Push Notifications service enabled); the topic
// is the app's bundle id.
//
// Messages go over HTTP/2 with a provider token (a JWT signed with ES256), which is made anew before it is 45 minutes
// old; Apple refuses those of an hour. What Apple refuses comes back as a [relay.ForwardError]: 410 when the device
// token is dead, wrong, or another app's; 429 when the device is sent too much; 502 for anything else, such as a key
// that was revoked. Nothing is repeated.
package apns
