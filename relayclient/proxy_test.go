package relayclient_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient"
)

// Started with the first in its environment, the test binary is a daemon that sends
// one alert to the relay named there, as long as the second says.
const (
	asDaemon = "SEALPUSH_TEST_RELAY_URL"
	patience = "SEALPUSH_TEST_PATIENCE"
)

func TestMain(m *testing.M) {
	url := os.Getenv(asDaemon)
	if url == "" {
		os.Exit(m.Run())
	}
	var opts []relayclient.Option
	if d, err := time.ParseDuration(os.Getenv(patience)); err == nil {
		opts = append(opts, relayclient.WithPatience(d))
	}
	client, err := relayclient.New(url, opts...)
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
			said := false
			for wait := 100 * time.Millisecond; !said && wait < 10*time.Second; wait *= 2 { // until there is time for one try
				out := sendInProcess(t, "http://relay.sealpush.test/push", "HTTP_PROXY="+proxy, "http_proxy="+proxy, patience+"="+wait.String())
				if strings.Contains(out, "hunter2") {
					t.Errorf("outcome %q", out)
				}
				said = strings.Contains(out, "proxy")
			}
			if !said {
				t.Error("no outcome names the proxy")
			}
		})
	}
}

// A proxy that does not let us through will not a second later. One that cannot reach the relay may.
func TestProxyRefusalEndsTheWait(t *testing.T) {
	for _, statuses := range [][]int{{403}, {407}, {503, 503, 403}} {
		var asked atomic.Int32
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := int(asked.Add(1))
			w.WriteHeader(statuses[min(n, len(statuses))-1])
		}))
		out := sendInProcess(t, "https://relay.sealpush.test/push", "HTTPS_PROXY="+proxy.URL, "https_proxy="+proxy.URL)
		want := fmt.Sprint("the proxy refuses to connect: ", statuses[len(statuses)-1])
		if n := int(asked.Load()); !strings.Contains(out, want) || n != len(statuses) {
			t.Errorf("%v: asked %d times, outcome %q", statuses, n, out)
		}
		proxy.Close()
	}
}
