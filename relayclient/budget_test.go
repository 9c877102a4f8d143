package relayclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// envelopeOf is the body of a POST, read without the relay's checks.
func envelopeOf(t *testing.T, request relaytest.Request) (e struct {
	Device, Suite, Ciphertext, CollapseID string
}) {
	t.Helper()
	if err := json.Unmarshal(request.Body, &e); err != nil {
		t.Fatalf("%s: %v", request.Body, err)
	}
	return e
}

// phoneOf is a paired phone with a key of the suite.
func phoneOf(suite seal.Suite) (*relaytest.Phone, pairing.Device) {
	phone := relaytest.NewPhone(relaytest.WithPrivateKey(suite.GenerateKey()))
	return phone, deviceOf(phone)
}

// longAlert has more to say than any ciphertext holds.
func longAlert() payload.Alert {
	alert := failure()
	for range payload.MaxLogLines {
		alert.LogTail = append(alert.LogTail, strings.Repeat("rsync: connection reset ", 5))
	}
	return alert
}

// The deployed daemon's alerts under every budget, as phones of both suites open
// them: at 3800 characters, and at the floor.
func TestFitLiveVectorsReachThePhone(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "fit_live.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Cases []struct {
			Comment    string        `json:"comment"`
			Alert      payload.Alert `json:"alert"`
			Salt       secret.Text   `json:"salt"`
			CollapseID string        `json:"collapse_id"`
			Fits       []struct {
				Suite         seal.Suite `json:"suite"`
				MaxCiphertext int        `json:"max_ciphertext_chars"`
				MaxPlaintext  int        `json:"max_plaintext_bytes"`
				Plaintext     string     `json:"plaintext"`
				Error         string     `json:"error"`
			} `json:"fits"`
		} `json:"cases"`
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Cases) == 0 {
		t.Fatal("fit_live.json holds no case")
	}
	keys := map[seal.Suite]seal.PrivateKey{}
	for _, suite := range seal.Suites() {
		keys[suite] = suite.GenerateKey()
	}
	for _, c := range vectors.Cases {
		t.Run(c.Comment, func(t *testing.T) {
			for _, want := range c.Fits {
				if got := want.Suite.MaxPlaintext(want.MaxCiphertext); got != want.MaxPlaintext {
					t.Errorf("%s at %d characters: %d bytes, want %d", want.Suite, want.MaxCiphertext, got, want.MaxPlaintext)
				}
				relay := relaytest.NewRelay(relaytest.InMemory())
				defer relay.Close()
				relay.Script(relaytest.Always, relaytest.Answer{Status: http.StatusAccepted})
				client, _ := newClient(t, relay, relayclient.WithMaxCiphertext(want.MaxCiphertext))
				key := keys[want.Suite]
				devices := []pairing.Device{deviceOf(relaytest.NewPhone(relaytest.WithPrivateKey(key)))}
				outcomes := client.Send(t.Context(), relayclient.Push{Alert: c.Alert, Salt: c.Salt}, devices)
				if want.Error != "" {
					var size *payload.SizeError
					if !errors.As(outcomes[0].Err, &size) || size.Limit != want.MaxPlaintext || relay.Stats().Requests != 0 {
						t.Errorf("%v after %d requests", outcomes[0].Err, relay.Stats().Requests)
					}
					continue
				}
				wantAllDelivered(t, outcomes, devices)
				envelope := envelopeOf(t, relay.Requests()[0])
				if envelope.Suite != string(want.Suite) || envelope.CollapseID != c.CollapseID || len(envelope.Ciphertext) > want.MaxCiphertext {
					t.Errorf("suite %q, collapse id %s, %d characters", envelope.Suite, envelope.CollapseID, len(envelope.Ciphertext))
				}
				if plaintext, err := seal.Open(key, envelope.Ciphertext); err != nil || string(plaintext) != want.Plaintext {
					t.Errorf("%s at %d: the phone opens %q, %v; want %q", want.Suite, want.MaxCiphertext, plaintext, err, want.Plaintext)
				}
			}
		})
	}
}

