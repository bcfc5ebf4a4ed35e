// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Standing is a gauge that tells how things stand. Only the manager that leads tells.
type Standing struct {
	Definition
	desc *prometheus.Desc
	// foreign gauges have one more label, which is not told: an epoch. They tell of every epoch but that of the manager.
	foreign bool
}

// Share is what one object adds to a gauge.
type Share struct {
	// Of is the gauge.
	Of *Standing
	// Value that is added. One of 0 makes the gauge show zero for its labels as long as the object is there.
	Value float64
	// Labels in the order of the gauge's; a foreign gauge's has the epoch behind them.
	Labels []string
}

var gauges []*Standing

func gauge(name, help string, labels ...Label) *Standing {
	g := &Standing{Definition: Definition{Name: name, Kind: Gauge, Help: help, Labels: labels}}
	g.desc = prometheus.NewDesc(name, help, g.names(), nil)
	gauges = append(gauges, g)
	return g
}

// How things stand.
var (
	// Runs by phase.
	Runs = gauge("reprise_runs", "Runs that exist, by phase: Queued is the depth of the queue.", namespaceLabel, queueLabel, runPhaseLabel)
	// OrphanedRuns are Running or Cancelling under a manager that has ended.
	OrphanedRuns = foreign(gauge("reprise_runs_orphaned", "Runs that are Running or Cancelling under a manager that has ended, not resolved yet.", namespaceLabel, queueLabel))
	// SilentRuns are stale now.
	SilentRuns = gauge("reprise_runs_stale", "Runs at work that give no sign of life at present.", namespaceLabel, queueLabel)
	// SlotsStopping are held by runs that have ended.
	SlotsStopping = gauge("reprise_slots_stopping", "Slots held by runs that have ended and whose work has not stopped yet.", namespaceLabel, queueLabel)
	// SlotsOverdue are held by runs whose work should have stopped.
	SlotsOverdue = gauge("reprise_slots_overdue", "Slots held by work that should have stopped a while ago.", namespaceLabel, queueLabel)
	// SlotsInUse are those of runs and reservations.
	SlotsInUse = gauge("reprise_queue_slots_in_use", "Slots used by runs and reservations.", namespaceLabel, queueLabel)
	// QueueLimit is the number of slots.
	QueueLimit = gauge("reprise_queue_limit", "Slots that the queue has; none is told of a queue without a limit.", namespaceLabel, queueLabel)
	// QueueSuspended is 1 for a suspended queue.
	QueueSuspended = gauge("reprise_queue_suspended", "1 if the queue is suspended, else 0.", namespaceLabel, queueLabel)
	// QueueThrottled is 1 while the start-up throttle holds a queue back.
	QueueThrottled = gauge("reprise_queue_throttled", "1 if the start-up throttle holds the queue back, else 0.", namespaceLabel, queueLabel)
	// QueueHeld is 1 for the reason why the first in line waits.
	QueueHeld = gauge("reprise_queue_held", "1 for the reason why the first in line waits; nothing is told of a queue in which none waits that could be admitted.", namespaceLabel, queueLabel, heldReasonLabel)
	// Reservations by phase.
	Reservations = gauge("reprise_reservations", "Reservations that exist, by phase.", namespaceLabel, queueLabel, reservationPhaseLabel)
	// Groups by phase.
	Groups = gauge("reprise_groups", "Groups that exist, by phase.", namespaceLabel, groupPhaseLabel)
	// Schedules by state.
	Schedules = gauge("reprise_schedules", "ScheduledJobs that exist: active, suspended, or stalled by an invalid schedule or zone.", namespaceLabel, scheduleLabel)
	// Letters are announcements that are owed or were given up.
	Letters = gauge("reprise_notifications_outstanding", "Announcements that are still to be delivered (owed), or were given up and are on record (abandoned: dead letters).", namespaceLabel, letterLabel)
	// LeadingSince is when the process began to lead.
	LeadingSince = gauge("reprise_leading_since_seconds", "When this process began to lead, as a Unix time; told by the leader alone.")
)

func foreign(g *Standing) *Standing {
	g.foreign = true
	return g
}

// separator joins label values, none of which can hold it.
const separator = "\xff"

type count struct {
	value  float64
	shares int
}

// Census adds up the shares of all objects. Safe for concurrent use.
type Census struct {
	known  func(namespace, queue string) bool
	mu     sync.Mutex
	counts map[*Standing]map[string]count
}

// NewCensus returns one of nothing. known says whether a queue exists: what names one that does not is told of as Missing.
func NewCensus(known func(namespace, queue string) bool) *Census {
	return &Census{known: known, counts: map[*Standing]map[string]count{}}
}

// Change takes the shares of an object as it was and gives it those that it has now.
func (c *Census) Change(before, now []Share) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range now {
		c.add(s, 1)
	}
	for _, s := range before {
		c.add(s, -1)
	}
}

func (c *Census) add(s Share, sign int) {
	entries := c.counts[s.Of]
	if entries == nil {
		entries = map[string]count{}
		c.counts[s.Of] = entries
	}
	told := s.Of.bounded(s.Labels)
	key := strings.Join(told, separator)
	e := entries[key]
	e.value += float64(sign) * s.Value
	e.shares += sign
	if e.shares == 0 {
		delete(entries, key)
		return
	}
	entries[key] = e
}

// sum adds what the census tells to totals, as the manager of an epoch sees it.
func (c *Census) sum(epoch string, totals map[*Standing]map[string]float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g, entries := range c.counts {
		if totals[g] == nil {
			totals[g] = map[string]float64{}
		}
		for key, e := range entries {
			value := e.value
			if g.foreign {
				at := strings.LastIndex(key, separator)
				if key[at+len(separator):] == epoch {
					value = 0
				}
				key = key[:at]
			}
			totals[g][c.told(g, key)] += value
		}
	}
}

// told returns the label values with the name of a queue only if that exists.
func (c *Census) told(g *Standing, key string) string {
	if !g.OfQueue() {
		return key
	}
	values := strings.Split(key, separator)
	if c.known(values[0], values[1]) {
		return key
	}
	values[1] = Missing
	return strings.Join(values, separator)
}

// board shows the census of every manager of this process that leads. Only tests have several.
type board struct {
	mu      sync.Mutex
	leading map[*Census]string
}

var published = &board{leading: map[*Census]string{}}

func init() { metrics.Registry.MustRegister(published) }

// Publish shows a census, as the manager of that epoch sees it, until withdraw is called.
func Publish(c *Census, epoch string) (withdraw func()) {
	published.mu.Lock()
	defer published.mu.Unlock()
	published.leading[c] = epoch
	return func() {
		published.mu.Lock()
		defer published.mu.Unlock()
		delete(published.leading, c)
	}
}

// Describe tells what may be collected.
func (b *board) Describe(out chan<- *prometheus.Desc) {
	for _, g := range gauges {
		out <- g.desc
	}
}

// Collect adds up what is published.
func (b *board) Collect(out chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	totals := map[*Standing]map[string]float64{}
	for c, epoch := range b.leading {
		c.sum(epoch, totals)
	}
	for g, entries := range totals {
		for key, value := range entries {
			var labels []string
			if len(g.Labels) > 0 {
				labels = strings.Split(key, separator)
			}
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labels...)
		}
	}
}
