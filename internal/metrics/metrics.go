// SPDX-License-Identifier: Apache-2.0

// Package metrics holds what the manager tells about its work beside what its libraries tell. Everything is registered with
// the registry that the manager serves at /metrics. No label has values without a bound: namespaces and queues go with the
// objects they are named after, and everything else is one of a fixed set.
package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Kind is what sort of metric it is.
type Kind string

const (
	// Counter only grows, while the process lives.
	Counter Kind = "counter"
	// Histogram counts observations by their size.
	Histogram Kind = "histogram"
	// Gauge goes up and down.
	Gauge Kind = "gauge"
)

// Label is one label of a metric.
type Label struct {
	// Name of the label.
	Name string
	// Values it may have; nil: the name of an object.
	Values []string
}

// Definition describes a metric.
type Definition struct {
	// Name of the metric.
	Name string
	// Kind of the metric.
	Kind Kind
	// Help for a person.
	Help string
	// Labels in their order.
	Labels []Label
}

func (d *Definition) names() []string {
	names := make([]string, len(d.Labels))
	for i, l := range d.Labels {
		names[i] = l.Name
	}
	return names
}

// bounded returns the values as they may be told: one that is not in the fixed set of its label becomes "Other".
func (d *Definition) bounded(values []string) []string {
	told := slices.Clone(values)
	for i, l := range d.Labels {
		if l.Values != nil && !slices.Contains(l.Values, told[i]) {
			told[i] = Other
		}
	}
	return told
}

// Other stands for every value of a label that is none of its fixed set.
const Other = "Other"

// Metric is a counter or a histogram. Counters and histograms tell what this process has seen happen; they begin at zero.
type Metric struct {
	Definition

	counter   *prometheus.CounterVec
	histogram *prometheus.HistogramVec
}

// Record adds to a counter, or is an observation of a histogram. Values are those of the labels, in their order.
func (m *Metric) Record(value float64, values ...string) {
	told := m.bounded(values)
	if m.counter != nil {
		m.counter.WithLabelValues(told...).Add(value)
		return
	}
	m.histogram.WithLabelValues(told...).Observe(value)
}

// Timer returns a function that records, when it is called, how long that was after.
func (m *Metric) Timer(now func() time.Time, values ...string) func() {
	begun := now()
	return func() { m.Record(now().Sub(begun).Seconds(), values...) }
}

// OfQueue reports whether the first two labels are the namespace and the name of a queue.
func (d *Definition) OfQueue() bool { return len(d.Labels) > 1 && d.Labels[1].Name == queueLabel.Name }

// begin shows the metric as zero for the object that the first labels name, with every value of the others: the first event
// would be no increase otherwise.
func (m *Metric) begin(object ...string) {
	all := [][]string{object}
	for _, l := range m.Labels[len(object):] {
		var longer [][]string
		for _, values := range all {
			for _, v := range l.Values {
				longer = append(longer, append(slices.Clone(values), v))
			}
		}
		all = longer
	}
	for _, values := range all {
		if m.counter != nil {
			m.counter.WithLabelValues(values...)
			continue
		}
		m.histogram.WithLabelValues(values...)
	}
}

// forget drops what is told about an object that is gone.
func (m *Metric) forget(object prometheus.Labels) {
	for name := range object {
		if !slices.Contains(m.names(), name) {
			return
		}
	}
	if m.counter != nil {
		m.counter.DeletePartialMatch(object)
		return
	}
	m.histogram.DeletePartialMatch(object)
}

var recorded []*Metric

func counter(name, help string, labels ...Label) *Metric {
	m := &Metric{Definition: Definition{Name: name, Kind: Counter, Help: help, Labels: labels}}
	m.counter = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, m.names())
	metrics.Registry.MustRegister(m.counter)
	recorded = append(recorded, m)
	return m
}

func histogram(name, help string, buckets []float64, labels ...Label) *Metric {
	m := &Metric{Definition: Definition{Name: name, Kind: Histogram, Help: help, Labels: labels}}
	m.histogram = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, m.names())
	metrics.Registry.MustRegister(m.histogram)
	recorded = append(recorded, m)
	return m
}

// All returns the definitions of every metric, by name.
func All() []Definition {
	var all []Definition
	for _, m := range recorded {
		all = append(all, m.Definition)
	}
	for _, g := range gauges {
		all = append(all, g.Definition)
	}
	slices.SortFunc(all, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
