// Package crossorigin lets pages of some other origins call an API, and no other page (Fetch standard, "CORS
// protocol").
package crossorigin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Origins are the origins whose pages may call an API, besides its own. The zero value has none. It does not change.
type Origins struct{ list []string }

// Parse checks origins, each written as a browser writes it in its Origin header, such as https://phone.example.com or
// http://localhost:8080. They are compared byte by byte, so one that is written in another way is refused: it would
// never match.
func Parse(origins ...string) (Origins, error) {
	for _, origin := range origins {
		if err := check(origin); err != nil {
			return Origins{}, err
		}
	}
	return Origins{slices.Clone(origins)}, nil
}

func check(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return errors.New("an origin must be a scheme, a host and, if need be, a port, such as https://phone.example.com") // it may hold a password
	}
	host, port := u.Host, u.Port()
	if port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	want := u.Scheme + "://" + strings.ToLower(strings.TrimSuffix(host, ":"))
	if strings.ContainsFunc(want, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' || r == '%' }) {
		return errors.New("an origin must name one host in ASCII, without wildcards: one of another script is written as xn--")
	}
	if origin != want {
		return fmt.Errorf("an origin must be written as browsers do: lower case, without the scheme's own port, without a path: %s", want)
	}
	return nil
}

// Handler lets next answer requests of its own origin, of clients that are no browsers, and of pages of o, which may
// read the answers. It answers their preflights itself: pages may use methods, a list such as "GET, PUT", and the
// headers Authorization and Content-Type; credentials that a browser adds by itself, such as cookies, are not among
// them. A page of any other origin that would change something is answered by deny ([http.CrossOriginProtection]).
//
// A check of the caller belongs into next: preflights carry no Authorization, and a page can read a refusal only if the
// headers that are set here are on it.
//
// Access-Control-Allow-Private-Network is not sent: browsers ask the person since Local Network Access took the place
// of Private Network Access and its preflights.
func (o Origins) Handler(next http.Handler, methods string, deny http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(deny)
	for _, origin := range o.list {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			panic("crossorigin: " + err.Error()) // unreachable: Parse is stricter
		}
	}
	protected := protection.Handler(next)
	if len(o.list) == 0 {
		return protected
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); slices.Contains(o.list, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				h.Set("Access-Control-Allow-Methods", methods)
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
				h.Set("Access-Control-Max-Age", "600")
				h.Set("Cache-Control", "no-store")
				w.WriteHeader(http.StatusNoContent)
				return
			}
			h.Set("Access-Control-Expose-Headers", "Retry-After")
		}
		protected.ServeHTTP(w, r)
	})
}
