// SPDX-License-Identifier: Apache-2.0

// Package metrics holds what the manager counts besides what its libraries count. Everything is registered with the
// registry that the manager serves at /metrics.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// StaleRuns counts the runs that were found to give no sign of life for too long, each time they fell silent, by namespace and queue.
var StaleRuns = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "reprise_stale_runs_total",
	Help: "Runs that gave no sign of life for longer than their staleAfterSeconds.",
}, []string{"namespace", "queue"})

func init() { metrics.Registry.MustRegister(StaleRuns) }
