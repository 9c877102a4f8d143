package main

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

// pairFor is how long a pairing code is good.
const pairFor = 5 * time.Minute

// pairing answers GET /pair?code=… with the pairing response: once, and for a few minutes. A code has 128 random bits,
// so guesses need not be counted.
type pairing struct {
	response bridge.PairingResponse
	expires  time.Time

	mu   sync.Mutex
	code string // empty once it was used
}

func newPairing(response bridge.PairingResponse) *pairing {
	return &pairing{response: response, expires: time.Now().Add(pairFor), code: rand.Text()}
}

// url is what the phone scans. A phone does not send the fragment.
func (p *pairing) url(a *address) string {
	url := a.base + "/pair?code=" + p.code
	if a.fingerprint != "" {
		url += "#" + a.fingerprint
	}
	return url
}

func (p *pairing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // a HEAD must not use the code up
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "GET it", http.StatusMethodNotAllowed)
		return
	}
	if status, problem := p.redeem(r.FormValue("code")); status != http.StatusOK {
		slog.Warn("pairing refused", "client", r.RemoteAddr, "reason", problem)
		http.Error(w, problem, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(p.response); err != nil {
		slog.Warn("pairing response not sent; restart for a new code", "client", r.RemoteAddr, "error", err)
		return
	}
	slog.Info("paired", "client", r.RemoteAddr)
}

// redeem uses the code up if it is the right one.
func (p *pairing) redeem(code string) (status int, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.code == "":
		return http.StatusGone, "the code has been used; restart the bridge for a new one"
	case !time.Now().Before(p.expires):
		return http.StatusGone, "the code has expired; restart the bridge for a new one"
	case subtle.ConstantTimeCompare([]byte(code), []byte(p.code)) != 1:
		return http.StatusForbidden, "wrong code"
	}
	p.code = ""
	return http.StatusOK, ""
}
