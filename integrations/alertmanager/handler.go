package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/requestbody"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
)

// MaxBody is how many bytes a webhook may post: some ten thousand alerts.
const MaxBody = 4 << 20

// How many webhooks are served at once; others wait, and are answered 503 when their time is up.
const (
	maxReading = 2 // a body, and the many small alerts that it may be read into, take up to 80 MiB
	maxPaging  = 64
)

// A Handler takes webhooks and pages. It is safe for concurrent use.
type Handler struct {
	notifier *relayclient.Notifier
	config   *config
	runs     runs
	browsers *http.CrossOriginProtection
	reading  chan struct{}
	paging   chan struct{}

	mu        sync.Mutex
	strangers int       // who were refused since the last line about them
	said      time.Time // when that was
}

// New returns a handler that pages through notifier. It needs one option that says who may post: [WithBearerToken],
// [WithBasicAuth] or [WithoutAuth]. The server that it is mounted in has to have timeouts: [DefaultTimeout], or what
// [WithTimeout] says, and 10 s for the body.
func New(notifier *relayclient.Notifier, opts ...Option) (*Handler, error) {
	if notifier == nil {
		return nil, errors.New("alertmanager: New needs a Notifier")
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	return &Handler{
		notifier: notifier, config: c, browsers: http.NewCrossOriginProtection(),
		reading: make(chan struct{}, maxReading), paging: make(chan struct{}, maxPaging),
	}, nil
}

// ServeHTTP takes one webhook, at whatever path it is mounted: POST, or PUT as Grafana can be told to.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.isKnown(r) {
		h.refuseStranger(w, r)
		return
	}
	if h.browsers.Check(r) != nil {
		h.refuse(w, r, http.StatusForbidden, errors.New("a web page of another site may not post webhooks"))
		return
	}
	if r.Method != http.MethodPost && r.Method != http.MethodPut {
		w.Header().Set("Allow", "POST, PUT")
		h.refuse(w, r, http.StatusMethodNotAllowed, errors.New("webhooks of Alertmanager and Grafana are posted here"))
		return
	}
	if h.config.open && (r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "") {
		// The page of a name that now leads to this machine (DNS rebinding) is one of the same site to its browser.
		h.refuse(w, r, http.StatusForbidden, errors.New("a web page in a browser may not post webhooks"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.config.timeout)
	defer cancel()
	p, status, err := h.read(ctx, w, r)
	if err != nil {
		h.refuse(w, r, status, err)
		return
	}
	if !take(ctx, h.paging) {
		h.refuse(w, r, http.StatusServiceUnavailable, errBusy)
		return
	}
	defer func() { <-h.paging }()
	h.page(ctx, w, p)
}

var errBusy = errors.New("too many webhooks at once: try again")

// take waits for a place among those that work, and reports whether there was one in time.
func take(ctx context.Context, places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		if ctx.Err() == nil {
			return true
		}
		<-places
		return false
	case <-ctx.Done():
		return false
	}
}

// A groupPage is a group's page, for which the group itself need not be kept.
type groupPage struct {
	alert            payload.Alert
	priority         relayclient.Priority
	groupKey         string
	members          []member // those that fire
	firing, resolved int
	truncated        uint64
}

// read reads a webhook's body. The error comes with the status that answers it.
func (h *Handler) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (groupPage, int, error) {
	var none groupPage
	if !take(ctx, h.reading) {
		return none, http.StatusServiceUnavailable, errBusy
	}
	defer func() { <-h.reading }()
	body, err := requestbody.Read(w, r, MaxBody+1)
	switch {
	case errors.Is(err, requestbody.ErrTimeout):
		requestbody.CloseAfter(w, r)
		return none, http.StatusServiceUnavailable, err // no 4xx: its sender would not try again
	case err != nil:
		return none, http.StatusServiceUnavailable, fmt.Errorf("the body could not be read: %w", err)
	case len(body) > MaxBody:
		requestbody.CloseAfter(w, r)
		return none, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes: group by more labels, or set max_alerts", MaxBody)
	}
	g, err := parseGroup(body)
	if err != nil {
		return none, http.StatusBadRequest, err
	}
	alert, err := h.config.page(g)
	if err != nil {
		h.log().LogAttrs(ctx, slog.LevelWarn, "a template failed, so the page has the default text", slog.String("name", alert.Name), slog.Any("error", err))
	}
	alert.RunID = h.runs.of(g)
	p := groupPage{
		alert: alert, priority: h.config.priority(g), groupKey: g.GroupKey, members: members(g.firing),
		firing: len(g.firing), resolved: len(g.Alerts) - len(g.firing), truncated: g.TruncatedAlerts,
	}
	if p.firing > 0 && h.runs.isLess(p.groupKey, p.members, p.truncated) {
		p.priority = h.config.resolved // good news, though not all of it
	}
	return p, 0, nil
}

