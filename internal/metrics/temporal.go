package metrics

import (
	"fmt"

	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
)

// Temporal returns the handler of the Temporal SDK's own metrics. Its histograms have our few
// buckets: with the default buckets they would make up most of a scrape.
func (m *Metrics) Temporal() (client.MetricsHandler, error) {
	reader, err := exporter.New(
		exporter.WithRegisterer(m.registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo(),
	)
	if err != nil {
		return nil, fmt.Errorf("metrics of the Temporal SDK: %w", err)
	}
	buckets := metric.NewView(metric.Instrument{Kind: metric.InstrumentKindHistogram}, metric.Stream{
		Aggregation: metric.AggregationExplicitBucketHistogram{Boundaries: []float64{.01, .05, .25, 1, 5, 30, 120}},
	})
	provider := metric.NewMeterProvider(
		metric.WithReader(reader), metric.WithView(buckets), metric.WithCardinalityLimit(seriesMost),
	)
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter: provider.Meter("temporal-sdk-go"), UseMonotonicCounters: true, OnError: func(error) {},
	}), nil
}

// seriesMost limits the label sets of one metric.
const seriesMost = 2000
