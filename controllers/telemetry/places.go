// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"slices"
	"sync"

	"reprise.dev/reprise/internal/metrics"
)

// queuesOf and schedulesOf are what a namespace may have.
const (
	queuesOf    = "JobQueue"
	schedulesOf = "ScheduledJob"
)

type place struct{ kind, name string }

// places are the queues and ScheduledJobs that exist, by namespace. What is counted of a queue is kept while the queue is there,
// and what is counted of a namespace while anything is there: names that come and go must not pile up.
type places struct {
	mu    sync.Mutex
	known map[string]map[place]bool
}

// seen notes that an object is there, or is gone.
func (p *places) seen(namespace, kind, name string, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there {
		p.begin(namespace, place{kind, name})
		return
	}
	delete(p.known[namespace], place{kind, name})
	if kind == queuesOf {
		metrics.ForgetQueue(namespace, name)
	}
	if len(p.known[namespace]) == 0 {
		delete(p.known, namespace)
		metrics.ForgetNamespace(namespace)
	}
}

func (p *places) begin(namespace string, at place) {
	if p.known == nil {
		p.known = map[string]map[place]bool{}
	}
	if p.known[namespace] == nil {
		p.known[namespace] = map[place]bool{}
		metrics.BeginNamespace(namespace)
	}
	p.known[namespace][at] = true
	if at.kind == queuesOf {
		metrics.BeginQueue(namespace, at.name)
	}
}

func (p *places) hasQueue(namespace, name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[namespace][place{queuesOf, name}]
}

// told returns the labels of an observation with the name of its queue only if that exists.
func (p *places) told(o Observation) []string {
	if !o.Of.OfQueue() || p.hasQueue(o.Labels[0], o.Labels[1]) {
		return o.Labels
	}
	labels := slices.Clone(o.Labels)
	labels[1] = metrics.Missing
	return labels
}
