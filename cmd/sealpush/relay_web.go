package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/term"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
	"github.com/sealpush/sealpush/webphone"
)

// web says how to reach browsers by Web Push.
type web struct {
	on             bool
	state          string
	invitation     string
	showInvitation bool
	contact        string
	services       string
	networks       string
	origins        string
	proxies        string
}

func (o *web) addFlags(s *settings) {
	s.flags.BoolVar(&o.on, "web", false, "page browsers by Web Push: serve the web phone, subscriptions and mailboxes, with state that survives a restart")
	s.secretVar(&o.state, "state", "with -web: the `directory` for keys, subscriptions and what the relay remembers, or the postgres:// URL of a database (default: "+defaultStateText+")")
	s.paths["state"] = stateBeside
	s.secretVar(&o.invitation, "invitation", "with -web: the `text` that a browser needs to subscribe, of 16 characters or more (default: one that is generated once and kept)")
	s.flags.BoolVar(&o.showInvitation, "show-invitation", false, "with -web: print the link with the invitation even where standard output is no terminal")
	s.flags.StringVar(&o.contact, "contact", "", "with -web: a mailto: or https: `address` at which push services find you on the internet (default: -url)")
	s.flags.StringVar(&o.services, "push-service", "", "with -web: further push services, besides Google's, Mozilla's, Apple's and Microsoft's: `hosts`, separated by commas")
	s.flags.StringVar(&o.networks, "push-network", "", "with -web: private `networks` in which a push service may be, such as 10.1.0.0/16, separated by commas")
	s.flags.StringVar(&o.origins, "page-origin", "", "with -web: `origins` of pages that are served elsewhere and may subscribe here, separated by commas")
	s.flags.StringVar(&o.proxies, "proxy", "127.0.0.0/8,::1/128", "with -web: `networks` of the proxies whose X-Forwarded-For gives the client's address, separated by commas")
}

// stateBeside is a state that a file in dir names: a directory is relative to that one.
func stateBeside(dir, state string) string {
	if isPostgres(state) || looksSecret(state) {
		return state
	}
	return beside(dir, state)
}

func isPostgres(state string) bool {
	return strings.HasPrefix(state, "postgres://") || strings.HasPrefix(state, "postgresql://")
}