// An alert to 50 phones of each suite is fitted twice. Each device gets what its
// own suite has room for.
func TestEachSuiteIsFittedOnce(t *testing.T) {
	relay := relaytest.NewRelay(relaytest.InMemory())
	defer relay.Close()
	client, log := newClient(t, relay)
	keys := map[seal.Suite]seal.PrivateKey{seal.X25519: seal.X25519.GenerateKey(), seal.XWing: seal.XWing.GenerateKey()}
	suiteOf := map[string]seal.Suite{}
	var devices []pairing.Device
	for range 50 {
		for suite, key := range keys {
			device := deviceOf(relaytest.NewPhone(relaytest.WithPrivateKey(key)))
			suiteOf[device.PushToken.Reveal()] = suite
			devices = append(devices, device)
		}
	}
	alert := longAlert()
	wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices), devices)
	lines := log.lines()
	slices.Sort(lines)
	if len(lines) != 2 || !strings.Contains(lines[0]+lines[1], "suite=x25519") || !strings.Contains(lines[0]+lines[1], "suite=xwing") {
		t.Errorf("log %q, want one line for each time that the alert was shortened", lines)
	}
	for _, request := range relay.Requests() {
		envelope := envelopeOf(t, request)
		suite := suiteOf[envelope.Device]
		if envelope.Suite != string(suite) {
			t.Fatalf("suite %q in the envelope to a phone with a key of %s", envelope.Suite, suite)
		}
		fitted, err := payload.Fit(alert, suite.MaxPlaintext(3000))
		if err != nil {
			t.Fatal(err)
		}
		if plaintext, err := seal.Open(keys[suite], envelope.Ciphertext); err != nil || string(plaintext) != string(fitted.Plaintext) {
			t.Fatalf("a phone of %s opens %q, %v", suite, plaintext, err)
		}
		if envelope.CollapseID != alert.CollapseID(salt) {
			t.Fatal("the collapse id depends on the device")
		}
	}
}

// An alert that one suite has no room for costs the devices of that suite alone.
func TestAlertThatFitsOneSuite(t *testing.T) {
	relay := relaytest.NewRelay(relaytest.InMemory())
	defer relay.Close()
	client, log := newClient(t, relay)
	_, wide := phoneOf(seal.X25519)
	_, narrow := phoneOf(seal.XWing)
	alert := payload.NewFailure("node-a", strings.Repeat("n", 1500))
	push := relayclient.Push{Alert: alert, Salt: salt}
	outcomes := client.Send(t.Context(), push, []pairing.Device{narrow, wide})
	wantAllDelivered(t, outcomes[1:], []pairing.Device{wide})
	var size *payload.SizeError
	if err := outcomes[0].Err; !errors.Is(err, relayclient.ErrInvalidAlert) || !errors.As(err, &size) || size.Limit != 1114 {
		t.Errorf("%+v", outcomes[0])
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], narrow.ID) {
		t.Errorf("log %q", lines)
	}
	if outcome := client.Send(t.Context(), push, []pairing.Device{narrow})[0]; !errors.Is(outcome.Err, relayclient.ErrInvalidAlert) {
		t.Errorf("%+v", outcome)
	}
}

// A phone that the registry calls unusable, because its suite is switched off on
// this node for instance, is not sealed to although its key could be.
func TestUnusableDevicesAreNotSealedTo(t *testing.T) {
	relay := relaytest.NewRelay(relaytest.InMemory())
	defer relay.Close()
	client, log := newClient(t, relay)
	_, good := phoneOf(seal.X25519)
	_, off := phoneOf(seal.XWing)
	off.Unusable = errors.New("the suite xwing is switched off on this node")
	outcomes := client.Send(t.Context(), relayclient.Push{Alert: longAlert(), Salt: salt}, []pairing.Device{off, good})
	wantAllDelivered(t, outcomes[1:], []pairing.Device{good})
	if err := outcomes[0].Err; !errors.Is(err, relayclient.ErrUnusableDevice) || !errors.Is(err, off.Unusable) {
		t.Errorf("%+v", outcomes[0])
	}
	if relay.Stats().Requests != 1 || strings.Contains(strings.Join(log.lines(), "\n"), "suite=xwing") {
		t.Errorf("%d POSTs, log %q", relay.Stats().Requests, log.lines())
	}
}

