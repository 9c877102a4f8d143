package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// How often the honest ones work. A token costs the service a PBKDF2 hash, and a bridge needs one an hour.
const (
	alertInterval = 100 * time.Millisecond
	tokenInterval = time.Second
)

// honest is a daemon that pages a phone, and a bridge that fetches a token and wakes one.
type honest struct {
	at     addresses
	client *relayclient.Client
	phone  []pairing.Device
	salt   secret.Text
	sent   atomic.Int64
}

// times is how long things took.
type times struct{ alerts, wakeups []time.Duration }

func (t times) and(other times) times {
	return times{slices.Concat(t.alerts, other.alerts), slices.Concat(t.wakeups, other.wakeups)}
}

func newHonest(at addresses) (*honest, error) {
	client, err := relayclient.New(at.Sealed)
	if err != nil {
		return nil, err
	}
	return &honest{
		at:     at,
		client: client,
		phone:  []pairing.Device{{ID: "e692bcf665132031", PushToken: secret.New(strings.Repeat("8f3a", 16)), PublicKey: seal.GenerateKey().Public()}},
		salt:   secret.New("4cf956b7261a9bc5628f2ffa5544190c"),
	}, nil
}

func (h *honest) close() { h.client.Close() }

// work works for so long.
func (h *honest) work(ctx context.Context, duration time.Duration) (times, error) {
	return h.workAnd(ctx, duration, duration, func() error { return nil })
}

// workAnd works for so long, and calls also at each interval. What takes long does not put off what comes next: else
// little would be measured while the services are slow.
func (h *honest) workAnd(ctx context.Context, duration, interval time.Duration, also func() error) (times, error) {
	var (
		mu    sync.Mutex
		took  times
		first error
		all   sync.WaitGroup
	)
	timed := func(list *[]time.Duration, do func(context.Context) error) {
		all.Go(func() {
			start := time.Now()
			err := do(ctx)
			elapsed := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			*list = append(*list, elapsed)
			first = cmp.Or(first, err)
		})
	}
	end := time.After(duration)
	alert, token, other := time.NewTicker(alertInterval), time.NewTicker(tokenInterval), time.NewTicker(interval)
	defer alert.Stop()
	defer token.Stop()
	defer other.Stop()
	for running := true; running; {
		select {
		case <-alert.C:
			timed(&took.alerts, h.page)
		case <-token.C:
			timed(&took.wakeups, h.wake)
		case <-other.C:
			if err := also(); err != nil {
				return times{}, err
			}
		case <-end:
			running = false
		case <-ctx.Done():
			running = false
		}
	}
	all.Wait()
	return took, cmp.Or(ctx.Err(), first)
}

// page sends an alert to the phone.
func (h *honest) page(ctx context.Context) error {
	alert := payload.NewFailure("node-a", "nightly-backup")
	alert.RunID = fmt.Sprint("run-", h.sent.Add(1))
	outcome := h.client.Send(ctx, relayclient.Push{Alert: alert, Salt: h.salt}, h.phone)[0]
	if outcome.Err == nil && outcome.Relay != relayclient.Forwarded {
		return fmt.Errorf("an alert was %s", outcome.Relay)
	}
	return outcome.Err
}

// wake fetches a token and pushes with it, as a bridge does that has just been started.
func (h *honest) wake(ctx context.Context) error {
	var token struct {
		Value string `json:"access_token"`
	}
	credentials := fmt.Sprintf(`{"client_id":%q,"client_secret":%q}`, honestBridge, h.at.Secrets[honestBridge])
	if err := post(ctx, http.DefaultClient, h.at.Token+"/token", "", credentials, &token); err != nil {
		return err
	}
	var pushed struct {
		OK bool `json:"ok"`
	}
	return post(ctx, http.DefaultClient, h.at.Push+"/push", token.Value, `{"title":"Agent","body":"New activity"}`, &pushed)
}

// A statusError is an answer that is not 200.
type statusError struct {
	url    string
	status int
}

func (e statusError) Error() string { return fmt.Sprintf("%s answered %d", e.url, e.status) }

// post is a statusError unless the answer is 200.
func post(ctx context.Context, client *http.Client, url, bearer, body string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return statusError{url, resp.StatusCode}
	}
	return json.Unmarshal(answer, into)
}
