// Package bridge is the push half of a bridge: the program on somebody's own machine that connects their AI agents with
// the app on their phone. When an agent has sent a message and no phone is connected, it wakes the phone.
//
// # Setting up
//
// The operator of a push relay hands out a client id and a client secret. They go into the bridge's common.toml:
//
//	[push_relay]
//	url = "https://push.example"        # push relay
//	token_url = "https://token.example" # token service
//	client_id = "bridge-home-office"
//	client_secret = "SHOWN-ONCE"
//
// [LoadConfig] reads that table and [New] makes a [Client] of it, one for the whole process. Without the table, or with
// an empty field in it, the client does nothing and returns no error, so that the bridge makes the same calls in either
// case:
//
//	config, err := bridge.LoadConfig("common.toml")
//	if err != nil {
//		return err // names file and line
//	}
//	client, err := bridge.New(config)
//	if err != nil {
//		return err
//	}
//
// # Pairing and registering
//
// [PairingResponse.WithPushRelay] tells the app that push is configured. The app then sends its device token through
// its WebSocket. Show each message from the phone to [Client.HandleMessage] before it goes to the agent:
//
//	if handled, err := client.HandleMessage(ctx, message); handled {
//		if err != nil {
//			slog.Warn("push registration failed", "error", err)
//		}
//		continue // never forwarded
//	}
//	agent.Write(message)
//
// HandleMessage waits for the relay. A read loop that must go on meanwhile (to see pings and the connection's end) asks
// [IsPushMessage] and hands the message to another goroutine; one goroutine for each connection keeps register and
// unregister in order.
//
// # Waking the phone
//
// An [Outbox] for each agent carries its messages to the phone, keeps them while none is connected, and wakes the
// phone:
//
//	outbox, err := bridge.NewOutbox(client, bridge.Notification{Title: "Agent Name", Body: "New activity"})
//	if err != nil {
//		return err
//	}
//	defer outbox.Close()
//	// for each message of the agent
//	err = outbox.Send(ctx, message)
//	// for each WebSocket, in its own goroutine, until it drops
//	err = outbox.Attach(ctx, func(ctx context.Context, message []byte) error {
//		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
//		defer cancel()
//		return conn.Write(ctx, websocket.MessageText, message)
//	})
//
// The Outbox wakes the phone also for what is said within the 30 s after a notification, and after a failure. A bridge
// with buffers of its own calls [Client.Notify], which drops a notification within 30 s of the one before. Both may be
// called for every line that an agent prints: one notification goes out per 30 s.
//
// # When something fails
//
// A failure of push never disturbs the agent. Notify returns a [Result] and has logged what went wrong:
//
//	ERROR push notification not sent    the token service is down, or the credentials are wrong
//	WARN  push notification not sent    the relay is down, refuses, or reached no device
//	WARN  device not reached            APNs or FCM refused one device; reason says why
//	WARN  push relay removed a device   its app was deleted, or registers anew when it is next opened
//	WARN  more devices not reached      one answer makes ten of the two lines above at most
//	WARN  push relay accepted a notification, but its answer cannot be read
//	                                    is url right?
//	WARN  no phone could be woken for an hour
//	                                    the outbox waits for the agent's next message
//	WARN  the configuration has names like those of push notifications, which are not read
//	                                    [push-relay] for [push_relay], for instance
//	WARN  push notifications disabled   a field of [push_relay] is missing; missing names it
//	WARN  push token not refreshed      the token service is down; the old token is used while it lives
//	WARN  outbox is full                nobody has connected for 10 000 messages, or 64 MiB
//	DEBUG push notification debounced   another was sent or failed a moment ago; remaining is the rest of the wait
//
// Errors are typed: [FieldError] for what was refused before any request, [RelayError] for the relay, and within it
// [github.com/sealpush/sealpush/pushauth.TokenError] for the token service. No error and no log line holds a secret.
//
// # Concurrency
//
// A [Client] and an [Outbox] are safe for concurrent use. Configurations, devices, notifications, results and errors
// are plain values: several goroutines may read one, and nobody may change it meanwhile.
package bridge
