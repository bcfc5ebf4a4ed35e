// SPDX-License-Identifier: Apache-2.0

// Package metricstest reads metrics in tests, as whoever scrapes this process would see them.
package metricstest

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"reprise.dev/reprise/internal/metrics"
)

// Value returns a counter, or the number of observations of a histogram, with exactly these label values; 0 if there is none.
func Value(t testing.TB, m *metrics.Metric, values ...string) float64 {
	t.Helper()
	found, _ := find(t, m.Definition, values)
	return found
}

// Told returns what Value does, and whether it is told at all.
func Told(t testing.TB, m *metrics.Metric, values ...string) (float64, bool) {
	t.Helper()
	return find(t, m.Definition, values)
}

// Gauge returns a gauge with exactly these label values, and whether it is told.
func Gauge(t testing.TB, g *metrics.Standing, values ...string) (float64, bool) {
	t.Helper()
	return find(t, g.Definition, values)
}

func find(t testing.TB, d metrics.Definition, values []string) (float64, bool) {
	t.Helper()
	families, err := crmetrics.Registry.Gather()
	if err != nil {
		t.Fatalf("gathering metrics: %v", err)
	}
	for _, family := range families {
		if family.GetName() != d.Name {
			continue
		}
		for _, m := range family.GetMetric() {
			if has(m, d, values) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()), true
			}
		}
	}
	return 0, false
}

func has(m *dto.Metric, d metrics.Definition, values []string) bool {
	told := map[string]string{}
	for _, l := range m.GetLabel() {
		told[l.GetName()] = l.GetValue()
	}
	for i, l := range d.Labels {
		if told[l.Name] != values[i] {
			return false
		}
	}
	return true
}
