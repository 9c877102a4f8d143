package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

const (
	mailboxOpenTimeout = 10 * time.Second
	mailboxPollTimeout = 40 * time.Second // the relay answers within 25 s
	mailboxPause       = time.Second      // between two polls, at least
)

// A mailbox is where the phone leaves its pairing request at the relay, and finds the answer (docs/protocol.md,
// "Pairing through the relay").
type mailbox struct {
	origin string          // of the relay
	id     string          // known to the phone as well
	secret secret.Text     // the opener's own
	key    seal.PrivateKey // of this pairing alone
	client *http.Client

	answered bool // and so kept until the phone has read it
}

// errNoMailboxes is the error of a relay that serves none.
var errNoMailboxes = errors.New("the relay serves no mailboxes")

// mailbox opens one at the relay. It is nil when the relay does not open one, and nobody asked for the page.
func (o pairOptions) mailbox(ctx context.Context) (*mailbox, error) {
	origin, err := originOf(o.relay)
	if err != nil {
		return nil, usageError{err}
	}
	if !slices.Contains(seal.Suites(), seal.X25519) { // the link's key, which a code has to have room for
		err := fmt.Errorf("a link to a mailbox: %w", seal.ErrFIPSOnly)
		if o.page != "" {
			return nil, err
		}
		fmt.Printf("The phone has to come to this machine, for %v.\n", err)
		return nil, nil
	}
	box, err := openMailbox(ctx, origin)
	switch {
	case err == nil:
		return box, nil
	case ctx.Err() != nil:
		return nil, errInterrupted
	case o.page != "":
		return nil, fmt.Errorf("%w: a phone cannot be paired through it", err)
	case !errors.Is(err, errNoMailboxes):
		fmt.Printf("The relay opens no mailbox, so the phone has to come to this machine: %v.\n", err)
	}
	return nil, nil
}

// openMailbox opens one at a relay. The error wraps errNoMailboxes when the relay does not know what that is.
func openMailbox(ctx context.Context, origin string) (*mailbox, error) {
	var id [16]byte
	rand.Read(id[:])
	m := &mailbox{origin: origin, id: hex.EncodeToString(id[:]), secret: secret.New(rand.Text()), key: seal.GenerateKey(), client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the secret is for this relay
	}}
	ctx, cancel := context.WithTimeout(ctx, mailboxOpenTimeout)
	defer cancel()
	answer, err := m.call(ctx, http.MethodPut, "", "")
	switch {
	case err != nil:
		return nil, err
	case answer.status == http.StatusCreated:
		return m, nil
	case answer.status == http.StatusTooManyRequests || answer.status == http.StatusServiceUnavailable:
		return nil, answer
	}
	return nil, fmt.Errorf("%w at %s (it answered %d)", errNoMailboxes, origin, answer.status)
}

// A mailAnswer is what a relay answers. As an error, it is a refusal.
type mailAnswer struct {
	status     int
	body       string
	retryAfter time.Duration
}

func (a mailAnswer) Error() string {
	var said struct{ Error string }
	if json.Unmarshal([]byte(a.body), &said) != nil || said.Error == "" {
		return fmt.Sprintf("the relay answered %d %s", a.status, http.StatusText(a.status))
	}
	return fmt.Sprintf("the relay answered %d: %s", a.status, printable(said.Error))
}

// call makes one request. An error means that there was no answer.
func (m *mailbox) call(ctx context.Context, method, part, body string) (mailAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, method, m.origin+"/mailboxes/"+m.id+part, strings.NewReader(body))
	if err != nil {
		return mailAnswer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+m.secret.Reveal())
	if body != "" {
		req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	resp, err := m.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the mailbox's URL
		}
		return mailAnswer{}, fmt.Errorf("the relay cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, relay.MaxMailboxMessage+1))
	if err != nil {
		return mailAnswer{}, fmt.Errorf("the relay's answer broke off: %w", err)
	}
	answer := mailAnswer{status: resp.StatusCode, body: string(text)}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		answer.retryAfter = time.Duration(min(seconds, 60)) * time.Second
	}
	return answer, nil
}

// await waits for the phone's message. It goes on while the relay cannot be reached, which it reports once.
func (m *mailbox) await(ctx context.Context, report func(error)) (string, error) {
	for reported := false; ; {
		begin := time.Now()
		answer, err := m.poll(ctx)
		pause := mailboxPause
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err == nil && answer.status == http.StatusOK:
			return answer.body, nil
		case err == nil && answer.status == http.StatusNoContent:
			reported = false
		case err == nil && answer.status == http.StatusNotFound:
			return "", errors.New("the mailbox is gone: its ten minutes are over, or the relay was restarted")
		case err == nil && answer.status < 500 && answer.status != http.StatusTooManyRequests:
			return "", fmt.Errorf("the relay does not hand over what is in the mailbox: %w", answer)
		default:
			if err == nil {
				err = answer
			}
			pause = max(5*mailboxPause, answer.retryAfter)
			if !reported {
				reported = true
				report(err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause - time.Since(begin)):
		}
	}
}

