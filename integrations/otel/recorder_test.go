package otelpage_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	apitrace "go.opentelemetry.io/otel/trace"

	otelpage "github.com/sealpush/sealpush/integrations/otel"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// sdk is the real SDK, with what was recorded in memory.
type sdk struct {
	reader   *metric.ManualReader
	spans    *tracetest.SpanRecorder
	tracers  *trace.TracerProvider
	recorder *otelpage.Recorder
}

func newSDK(t *testing.T) *sdk {
	t.Helper()
	s := &sdk{reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	s.tracers = trace.NewTracerProvider(trace.WithSpanProcessor(s.spans))
	var err error
	s.recorder, err = otelpage.New(otelpage.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(s.reader))), otelpage.WithTracerProvider(s.tracers))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// metrics are what was recorded, by name: a line of attributes and count for each series.
func (s *sdk) metrics(t *testing.T) map[string][]string {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := s.reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	series := map[string][]string{}
	for _, scope := range got.ScopeMetrics {
		if scope.Scope.Name != otelpage.ScopeName || scope.Scope.SchemaURL == "" {
			t.Errorf("scope %+v", scope.Scope)
		}
		for _, m := range scope.Metrics {
			name := m.Name + " " + m.Unit
			add := func(set attribute.Set, n any) {
				series[name] = append(series[name], fmt.Sprintf("%s: %d", set.Encoded(attribute.DefaultEncoder()), n))
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					add(point.Attributes, point.Value)
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					add(point.Attributes, point.Count)
				}
			case metricdata.Histogram[int64]:
				for _, point := range data.DataPoints {
					add(point.Attributes, point.Count)
				}
			default:
				t.Errorf("%s is a %T", m.Name, m.Data)
			}
			slices.Sort(series[name])
		}
	}
	return series
}

func wantSeries(t *testing.T, got map[string][]string, name string, want ...string) {
	t.Helper()
	if !slices.Equal(got[name], want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, strings.Join(got[name], "\n"), strings.Join(want, "\n"))
	}
}

func TestAlerts(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	s := newSDK(t)
	client, err := relayclient.New(relay.URL+"/?key=hunter2", relayclient.WithObserver(s.recorder.Alert), relayclient.WithObservedNames())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	phone := relaytest.NewPhone()
	device := pairing.Device{ID: "a1b2", PushToken: secret.New(phone.PushToken()), PublicKey: phone.PublicKey()}
	alert := payload.NewFailure("node-a", "nightly-backup")
	alert.RunID = "run-7"
	send := func(ctx context.Context) {
		client.Send(ctx, relayclient.Push{Alert: alert, Salt: payload.NewSalt()}, []pairing.Device{device})
	}
	ctx, parent := s.tracers.Tracer("test").Start(t.Context(), "job")
	send(ctx)
	relay.Script(1, relaytest.Answer{Status: 429})
	send(ctx)
	relay.Script(1, relaytest.Answer{Drop: true})
	send(ctx)
	alert.Kind = "party"
	send(ctx)
	parent.End()

	address, err := url.Parse(relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	attrs := func(middle string) string {
		return middle + "server.address=127.0.0.1,server.port=" + address.Port() + ",url.scheme=http: 1"
	}
	got := s.metrics(t)
	wantSeries(t, got, "sealpush.alerts {alert}",
		"sealpush.alert.kind=,sealpush.result=invalid_alert: 1",
		"sealpush.alert.kind=failure,sealpush.result=forwarded: 1",
		"sealpush.alert.kind=failure,sealpush.result=no_answer: 1",
		"sealpush.alert.kind=failure,sealpush.result=rate_limited: 1")
	for _, name := range []string{"http.client.request.duration s", "http.client.request.body.size By"} {
		wantSeries(t, got, name,
			attrs("error.type=429,http.request.method=POST,http.response.status_code=429,"),
			attrs("error.type=no_answer,http.request.method=POST,"),
			attrs("http.request.method=POST,http.response.status_code=202,"))
	}

	spans := s.spans.Ended()
	if len(spans) != 4 {
		t.Fatalf("%d spans", len(spans))
	}
	for i, span := range spans[:3] {
		if span.Name() != "POST" || span.SpanKind() != apitrace.SpanKindClient || span.Parent().SpanID() != parent.SpanContext().SpanID() ||
			span.EndTime().Before(span.StartTime()) || span.EndTime().After(time.Now()) {
			t.Errorf("span %+v", span)
		}
		if failed := span.Status().Code == codes.Error; failed != (i > 0) {
			t.Errorf("span %d has status %v", i, span.Status())
		}
		set := attribute.NewSet(span.Attributes()...)
		text := set.Encoded(attribute.DefaultEncoder())
		for _, want := range []string{"sealpush.alert.name=nightly-backup", "sealpush.alert.run_id=run-7", "sealpush.device.id=a1b2", "http.request.body.size="} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
		for _, hidden := range []string{"hunter2", phone.PushToken(), "url.full"} {
			if strings.Contains(text, hidden) {
				t.Errorf("%q is in %s", hidden, text)
			}
		}
	}
	if relay.Requests()[0].Header.Get("Traceparent") != "" {
		t.Error("the relay is told of the trace")
	}
}

func TestBridgeCalls(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	s := newSDK(t)
	client, err := bridge.New(bridge.Config{
		URL: service.RelayURL, TokenURL: service.TokenURL, ClientID: "home", ClientSecret: service.AddClient("home"),
	}, bridge.WithObserver(s.recorder.Call))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Register(t.Context(), bridge.Device{Token: secret.New("token"), Platform: "ios"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		client.Notify(t.Context(), bridge.Notification{Title: "Agent", Body: "New activity"})
	}
	service.Script(relaytest.EndpointUnregister, relaytest.Always, relaytest.Answer{Status: 403})
	if err := client.Unregister(t.Context(), secret.New("token")); err == nil {
		t.Error("unregistered")
	}
	address, err := url.Parse(service.RelayURL)
	if err != nil {
		t.Fatal(err)
	}
	server := ",server.address=127.0.0.1,server.port=" + address.Port() + ",url.scheme=http: "
	wantSeries(t, s.metrics(t), "sealpush.bridge.call.duration s",
		"error.type=403,http.response.status_code=403,sealpush.bridge.operation=unregister,sealpush.result=refused"+server+"1",
		"http.response.status_code=200,sealpush.bridge.operation=push,sealpush.result=ok"+server+"1",
		"http.response.status_code=200,sealpush.bridge.operation=register,sealpush.result=ok"+server+"1",
		"sealpush.bridge.operation=push,sealpush.result=debounced"+server+"2")
	var names []string
	for _, span := range s.spans.Ended() {
		names = append(names, span.Name())
	}
	if !slices.Equal(names, []string{"register", "push", "unregister"}) {
		t.Errorf("spans %q", names)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opt := range map[string]otelpage.Option{
		"nil": nil, "no meters": otelpage.WithMeterProvider(nil), "no tracers": otelpage.WithTracerProvider(nil),
	} {
		if _, err := otelpage.New(opt); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if _, err := otelpage.New(); err != nil {
		t.Errorf("with the global providers: %v", err)
	}
}
