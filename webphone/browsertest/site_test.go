package browsertest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
	"github.com/sealpush/sealpush/webphone"
)

var screenshots = flag.String("screenshots", "", "write pictures of the page's states to this `directory`")

const invitation = "an-invitation-of-the-operator"

// A site is a relay for web phones, on one origin, as sealpush relay -web serves it, and the push service behind it.
type site struct {
	*httptest.Server
	push *webpushtest.Service

	away  atomic.Bool // every request fails, as without a network
	newer atomic.Bool // the worker is of a newer version
	stuck atomic.Bool // requests for the program are not answered
}

// newSite starts one, for pages of its own origin and of others that are named.
func newSite(t *testing.T, pages ...string) *site {
	t.Helper()
	s := &site{push: webpushtest.New(t)}
	forwarder, err := webpush.New(webpush.GenerateKey(), "mailto:ops@example.com", webpush.NewMemoryStore(),
		webpush.WithPushService(strings.TrimPrefix(s.push.URL, "https://")),
		webpush.WithPrivateNetworks(netip.MustParsePrefix("127.0.0.0/8")),
		webpush.WithTLSConfig(&tls.Config{RootCAs: s.push.CertPool()}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(forwarder.Close)
	subscriptions, err := webpush.NewSubscriptions(forwarder, secret.New(invitation), webpush.WithOrigins(pages...))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := relay.New(relay.WithForwarder(forwarder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sealed.Close)
	// The limits of one address are the relay's tests' business: here all come from one.
	var requests atomic.Uint32
	mailboxes, err := relay.NewMailboxes(relay.WithMailboxOrigins(pages...), relay.WithClientAddress(func(*http.Request) string {
		n := requests.Add(1)
		return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
	}))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/phone", webphone.Handler())
	mux.Handle("/phone/", webphone.Handler())
	mux.Handle("/subscriptions", subscriptions)
	mux.Handle("/subscriptions/", subscriptions)
	mux.Handle("/mailboxes/", mailboxes)
	mux.Handle("/relay", http.StripPrefix("/relay", sealed))
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.away.Load() {
			panic(http.ErrAbortHandler)
		}
		if s.newer.Load() && r.URL.Path == "/phone/worker.js" {
			r.Header.Del("Accept-Encoding")
			r.Header.Del("If-None-Match")
			defer io.WriteString(w, "// newer")
			w = noLength{w}
		}
		if s.stuck.Load() && strings.HasSuffix(r.URL.Path, ".wasm") {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		mailboxes.Close()
		s.Close()
	})
	return s
}

// noLength lets more be written than the handler says.
type noLength struct{ http.ResponseWriter }

func (w noLength) Write(b []byte) (int, error) {
	w.Header().Del("Content-Length")
	return w.ResponseWriter.Write(b)
}

// next is what the push service has opened next, as the browser does.
func (s *site) next(t *testing.T) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	message, err := s.push.Await(ctx)
	if err != nil {
		t.Fatalf("nothing was pushed: %v", err)
	}
	return message.Plaintext
}

// A phone is a tab in which the page is set up.
type phone struct {
	*tab
	site *site
}

// newPhone opens the page in a profile of its own and sets it up.
func newPhone(t *testing.T, s *site) *phone {
	t.Helper()
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(s.URL + "/phone")
	p.setUp()
	return p
}

func subscription(t *testing.T, s *site) string {
	t.Helper()
	text, err := json.Marshal(s.push.Subscribe())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// setUp does what a person does who has the relay's invitation.
func (p *phone) setUp() {
	p.t.Helper()
	p.fill("invitation", invitation)
	p.click("setup-go")
	p.visible("pair")
	p.await(`navigator.serviceWorker.controller !== null`)
}

// request is the line that the page shows, to be pasted.
func (p *phone) request() string {
	p.t.Helper()
	return eval[string](p.tab, `document.getElementById("request").textContent`)
}

// A daemon is one with this phone paired, by the line that it shows.
type daemon struct {
	t        *testing.T
	notifier *relayclient.Notifier
	registry *pairing.Registry
	site     *site
}

func newDaemon(t *testing.T, s *site, phones ...*phone) *daemon {
	t.Helper()
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		t.Fatal(err)
	}
	client, err := relayclient.New(s.URL + "/relay")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	notifier, err := relayclient.NewNotifier(client, registry, "db1")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t, notifier, registry, s}
	for _, p := range phones {
		d.pair(p)
	}
	return d
}

func (d *daemon) pair(p *phone) pairing.Device {
	d.t.Helper()
	request, err := pairing.ParseRequest(strings.NewReader(p.request()))
	if err != nil {
		d.t.Fatal(err)
	}
	device, _, err := d.registry.Pair(d.t.Context(), request, "test")
	if err != nil {
		d.t.Fatal(err)
	}
	return device
}

// page sends an alert to the phones and returns what their browsers are sent for it.
func (d *daemon) page(alert payload.Alert) []byte {
	d.t.Helper()
	outcomes, err := d.notifier.Notify(d.t.Context(), alert)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			d.t.Fatal(outcome.Err)
		}
	}
	return d.site.next(d.t)
}

// failure is the alert of most tests.
func failure(name string) payload.Alert {
	alert := payload.NewFailure("db1", name)
	code := 3
	alert.ExitCode = &code
	alert.FailReason = "exit status 3"
	alert.LogTail = []string{
		"02:17:01 dumping 14 databases to /backup", "02:17:40 customers: 1.2 GB", "02:18:12 orders: 3.9 GB",
		"02:19:55 invoices: 0.8 GB", "rsync: connection reset by peer (104)", "retrying in 5 s", "rsync: connection reset by peer (104)",
		"write /backup/data.tar: no space left on device",
	}
	return alert
}

// tool is the command sealpush, built once.
var tool = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sealpush-browsertest")
	if err != nil {
		return "", err
	}
	toolDir = dir
	binary := filepath.Join(dir, "sealpush")
	out, err := exec.Command("go", "build", "-C", "../../cmd/sealpush", "-o", binary, ".").CombinedOutput()
	if err != nil {
		return "", &buildError{string(out), err}
	}
	return binary, nil
})

var toolDir string

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.output }

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if toolDir != "" {
		os.RemoveAll(toolDir)
	}
	os.Exit(code)
}

func sealpush(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := tool()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+t.TempDir())
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