// page pages, and answers what became of it.
func (h *Handler) page(ctx context.Context, w http.ResponseWriter, p groupPage) {
	outcomes, err := h.notifier.Notify(ctx, p.alert, relayclient.WithPriority(p.priority))
	accepted := 0
	for _, outcome := range outcomes {
		if outcome.Err == nil {
			accepted++
		}
	}
	attrs := []slog.Attr{
		slog.String("kind", string(p.alert.Kind)), slog.String("name", p.alert.Name), slog.String("run_id", p.alert.RunID),
		slog.Int("firing", p.firing), slog.Int("resolved", p.resolved), slog.Uint64("left_out", p.truncated),
		slog.Int("phones", len(outcomes)), slog.Int("accepted", accepted),
	}
	if accepted > 0 {
		if p.firing > 0 {
			h.runs.paged(p.groupKey, p.alert.RunID, p.members, p.truncated)
		}
		h.log().LogAttrs(ctx, slog.LevelInfo, "alert group paged", attrs...)
		answer(w, http.StatusOK, fmt.Sprintf("the relay accepted it for %d of %d phones", accepted, len(outcomes)))
		return
	}
	status, text := http.StatusBadGateway, "the relay accepted it for no phone"
	switch {
	case errors.Is(err, relayclient.ErrNobodyPaired):
		status, text = http.StatusServiceUnavailable, "no phone is paired"
	case errors.Is(err, pairing.ErrUnavailable):
		status, text = http.StatusServiceUnavailable, "the registry of phones cannot be read"
	case errors.Is(err, relayclient.ErrHeldBack):
		status, text = http.StatusServiceUnavailable, "it is held back in a storm of alerts"
	case errors.Is(err, relayclient.ErrUnusableDevice):
		status, text = http.StatusServiceUnavailable, "no paired phone can be used"
	}
	// Why is in the log already.
	h.log().LogAttrs(ctx, slog.LevelWarn, "alert group not paged: its sender is asked to try again", append(attrs, slog.Int("status", status))...)
	answer(w, status, text)
}

// isKnown reports whether a request has the right credentials. It compares each of them, whichever is right.
func (h *Handler) isKnown(r *http.Request) bool {
	c := h.config
	known := c.open
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && !c.token.IsZero() {
		known = c.token.Equal(secret.New(strings.TrimSpace(token)))
	}
	if user, password, ok := r.BasicAuth(); ok && !c.password.IsZero() {
		isUser, isPassword := c.user.Equal(secret.New(user)), c.password.Equal(secret.New(password))
		known = isUser && isPassword
	}
	return known
}

// refuseStranger answers who has not the right credentials. A line a minute says how many they were.
func (h *Handler) refuseStranger(w http.ResponseWriter, r *http.Request) {
	if !h.config.token.IsZero() {
		w.Header().Add("WWW-Authenticate", `Bearer realm="sealpush"`)
	}
	if !h.config.password.IsZero() {
		w.Header().Add("WWW-Authenticate", `Basic realm="sealpush"`)
	}
	requestbody.CloseAfter(w, r) // a stranger keeps no connection
	answer(w, http.StatusUnauthorized, "the credentials of this receiver are required: see http_config of Alertmanager, or the contact point's optional settings in Grafana")
	h.mu.Lock()
	h.strangers++
	count := h.strangers
	due := time.Since(h.said) >= time.Minute
	if due {
		h.strangers, h.said = 0, time.Now()
	}
	h.mu.Unlock()
	if due {
		h.log().LogAttrs(r.Context(), slog.LevelWarn, "webhook refused: no or wrong credentials", slog.Int("status", http.StatusUnauthorized),
			slog.Int("requests", count), slog.String("from", r.RemoteAddr))
	}
}

// refuse answers a webhook that is not paged, and logs why.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, err error) {
	level, text := slog.LevelError, "webhook refused: its sender will not try again" // nobody will be paged
	switch {
	case status >= 500:
		level, text = slog.LevelWarn, "webhook refused: its sender is asked to try again"
	case status == http.StatusMethodNotAllowed:
		level, text = slog.LevelInfo, "a request that is no webhook" // somebody looks whether this runs
	}
	h.log().LogAttrs(r.Context(), level, text, slog.Int("status", status), slog.String("from", r.RemoteAddr), slog.Any("error", err))
	answer(w, status, err.Error())
}

func (h *Handler) log() *slog.Logger {
	if h.config.logger != nil {
		return h.config.logger
	}
	return slog.Default()
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
