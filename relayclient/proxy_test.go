package relayclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient"
)

// Started with this in its environment, the test binary is a daemon that sends
// one alert to the relay named there.
const asDaemon = "SEALPUSH_TEST_RELAY_URL"

func TestMain(m *testing.M) {
	url := os.Getenv(asDaemon)
	if url == "" {
		os.Exit(m.Run())
	}
	client, err := relayclient.New(url, relayclient.WithPatience(200*time.Millisecond))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, devices := phones(1)
	for _, outcome := range client.Send(context.Background(), relayclient.Push{Alert: failure(), Salt: salt}, devices) {
		fmt.Println(outcome.Status, outcome.Err)
	}
}

func sendInProcess(t *testing.T, url string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), asDaemon+"="+url), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestProxySettingsAreHonoured(t *testing.T) {
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		w.WriteHeader(http.StatusAccepted)
	}))
	defer proxy.Close()
	out := sendInProcess(t, "http://relay.sealpush.test/push", "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL)
	if !strings.HasPrefix(out, "202 <nil>") || asked != "http://relay.sealpush.test/push" {
		t.Errorf("the proxy was asked for %q; outcome %q", asked, out)
	}
}

func TestProxyCredentialsAreNeverShown(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	for name, proxy := range map[string]string{
		"not a URL":    "http://user:hunter2secret@bad host/",
		"not there":    strings.Replace(down.URL, "://", "://user:hunter2secret@", 1),
		"not a scheme": "user:hunter2secret@" + strings.TrimPrefix(down.URL, "http://"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a connection that does not come
			out := sendInProcess(t, "http://relay.sealpush.test/push", "HTTP_PROXY="+proxy, "http_proxy="+proxy)
			if strings.Contains(out, "hunter2") || !strings.Contains(out, "proxy") {
				t.Errorf("outcome %q", out)
			}
		})
	}
}

// A proxy that does not let us through will not a second later. One that cannot reach the relay may.
func TestProxyRefusalEndsTheWait(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusForbidden:          "the proxy refuses to connect: 403",
		http.StatusProxyAuthRequired:  "the proxy refuses to connect: 407",
		http.StatusServiceUnavailable: "no connection within 200ms",
	} {
		asked := 0
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.WriteHeader(status)
		}))
		out := sendInProcess(t, "https://relay.sealpush.test/push", "HTTPS_PROXY="+proxy.URL, "https_proxy="+proxy.URL)
		if !strings.Contains(out, want) || (asked > 1) != (status/100 == 5) {
			t.Errorf("%d: asked %d times, outcome %q", status, asked, out)
		}
		proxy.Close()
	}
}
