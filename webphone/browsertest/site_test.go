package browsertest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sealpush/sealpush/webphone"
)

var screenshots = flag.String("screenshots", "", "write pictures of the page's states to this `directory`")

type site struct{ *httptest.Server }

func newSite(t *testing.T) *site {
	mux := http.NewServeMux()
	mux.Handle("/phone/", webphone.Handler())
	mux.Handle("/phone", webphone.Handler())
	mux.HandleFunc("GET /subscriptions", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"publicKey": base64.RawURLEncoding.EncodeToString(append([]byte{4}, make([]byte, 64)...))})
	})
	mux.HandleFunc("POST /subscriptions", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		var b [32]byte
		rand.Read(b[:])
		w.WriteHeader(201)
		json.NewEncoder(w).Encode(map[string]string{"deviceToken": hex.EncodeToString(b[:]), "secret": base64.RawURLEncoding.EncodeToString(b[:])})
	})
	s := &site{httptest.NewServer(mux)}
	t.Cleanup(s.Close)
	return s
}

func TestSetUp(t *testing.T) {
	s := newSite(t)
	p := newProfile(t)
	p.allow(t, s.URL, "granted")
	b := p.newTab(t, s.URL, `{"endpoint":"https://push.example/abc","keys":{"p256dh":"x","auth":"y"}}`)
	b.open(s.URL + "/phone")
	b.visible("setup")
	b.picture("setup")
	b.fill("invitation", "hello")
	b.click("setup-go")
	b.visible("pair")
	b.picture("pair")
	b.click("trial")
	t.Log(b.notified(1))
	b.says("list", "Test alert")
	b.picture("test")
}
