// Quickstart shows the way of an alert in one process: a command fails, a daemon seals its last lines to two phones and
// posts them to a relay, the relay passes on ciphertext, and the phones decrypt it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	// A relay and two phones, which are elsewhere in real life.
	relay := relaytest.NewRelay()
	defer relay.Close()
	phones := []*relaytest.Phone{relaytest.NewPhone(), relaytest.NewPhone()}

	// What a daemon knows of its paired phones.
	devices := make([]pairing.Device, len(phones))
	for i, phone := range phones {
		devices[i] = pairing.Device{
			ID:        fmt.Sprint("phone-", i+1),
			PublicKey: phone.PublicKey(),
			PushToken: secret.New(phone.PushToken()),
		}
	}

	alert, err := failingJob(out)
	if err != nil {
		return err
	}
	client, err := relayclient.New(relay.URL)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	push := relayclient.Push{Alert: alert, Salt: payload.NewSalt()}
	for _, outcome := range client.Send(ctx, push, devices) {
		if outcome.Err != nil {
			return outcome.Err
		}
	}

	if err := showRelay(out, relay, alert); err != nil {
		return err
	}
	return showPhones(out, relay, phones)
}

// failingJob runs a command that is on every machine with Go, and that fails.
func failingJob(out io.Writer) (payload.Alert, error) {
	host, err := os.Hostname()
	if err != nil {
		return payload.Alert{}, err
	}
	alert := payload.NewFailure(host, "nightly-vet")
	alert.StartedAt = time.Now()

	job := exec.Command("go", "vet", "./no/such/package")
	var stderr bytes.Buffer
	job.Stderr = &stderr
	failure := (*exec.ExitError)(nil)
	if err := job.Run(); !errors.As(err, &failure) {
		return payload.Alert{}, fmt.Errorf("%v should have failed by itself: %v", job, err)
	}

	code := failure.ExitCode()
	alert.ExitCode = &code
	alert.FailReason = failure.String()
	alert.LogTail = payload.LogTail(payload.CleanOutput(stderr.Bytes()))
	fmt.Fprintf(out, "THE JOB  %s\n         %s\n", strings.Join(job.Args, " "), failure)
	return alert, nil
}

// showRelay prints all that the relay was sent, and looks for words of the alert in it.
func showRelay(out io.Writer, relay *relaytest.Relay, alert payload.Alert) error {
	words := wordsOf(alert)
	found := 0
	fmt.Fprintf(out, "\nTHE RELAY saw\n")
	for _, request := range relay.Requests() {
		envelope, err := request.Envelope()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "         device     %.24s…\n", envelope.Device.Reveal()) // the relay needs the push token to forward
		fmt.Fprintf(out, "         ciphertext %.24s… (%d characters)\n", envelope.Ciphertext, len(envelope.Ciphertext))
		fmt.Fprintf(out, "         collapseId %s\n", envelope.CollapseID)
		fmt.Fprintf(out, "         priority   %s, event %v\n\n", envelope.Priority, envelope.Event)
		for _, word := range words {
			if bytes.Contains(request.Body, []byte(word)) {
				found++
			}
		}
	}
	fmt.Fprintf(out, "         Of the %d words in the alert it saw %d.\n", len(words), found)
	if found > 0 {
		return errors.New("the relay could read the alert")
	}
	return nil
}

// wordsOf returns the words of what an alert says, without the short ones, which base64 text contains by chance.
func wordsOf(alert payload.Alert) []string {
	text := alert.Name + " " + alert.Host + " " + alert.FailReason + " " + strings.Join(alert.LogTail, " ")
	var words []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(word) >= 5 {
			words = append(words, word)
		}
	}
	return words
}

// showPhones prints what each phone decrypts.
func showPhones(out io.Writer, relay *relaytest.Relay, phones []*relaytest.Phone) error {
	for i, phone := range phones {
		received, err := phone.Received(relay)
		if err != nil {
			return err
		}
		for _, n := range received {
			fmt.Fprintf(out, "\nPHONE %d  %s: %s on %s, %s\n", i+1, n.Alert.Kind, n.Alert.Name, n.Alert.Host, n.Alert.FailReason)
			for _, line := range n.Alert.LogTail {
				fmt.Fprintf(out, "         | %s\n", line)
			}
		}
		if len(received) != 1 {
			return fmt.Errorf("phone %d read %d alerts, want 1", i+1, len(received))
		}
	}
	return nil
}