func (m *mailbox) poll(ctx context.Context) (mailAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, mailboxPollTimeout)
	defer cancel()
	return m.call(ctx, http.MethodGet, "/request", "")
}

// errNotForUs is the error for a message that this pairing's key cannot open.
var errNotForUs = errors.New("what came is not sealed to this link: somebody who does not have the link filled the mailbox, or the relay changed the phone's message. " +
	"Nothing is paired. For a new link, start again")

// read opens the phone's message. Only somebody who has seen the link can have sealed it.
func (m *mailbox) read(message string) (pairing.Request, error) {
	plaintext, err := seal.Open(m.key, message)
	if err != nil {
		return pairing.Request{}, errNotForUs
	}
	req, err := pairing.ParseRequest(strings.NewReader(string(plaintext)))
	if err != nil {
		return pairing.Request{}, fmt.Errorf("the phone's message is no pairing request: %w. Nothing is paired", err)
	}
	return req, nil
}

// A mailboxAnswer is what the phone finds in the mailbox, sealed to its key.
type mailboxAnswer struct {
	V       int    `json:"v"`
	Mailbox string `json:"mailbox"` // a relay must not pass it on as the answer of a later pairing
	Paired  bool   `json:"paired"`
	Name    string `json:"name"`            // of this daemon
	Error   string `json:"error,omitempty"` // why it is not paired
}

// answer leaves the answer for a phone: that it is paired, or why not.
func (m *mailbox) answer(ctx context.Context, phone seal.PublicKey, name, problem string) error {
	plaintext, err := json.Marshal(mailboxAnswer{V: 1, Mailbox: m.id, Paired: problem == "", Name: name, Error: problem})
	if err != nil {
		return err
	}
	box, err := seal.Seal(phone, plaintext)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mailboxOpenTimeout)
	defer cancel()
	answer, err := m.call(ctx, http.MethodPut, "/answer", box)
	if err != nil {
		return err
	}
	if answer.status != http.StatusNoContent {
		return answer
	}
	m.answered = true
	return nil
}

// close deletes the mailbox, unless there is an answer for the phone in it. A phone that waits learns that nobody
// answers.
func (m *mailbox) close() {
	if m.answered {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	m.call(ctx, http.MethodDelete, "", "") // or else it is gone in ten minutes
}

// receiveMail waits for the phone's message, or for its request as a line.
func (o pairOptions) receiveMail(ctx context.Context, box *mailbox, typed <-chan string) (guest, error) {
	if err := o.showPage(box); err != nil {
		return guest{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	type mail struct {
		message string
		err     error
	}
	came := make(chan mail, 1)
	go func() {
		message, err := box.await(ctx, func(err error) { fmt.Printf("Still waiting, but %v.\n", err) })
		came <- mail{message, err}
	}()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return guest{}, o.nobodyCame()
			}
			return guest{}, errInterrupted
		case mail := <-came:
			if ctx.Err() != nil {
				continue
			}
			if mail.err != nil {
				return guest{}, fmt.Errorf("%w: no phone was paired", mail.err)
			}
			req, err := box.read(mail.message)
			return guest{request: req, tell: func(ctx context.Context, problem string) error {
				return box.answer(ctx, req.PublicKey, o.host, problem)
			}}, err
		case line, open := <-typed:
			if !open {
				typed = nil // the phone may come all the same
				continue
			}
			if req, ok := pasted(line); ok {
				return guest{request: req}, nil
			}
		}
	}
}

// showPage prints the link to the page.
func (o pairOptions) showPage(box *mailbox) error {
	page := o.page
	if page == "" {
		page = box.origin
	}
	origin, err := originOf(page)
	if err != nil {
		return usageError{err}
	}
	link := pairing.WebLink{Name: o.host, Mailbox: box.id, Key: box.key.Public(), Invitation: secret.New(o.invitation)}
	if origin != box.origin {
		link.Relay = box.origin
	}
	text, err := link.At(origin)
	if err != nil {
		return usageError{err}
	}
	if err := o.draw(text); err != nil {
		return err
	}
	fmt.Printf("Link         %s\n\n", text)
	switch {
	case (pairing.Link{URL: origin}).ThisMachineOnly():
		fmt.Printf("Only a browser on this machine can open it: %s names this machine alone.\n", origin)
	case strings.HasPrefix(origin, "http://"):
		fmt.Println("A browser shows alerts of a page over https alone: put TLS in front of the relay.")
	}
	_, err = fmt.Println("Open it on the phone, or scan the code. Or paste the phone's pairing request here, as one line. Control-C stops it.")
	return err
}

// originOf is the origin of a URL, as browsers write it.
func originOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", errors.New("it must be an http or https URL with a host") // which may hold a password
	}
	host, port := strings.ToLower(u.Host), u.Port()
	if port == "" || port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return u.Scheme + "://" + host, nil
}