// commaSeparated splits what is separated by commas.
func commaSeparated(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func networks(flag, text string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, item := range commaSeparated(text) {
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			return nil, usagef("-%s takes networks, such as 10.1.0.0/16 or fd00::/8, separated by commas", flag)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

// A webRelay is what a relay with -web is made of.
type webRelay struct {
	db            *sql.DB
	state         relay.State
	forwarder     *webpush.Forwarder
	subscriptions *webpush.Subscriptions
	mailboxes     *relay.Mailboxes
	invitation    secret.Text
}

// openTimeout bounds the first use of the state, which another process may have locked.
const openTimeout = 15 * time.Second

// open reads the state, or makes it. Fallback may be nil.
func (o *web) open(ctx context.Context, baseURL string, fallback relay.Forwarder) (*webRelay, error) {
	db, dialect, err := o.database()
	if err != nil {
		return nil, err
	}
	w := &webRelay{db: db}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := w.fill(ctx, o, dialect, baseURL, fallback); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *webRelay) fill(ctx context.Context, o *web, dialect relay.Dialect, baseURL string, fallback relay.Forwarder) (err error) {
	if w.state, err = relay.NewSQLState(w.db, dialect); err != nil {
		return err
	}
	store, err := webpush.NewSQLStore(w.db, dialect)
	if err != nil {
		return err
	}
	key, err := store.Key(ctx)
	if err != nil {
		return err
	}
	if w.invitation = secret.New(o.invitation); o.invitation == "" {
		if w.invitation, err = store.Invitation(ctx); err != nil {
			return err
		}
	}
	opts, err := o.forwarderOptions(fallback)
	if err != nil {
		return err
	}
	contact := o.contact
	if contact == "" {
		contact = "https://github.com/sealpush/sealpush" // for a trial on this machine; Apple's service refuses localhost
		if strings.HasPrefix(baseURL, "https://") {
			contact = baseURL
		}
		if _, err := webpush.New(key, contact, store); err != nil { // which names no flag, and sends nothing
			return usagef("-url is no address on the internet at which push services find you: give one with -contact, such as mailto:you@example.com")
		}
	}
	if w.forwarder, err = webpush.New(key, contact, store, opts...); err != nil {
		return usageError{err}
	}
	addressOf, err := o.clientAddress()
	if err != nil {
		return err
	}
	w.subscriptions, err = webpush.NewSubscriptions(w.forwarder, w.invitation, webpush.WithClientAddress(addressOf), webpush.WithOrigins(commaSeparated(o.origins)...))
	if err != nil {
		return usageError{err}
	}
	w.mailboxes, err = relay.NewMailboxes(relay.WithClientAddress(addressOf), relay.WithMailboxOrigins(commaSeparated(o.origins)...))
	return err
}

func (w *webRelay) close() {
	if w.mailboxes != nil {
		w.mailboxes.Close()
	}
	if w.forwarder != nil {
		w.forwarder.Close()
	}
	w.db.Close()
}

// mount serves what browsers and sealpush pair ask for. The page is at the root, too.
func (w *webRelay) mount(mux *http.ServeMux) {
	mux.Handle("/subscriptions", w.subscriptions)
	mux.Handle("/subscriptions/", w.subscriptions)
	mux.Handle("/mailboxes/", w.mailboxes)
	phone := webphone.Handler()
	mux.Handle("/phone", phone)
	mux.Handle("/phone/", phone)
	mux.Handle("GET /{$}", http.RedirectHandler("/phone/", http.StatusFound))
}

// database opens the state. A directory and its file are made for their owner alone: there are keys in it.
func (o *web) database() (*sql.DB, relay.Dialect, error) {
	if isPostgres(o.state) {
		config, err := pgx.ParseConfig(o.state)
		if err != nil {
			return nil, "", usagef("the URL of -state cannot be used") // the cause quotes it
		}
		db := stdlib.OpenDB(*config)
		db.SetMaxOpenConns(16)
		return db, relay.PostgreSQL, nil
	}
	if looksSecret(o.state) {
		return nil, "", usagef("-state is no directory, and no database that is known: it takes a directory, or a URL that begins with postgres://")
	}
	dir := o.state
	if dir == "" {
		var err error
		if dir, err = stateDir(); err != nil {
			return nil, "", usagef("no directory for the relay's state: %w: name one with -state", err)
		}
	}
	path, err := filepath.Abs(filepath.Join(dir, "relay.db"))
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, "", err
	}
	if err := file.Close(); err != nil {
		return nil, "", err
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, "", err
	}
	db.SetMaxOpenConns(1) // SQLite writes one row at a time
	if _, err := db.Exec(`PRAGMA journal_mode = WAL`); err != nil {
		db.Close()
		return nil, "", fmt.Errorf("%s cannot be used: %w", path, err)
	}
	return db, relay.SQLite, nil
}

func (o *web) forwarderOptions(fallback relay.Forwarder) ([]webpush.Option, error) {
	allowed, err := networks("push-network", o.networks)
	if err != nil {
		return nil, err
	}
	opts := []webpush.Option{webpush.WithPrivateNetworks(allowed...)}
	for _, service := range commaSeparated(o.services) {
		opts = append(opts, webpush.WithPushService(service))
	}
	if fallback != nil {
		opts = append(opts, webpush.WithFallback(fallback))
	}
	return opts, nil
}

// clientAddress returns the address of a client, also behind a proxy: only the last entry of X-Forwarded-For is the
// proxy's own, and all others may be forged.
func (o *web) clientAddress() (func(*http.Request) string, error) {
	proxies, err := networks("proxy", o.proxies)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) string {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return r.RemoteAddr
		}
		for _, proxy := range proxies {
			if !proxy.Contains(peer.Addr().Unmap()) {
				continue
			}
			lines := r.Header.Values("X-Forwarded-For")
			if len(lines) == 0 {
				break
			}
			all := strings.Split(lines[len(lines)-1], ",")
			if last, err := netip.ParseAddr(strings.TrimSpace(all[len(all)-1])); err == nil {
				return last.String()
			}
		}
		return r.RemoteAddr
	}, nil
}

// invitationLink is the link that lets a browser subscribe. It is a secret: it is printed only on a terminal, or when
// asked for.
func (o *web) invitationLink(baseURL string, invitation secret.Text) (string, error) {
	if !o.showInvitation && !term.IsTerminal(int(os.Stdout.Fd())) {
		return "", nil
	}
	return pairing.WebLink{Invitation: invitation}.At(baseURL)
}

// destination says where alerts go.
func (o *web) destination(apple apple) string {
	text := "browsers, by Web Push"
	if apple.forwards() {
		text += ", and to " + apple.destination()
	}
	return text
}

// check refuses flags that need -web.
func (o *web) check(s *settings) error {
	if o.on {
		return nil
	}
	for _, name := range []string{"state", "invitation", "show-invitation", "contact", "push-service", "push-network", "page-origin", "proxy"} {
		if f := s.flags.Lookup(name); f.Value.String() != f.DefValue {
			return usagef("-%s needs -web", name)
		}
	}
	return nil
}

// subscribable reports whether browsers subscribe on pages of a URL: over https, and on their own machine.
func subscribable(baseURL string) bool {
	u, err := url.Parse(baseURL)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
}

// checkOrigin refuses a base URL with a path: the page makes its requests at the root of its origin.
func checkOrigin(baseURL string) error {
	if u, err := url.Parse(baseURL); err != nil || strings.Trim(u.Path, "/") != "" {
		return usagef("with -web, -url must be an origin, such as https://relay.example: the page asks for /subscriptions and /mailboxes there")
	}
	return nil
}
