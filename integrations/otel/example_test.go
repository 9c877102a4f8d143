package otelpage_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	otelpage "github.com/sealpush/sealpush/integrations/otel"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// A daemon counts what becomes of its alerts. It would have an exporter's reader where this one reads by hand.
func Example() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()

	reader := metric.NewManualReader()
	recorder, err := otelpage.New(otelpage.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		log.Fatal(err)
	}
	client, err := relayclient.New(relay.URL, relayclient.WithObserver(recorder.Alert), relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx := context.Background()
	phones := []pairing.Device{{ID: "phone", PushToken: secret.New(phone.PushToken()), PublicKey: phone.PublicKey()}}
	push := relayclient.Push{Alert: payload.NewFailure("node-a", "nightly-backup"), Salt: payload.NewSalt()}
	client.Send(ctx, push, phones)
	client.Send(ctx, push, phones)

	var metrics metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &metrics); err != nil {
		log.Fatal(err)
	}
	for _, m := range metrics.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, point := range sum.DataPoints {
				result, _ := point.Attributes.Value("sealpush.result")
				fmt.Println(m.Name, result.AsString(), point.Value)
			}
		}
	}
	// Unordered output:
	// sealpush.alerts forwarded 1
	// sealpush.alerts coalesced 1
}

// The guide's daemon, with the global providers.
func newObservedClient(relayURL string) error {
	recorder, err := otelpage.New() // with the global providers
	if err != nil {
		return err
	}
	client, err := relayclient.New(relayURL, relayclient.WithObserver(recorder.Alert))
	if err != nil {
		return err
	}
	client.Close()
	return nil
}

func Example_globalProviders() {
	fmt.Println(newObservedClient("https://relay.example/"))
	// Output: <nil>
}
