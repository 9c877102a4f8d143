//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// after is the rest of the guide's line that begins so.
func (r *relayProcess) after(t *testing.T, prefix string) string {
	t.Helper()
	_, rest, found := strings.Cut(r.guide, prefix)
	if !found {
		t.Fatalf("no %q in\n%s", prefix, r.guide)
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// scrape reads the metrics as Prometheus does: the value of each series, the count of each histogram.
func scrape(t *testing.T, url string) (series map[string]float64, text string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	if format := expfmt.ResponseFormat(resp.Header); format.FormatType() != expfmt.TypeTextPlain {
		t.Errorf("the content type %q is no text format", resp.Header.Get("Content-Type"))
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v in\n%s", err, body)
	}
	series = map[string]float64{}
	for name, family := range families {
		if family.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			key := strings.Join(append([]string{name}, labels...), " ")
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				series[key] = m.GetCounter().GetValue()
			case dto.MetricType_GAUGE:
				series[key] = m.GetGauge().GetValue()
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				series[key] = float64(h.GetSampleCount())
				buckets := h.GetBucket()
				if last := buckets[len(buckets)-1]; last.GetCumulativeCount() != h.GetSampleCount() || h.GetSampleSum() < 0 {
					t.Errorf("%s does not add up: %v", name, h)
				}
			default:
				t.Errorf("%s is a %v", name, family.GetType())
			}
		}
	}
	return series, string(body)
}

func TestRelayServesMetrics(t *testing.T) {
	r := startRelay(t, "-addr", "127.0.0.1:0", "-metrics", "127.0.0.1:0")
	relayURL, metricsURL := r.after(t, "Sealed relay "), r.after(t, "\nMetrics ")
	before, _ := scrape(t, metricsURL)
	if n, known := before["sealpush_relay_posts_total result=rate_limited"]; n != 0 || !known {
		t.Errorf("before any post: %v", before)
	}

	client, err := relayclient.New(relayURL, relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var phones []pairing.Device
	for i := range 2 {
		phone := relaytest.NewPhone()
		phones = append(phones, pairing.Device{ID: fmt.Sprint(i), PushToken: secret.New(phone.PushToken()), PublicKey: phone.PublicKey()})
	}
	push := relayclient.Push{Alert: payload.NewFailure("node-a", "nightly-backup"), Salt: payload.NewSalt()}
	client.Send(t.Context(), push, phones)
	client.Send(t.Context(), push, phones[:1])
	resp, err := http.Post(relayURL, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()

	got, text := scrape(t, metricsURL)
	for key, want := range map[string]float64{
		"sealpush_relay_posts_total result=forwarded":                        2,
		"sealpush_relay_posts_total result=coalesced":                        1,
		"sealpush_relay_posts_total result=invalid":                          1,
		"sealpush_relay_posts_total result=rate_limited":                     0,
		"sealpush_relay_forwards_total operation=forward result=forwarded":   2,
		"sealpush_relay_forwards_total operation=digest result=forwarded":    0,
		"sealpush_relay_forwards_total operation=forward result=device_gone": 0,
		"sealpush_relay_post_duration_seconds":                               4,
		"sealpush_relay_forward_duration_seconds":                            2,
		"sealpush_relay_devices":                                             2,
	} {
		if n, known := got[key]; n != want || !known {
			t.Errorf("%s is %v (known: %t), want %v", key, n, known, want)
		}
	}
	for _, phone := range phones {
		if strings.Contains(strings.ToLower(text), strings.ToLower(phone.PushToken.Reveal())) {
			t.Error("a device token is among the metrics")
		}
	}

	// Daemons and phones do not see them, and who scrapes sees nothing else.
	for _, url := range []string{strings.TrimSuffix(relayURL, "/relay") + "/metrics", strings.TrimSuffix(metricsURL, "/metrics") + "/relay"} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", url, resp.Status)
		}
	}
}
