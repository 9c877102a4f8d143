// Package otelpage records what becomes of alerts, and of a bridge's calls, as OpenTelemetry metrics and spans.
//
//	recorder, err := otelpage.New()
//	if err != nil {
//		return err
//	}
//	client, err := relayclient.New(relayURL, relayclient.WithObserver(recorder.Alert))
//	waker, err := bridge.New(config, bridge.WithObserver(recorder.Call))
//
// # Metrics
//
// A POST of an alert is an HTTP client's request, with the names of the semantic conventions
// (https://opentelemetry.io/docs/specs/semconv/http/http-metrics/, version 1.43.0):
//
//	http.client.request.duration       s   histogram; with the wait for a connection
//	http.client.request.body.size      By  histogram; of the envelope
//
// Their attributes are http.request.method, server.address, server.port, url.scheme, http.response.status_code and, of
// a request that failed, error.type. What the conventions have no name for is
//
//	sealpush.alerts                {alert}  counter: for each device, by sealpush.result and sealpush.alert.kind
//	sealpush.bridge.call.duration  s        histogram: by sealpush.result and sealpush.bridge.operation
//
// The results are those of [relayclient.Observation] and [bridge.Observation]. A call of a bridge is no single request:
// it may fetch a token, and be repeated. What was debounced is counted with a duration of 0.
//
// # Spans
//
// Each POST of an alert is a span of kind client, named POST, and each call of a bridge that was not debounced one
// named "push", "register" or "unregister". They are children of the span in the context that was given to Notify, Send
// or Register. They carry the attributes of the metrics, and, with [relayclient.WithObservedNames],
// sealpush.alert.name, sealpush.alert.run_id and sealpush.device.id, which no metric has. There is no url.full: it may
// hold credentials. The relay, which is not trusted, is sent no trace context.
package otelpage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/bridge"
)

// ScopeName is the instrumentation scope of the metrics and spans.
const ScopeName = "github.com/sealpush/sealpush/integrations/otel"

// The attributes that are not of the semantic conventions.
const (
	resultKey    = attribute.Key("sealpush.result")
	kindKey      = attribute.Key("sealpush.alert.kind")
	nameKey      = attribute.Key("sealpush.alert.name")
	runKey       = attribute.Key("sealpush.alert.run_id")
	deviceKey    = attribute.Key("sealpush.device.id")
	operationKey = attribute.Key("sealpush.bridge.operation")
)

// An Option changes a default of [New].
type Option func(*config) error

type config struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
}

// WithMeterProvider sets where metrics go, instead of otel.GetMeterProvider().
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errors.New("otelpage: WithMeterProvider: the provider is nil")
		}
		c.meters = p
		return nil
	}
}

// WithTracerProvider sets where spans go, instead of otel.GetTracerProvider().
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(c *config) error {
		if p == nil {
			return errors.New("otelpage: WithTracerProvider: the provider is nil")
		}
		c.tracers = p
		return nil
	}
}

// A Recorder records observations. Its methods are the observers of a relayclient.Client and a bridge.Client. It is
// safe for concurrent use.
type Recorder struct {
	tracer   trace.Tracer
	duration httpconv.ClientRequestDuration
	bodySize httpconv.ClientRequestBodySize
	alerts   metric.Int64Counter
	calls    metric.Float64Histogram
	servers  sync.Map // of []attribute.KeyValue, by the relay's scheme and host, of which a client has one
}

// New makes a recorder. Its error is the meter provider's, or an option's.
func New(opts ...Option) (*Recorder, error) {
	c := config{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("otelpage: an option is nil")
		}
		if err := opt(&c); err != nil {
			return nil, err
		}
	}
	meter := c.meters.Meter(ScopeName, metric.WithSchemaURL(semconv.SchemaURL))
	r := &Recorder{tracer: c.tracers.Tracer(ScopeName, trace.WithSchemaURL(semconv.SchemaURL))}
	var problems [4]error
	r.duration, problems[0] = httpconv.NewClientRequestDuration(meter)
	r.bodySize, problems[1] = httpconv.NewClientRequestBodySize(meter)
	r.alerts, problems[2] = meter.Int64Counter("sealpush.alerts",
		metric.WithUnit("{alert}"), metric.WithDescription("Alerts that ended, one for each device, by result."))
	r.calls, problems[3] = meter.Float64Histogram("sealpush.bridge.call.duration",
		metric.WithUnit("s"), metric.WithDescription("Duration of a bridge's calls to its push relay, with tokens and repetitions."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20))
	if err := errors.Join(problems[:]...); err != nil {
		return nil, fmt.Errorf("otelpage: %w", err)
	}
	return r, nil
}