func TestMaxCiphertextIsBounded(t *testing.T) {
	for _, n := range []int{-1, 0, 2999, 3801, 1 << 30} {
		if _, err := relayclient.New("https://relay.example", relayclient.WithMaxCiphertext(n)); err == nil {
			t.Errorf("%d was accepted", n)
		}
	}
	for _, n := range []int{3000, 3400, 3800} {
		if _, err := relayclient.New("https://relay.example", relayclient.WithMaxCiphertext(n)); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// A relay that takes 3000 characters, in front of a client that may send 3800:
// every alert arrives, with one POST more per device once.
func TestRelayThatTakesTheFloorAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory(), relaytest.WithRelay(relay.WithMaxCiphertext(3000)), relaytest.WithoutPolicy())
		defer relay.Close()
		client, log := newClient(t, relay, relayclient.WithMaxCiphertext(3800))
		var devices []pairing.Device
		suiteOf := map[string]seal.Suite{}
		for range 3 {
			for _, suite := range seal.Suites() {
				_, device := phoneOf(suite)
				devices = append(devices, device)
				suiteOf[device.PushToken.Reveal()] = suite
			}
		}
		push := relayclient.Push{Alert: longAlert(), Salt: salt}
		seen := 0
		send := func(wantPosts int) {
			t.Helper()
			outcomes := client.Send(t.Context(), push, devices)
			wantAllDelivered(t, outcomes, devices)
			for i, outcome := range outcomes {
				if !outcome.TrimmedToFloor {
					t.Errorf("outcome %d does not say that the alert was trimmed: %+v", i, outcome)
				}
			}
			requests := relay.Requests()[seen:]
			seen += len(requests)
			if len(requests) != wantPosts {
				t.Errorf("%d POSTs, want %d", len(requests), wantPosts)
			}
			ids := map[string]bool{}
			for _, request := range requests {
				ids[envelopeOf(t, request).CollapseID] = true
			}
			if len(ids) != 1 {
				t.Errorf("collapse ids %v, want one", ids)
			}
		}

		send(2 * len(devices))
		send(len(devices))
		time.Sleep(time.Hour - time.Nanosecond)
		send(len(devices))
		time.Sleep(time.Nanosecond)
		send(2 * len(devices)) // the relay may have been brought up to date
		warnings := 0
		for _, line := range log.lines() {
			if strings.Contains(line, "level=WARN") {
				warnings++
			}
		}
		if warnings != 1 {
			t.Errorf("%d warnings, want one a client: %q", warnings, log.lines())
		}

		// What is short enough loses nothing.
		push.Alert = failure()
		for _, outcome := range client.Send(t.Context(), push, devices) {
			if outcome.Err != nil || outcome.TrimmedToFloor {
				t.Errorf("a short alert: %+v", outcome)
			}
		}
	})
}

// A pushService keeps what a relay forwards.
type pushService struct {
	mu        sync.Mutex
	forwarded []relay.Envelope
}

func (*pushService) Device(token string) (string, error) { return token, nil }

func (s *pushService) Forward(_ context.Context, e relay.Envelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forwarded = append(s.forwarded, e)
	return nil
}

func (s *pushService) take() (forwarded []relay.Envelope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	forwarded, s.forwarded = s.forwarded, nil
	return forwarded
}

// A relay as people run it, with a cap of 3000, in front of a client at 3800: every alert arrives, with one extra POST per
// device once, then none.
func TestSelfHostedRelayWithACapOf3000(t *testing.T) {
	service := &pushService{}
	capped, err := relay.New(relay.WithForwarder(service), relay.WithMaxCiphertext(3000))
	if err != nil {
		t.Fatal(err)
	}
	defer capped.Close()
	var posts atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts.Add(1)
		capped.ServeHTTP(w, r)
	}))
	defer server.Close()
	client, log := newClientAt(t, server.URL, relayclient.WithMaxCiphertext(3800))

	var devices []pairing.Device
	keys := map[string]seal.PrivateKey{}
	for range 4 {
		for _, suite := range seal.Suites() {
			key := suite.GenerateKey()
			device := deviceOf(relaytest.NewPhone(relaytest.WithPrivateKey(key)))
			devices, keys[device.PushToken.Reveal()] = append(devices, device), key
		}
	}
	for i, extra := range []int{len(devices), 0, 0} {
		alert := longAlert()
		alert.Name = fmt.Sprintf("backup %d", i)
		posts.Store(0)
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices), devices)
		if n := int(posts.Load()); n != len(devices)+extra {
			t.Errorf("alert %d: %d POSTs for %d devices, want %d extra", i, n, len(devices), extra)
		}
		arrived := map[string]bool{}
		for _, e := range service.take() {
			plaintext, err := seal.Open(keys[e.Device.Reveal()], e.Ciphertext)
			if err != nil || !strings.Contains(string(plaintext), alert.Name) || e.CollapseID != alert.CollapseID(salt) {
				t.Errorf("alert %d arrives as %q under %s: %v", i, plaintext, e.CollapseID, err)
			}
			arrived[e.Device.Reveal()] = true
		}
		if len(arrived) != len(devices) {
			t.Errorf("alert %d arrives at %d phones of %d", i, len(arrived), len(devices))
		}
	}
	if n := strings.Count(strings.Join(log.lines(), "\n"), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one: %q", n, log.lines())
	}
}

