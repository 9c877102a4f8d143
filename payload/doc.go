// Package payload makes what a phone decrypts: compact alerts, shrunk to fit in a sealed box.
//
// A daemon builds an alert with the constructor of its kind, sets what else it knows, and fits it:
//
//	alert := payload.NewFailure(hostname, "nightly-backup")
//	alert.ExitCode = new(cmd.ProcessState.ExitCode())
//	alert.LogTail = payload.LogTail(payload.CleanOutput(stderr.Bytes()))
//	fitted, err := payload.Fit(alert, seal.X25519.MaxPlaintext(3000))
//	if err != nil {
//		return err // the alert breaks the protocol, or cannot be made to fit
//	}
//	id := alert.CollapseID(salt)
//
// fitted.Plaintext is what gets sealed, once for each paired phone. How many bytes it may take depends on the suite of
// the phone's key. The id is the same for all phones. The relay sees it instead of the names behind it, beside the
// priority and whether the alert is an event. Package relayclient does all of this; import payload to build the alert,
// or to speak the protocol over a transport of your own.
//
// # What is sent
//
// A zero field is not sent: empty text, the zero time, a nil pointer, no lines. ExitCode, ThresholdSeconds and
// ObservedSeconds are pointers because 0 is a value that must reach the phone; write new(0), as Go 1.26 lets you. Times
// are sent in UTC, the alert's own in whole seconds, the others to the microsecond.
//
// The plaintext is byte for byte what the deployed daemon writes, so that alerts from a mixed fleet look alike. Only
// [Fit] and [Alert.MarshalJSON] return those bytes; [encoding/json.Marshal] also escapes some characters that need no
// escape.
//
// # Salt and collapse id
//
// An installation makes one salt with [NewSalt], keeps it beside its paired phones and sends it nowhere. The collapse
// id is a hash under that salt of what the alert is about, so that a relay can coalesce repetitions without learning a
// name. A test alert goes out under [NewCollapseID], so that it is never coalesced.
//
// # On the phone
//
// An app opens the sealed box, calls [Parse], and asks [Alert.Stale] before it shows a live page. Parse is lenient: a
// member that cannot be read is left out, and the alert is still shown.
//
// # Errors
//
// Bad input is a [*FieldError] that names the member, and an alert that cannot be made to fit is a [*SizeError] with
// the sizes in bytes. Neither quotes the alert, so both may be logged.
//
// # Concurrency
//
// The functions share no state and are safe for concurrent use. Alerts, results and errors are plain values: several
// goroutines may read one, and nobody may change it meanwhile.
//
// The contract is the push relay protocol, version 1, sections "Sealed plaintext", "Size fitting" and "Replay
// protection".
package payload