// Alert is for [relayclient.WithObserver].
func (r *Recorder) Alert(ctx context.Context, o relayclient.Observation) {
	r.alerts.Add(ctx, 1, metric.WithAttributes(resultKey.String(o.Result), kindKey.String(string(o.Kind))))
	if o.Bytes == 0 && o.Result != "unreachable" {
		return // there was no POST
	}
	ok := o.Status/100 == 2
	attrs := r.request(o.Relay, o.Status, o.Result, ok)
	attrs = append(attrs, semconv.HTTPRequestMethodPost)
	set := attribute.NewSet(attrs...)
	r.duration.RecordSet(ctx, o.Duration.Seconds(), set)
	if o.Bytes > 0 {
		r.bodySize.RecordSet(ctx, int64(o.Bytes), set)
	}
	_, span := r.tracer.Start(ctx, "POST", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(o.Start),
		trace.WithAttributes(attrs...), trace.WithAttributes(resultKey.String(o.Result), kindKey.String(string(o.Kind))))
	if span.IsRecording() {
		for key, value := range map[attribute.Key]string{nameKey: o.Name, runKey: o.RunID, deviceKey: o.DeviceID} {
			if value != "" {
				span.SetAttributes(key.String(value))
			}
		}
		if o.Bytes > 0 {
			span.SetAttributes(semconv.HTTPRequestBodySize(o.Bytes))
		}
		if !ok {
			span.SetStatus(codes.Error, o.Result)
		}
	}
	span.End(trace.WithTimestamp(o.Start.Add(o.Duration)))
}

// Call is for [bridge.WithObserver].
func (r *Recorder) Call(ctx context.Context, o bridge.Observation) {
	ok := o.Result == "ok" || o.Result == "debounced"
	attrs := append(r.request(o.Relay, o.Status, o.Result, ok), resultKey.String(o.Result), operationKey.String(o.Operation))
	r.calls.Record(ctx, o.Duration.Seconds(), metric.WithAttributes(attrs...))
	if o.Result == "debounced" {
		return
	}
	_, span := r.tracer.Start(ctx, o.Operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(o.Start), trace.WithAttributes(attrs...))
	if !ok {
		span.SetStatus(codes.Error, o.Result)
	}
	span.End(trace.WithTimestamp(o.Start.Add(o.Duration)))
}

// request returns the attributes of a request to a relay.
func (r *Recorder) request(relay string, status int, result string, ok bool) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 12)
	attrs = append(attrs, r.server(relay)...)
	if status != 0 {
		attrs = append(attrs, semconv.HTTPResponseStatusCode(status))
	}
	switch {
	case ok:
	case status >= 300:
		attrs = append(attrs, semconv.ErrorTypeKey.String(strconv.Itoa(status)))
	default:
		attrs = append(attrs, semconv.ErrorTypeKey.String(result))
	}
	return attrs
}

// server returns the attributes that a relay's scheme and host make.
func (r *Recorder) server(relay string) []attribute.KeyValue {
	if known, ok := r.servers.Load(relay); ok {
		return known.([]attribute.KeyValue)
	}
	var attrs []attribute.KeyValue
	if u, err := url.Parse(relay); err == nil && u.Host != "" {
		port, err := strconv.Atoi(u.Port())
		if err != nil {
			port = map[string]int{"http": 80, "https": 443}[u.Scheme]
		}
		attrs = []attribute.KeyValue{semconv.URLScheme(u.Scheme), semconv.ServerAddress(u.Hostname()), semconv.ServerPort(port)}
	}
	r.servers.Store(relay, attrs)
	return attrs
}