// Which answers are followed by a second POST, and that its answer is final.
func TestSecondPost(t *testing.T) {
	long, short := longAlert(), failure()
	refusal := func(status int, body string) relaytest.Answer { return relaytest.Answer{Status: status, Body: body} }
	const tooLong = `{"v":1,"error":"ciphertext must be at most 3000 characters"}`
	for _, tt := range []struct {
		name    string
		alert   payload.Alert
		limit   int
		answers []relaytest.Answer
		posts   int
		status  int
	}{
		{"names the ciphertext", long, 3800, []relaytest.Answer{refusal(400, tooLong)}, 2, 202},
		{"text that is no JSON", long, 3800, []relaytest.Answer{refusal(400, "<p>ciphertext</p>")}, 2, 202},
		{"at the end of 512 characters", long, 3800, []relaytest.Answer{refusal(400, strings.Repeat("é", 502)+"ciphertext")}, 2, 202},
		{"four bytes a character", long, 3800, []relaytest.Answer{refusal(400, strings.Repeat("😀", 502)+"ciphertext")}, 2, 202},
		{"past 512 characters", long, 3800, []relaytest.Answer{refusal(400, strings.Repeat("é", 503)+"ciphertext")}, 1, 400},
		{"another case", long, 3800, []relaytest.Answer{refusal(400, "Ciphertext too long")}, 1, 400},
		{"another member", long, 3800, []relaytest.Answer{refusal(400, `{"error":"collapseId"}`)}, 1, 400},
		{"no body", long, 3800, []relaytest.Answer{refusal(400, "")}, 1, 400},
		{"another status", long, 3800, []relaytest.Answer{refusal(413, tooLong)}, 1, 413},
		{"422", long, 3800, []relaytest.Answer{refusal(422, tooLong)}, 1, 422},
		{"within the floor", short, 3800, []relaytest.Answer{refusal(400, tooLong)}, 1, 400},
		{"at the floor by default", long, 3000, []relaytest.Answer{refusal(400, tooLong)}, 1, 400},
		{"refused again", long, 3800, []relaytest.Answer{refusal(400, tooLong), refusal(400, tooLong)}, 2, 400},
		{"second answer 429", long, 3800, []relaytest.Answer{refusal(400, tooLong), refusal(429, "")}, 2, 429},
		{"second answer 410", long, 3800, []relaytest.Answer{refusal(400, tooLong), refusal(410, "")}, 2, 410},
		{"no second answer", long, 3800, []relaytest.Answer{refusal(400, tooLong), {Drop: true}}, 2, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			relay := relaytest.NewRelay(relaytest.InMemory())
			defer relay.Close()
			client, _ := newClient(t, relay, relayclient.WithMaxCiphertext(tt.limit))
			for _, answer := range tt.answers {
				relay.Script(1, answer)
			}
			_, device := phoneOf(seal.XWing)
			outcome := client.Send(t.Context(), relayclient.Push{Alert: tt.alert, Salt: salt}, []pairing.Device{device})[0]
			if outcome.Status != tt.status || (outcome.Err == nil) != (tt.status == 202) {
				t.Errorf("%+v", outcome)
			}
			if n := relay.Stats().Requests; n != tt.posts {
				t.Errorf("%d POSTs, want %d", n, tt.posts)
			}
			if outcome.TrimmedToFloor != (tt.posts == 2) {
				t.Errorf("TrimmedToFloor is %t", outcome.TrimmedToFloor)
			}
		})
	}
}

// A context that ends with the first answer leaves no time for a second POST: the
// 400 stands.
func TestNoTimeForASecondPost(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	posts := 0
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		posts++
		cancel()
		return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("ciphertext"))}, nil
	})
	client, _ := newClientAt(t, "https://relay.example",
		relayclient.WithMaxCiphertext(3800), relayclient.WithHTTPClient(&http.Client{Transport: transport}))
	_, device := phoneOf(seal.X25519)
	outcome := client.Send(ctx, relayclient.Push{Alert: longAlert(), Salt: salt}, []pairing.Device{device})[0]
	if outcome.Status != 400 || posts != 1 || outcome.TrimmedToFloor || !errors.Is(outcome.Err, context.Canceled) {
		t.Errorf("%d POSTs: %+v", posts, outcome)
	}
}

// An alert that does not fit the floor keeps its 400, with the reason.
func TestAlertThatDoesNotFitTheFloor(t *testing.T) {
	relay := relaytest.NewRelay(relaytest.InMemory(), relaytest.WithRelay(relay.WithMaxCiphertext(3000)))
	defer relay.Close()
	client, _ := newClient(t, relay, relayclient.WithMaxCiphertext(3800))
	_, device := phoneOf(seal.XWing)
	push := relayclient.Push{Alert: payload.NewFailure("node-a", strings.Repeat("n", 1400)), Salt: salt}
	outcome := client.Send(t.Context(), push, []pairing.Device{device})[0]
	var answer *relayclient.StatusError
	var size *payload.SizeError
	if outcome.Status != 400 || !errors.As(outcome.Err, &answer) || !errors.As(outcome.Err, &size) || size.Limit != 1114 {
		t.Errorf("%+v", outcome)
	}
	if outcome.TrimmedToFloor || relay.Stats().Requests != 1 {
		t.Errorf("trimmed %t after %d requests", outcome.TrimmedToFloor, relay.Stats().Requests)
	}
}
