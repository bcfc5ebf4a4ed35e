// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"math"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// unlimited is a limit that nothing exceeds.
const unlimited = math.MaxInt

// limits are the bounds of a queue.
type limits struct {
	slots     int
	types     map[string]int
	resources map[string]int
}

func limitsOf(q *batchv1alpha1.JobQueue) limits {
	c := ptr.Deref(q.Spec.Concurrency, batchv1alpha1.QueueConcurrency{})
	l := limits{slots: 1, types: map[string]int{}, resources: map[string]int{}}
	if len(c.Resources) > 0 {
		l.slots = unlimited
	}
	for _, t := range c.Types {
		if t.Limit != nil {
			l.types[t.Name] = int(*t.Limit)
			l.slots = unlimited
		}
	}
	for _, r := range c.Resources {
		l.resources[r.Name] = int(r.Capacity)
	}
	if c.Limit != nil {
		l.slots = int(*c.Limit)
	}
	return l
}

// measure is what is counted: the slots of a queue, those of a type, or a resource.
type measure struct{ kind, name string }

const (
	ofSlots    = "limit"
	ofType     = "type"
	ofResource = "resource"
)

func (m measure) String() string {
	if m.kind == ofSlots {
		return "slots"
	}
	return m.kind + " " + m.name
}

func (l limits) of(m measure) int {
	switch m.kind {
	case ofSlots:
		return l.slots
	case ofType:
		if n, bounded := l.types[m.name]; bounded {
			return n
		}
		return unlimited
	default:
		// What a queue does not have cannot be claimed; but it may have had it when the slot was given.
		return l.resources[m.name]
	}
}

// term is the time during which a queue had certain limits.
type term struct {
	from, to uint64 // the first version with them, and the first with others
	limits   limits
	// gap says that there were others right before, which were not seen: from the version seen is on.
	gap  bool
	seen uint64
}

// timeline is what was seen of the limits of a queue, under whatever UID.
type timeline struct{ terms []term }

func timelines(queues *lives[*batchv1alpha1.JobQueue]) map[types.NamespacedName]*timeline {
	all := map[types.NamespacedName]*timeline{}
	for _, q := range queues.all {
		key := types.NamespacedName{Namespace: q.namespace, Name: q.name}
		t := all[key]
		if t == nil {
			t = &timeline{}
			all[key] = t
		}
		t.add(q)
	}
	return all
}

func (t *timeline) add(q *queueLife) {
	var last int64
	var seen uint64
	for i, s := range q.states {
		generation := s.object.Generation
		if i > 0 && generation == last {
			seen = s.rv
			continue
		}
		if n := len(t.terms); n > 0 {
			t.terms[n-1].to = s.rv
		}
		t.terms = append(t.terms, term{from: s.rv, to: math.MaxUint64, limits: limitsOf(s.object), gap: generation > last+1, seen: seen})
		last, seen = generation, s.rv
	}
}

// most returns the highest limit that a decision between two versions can have met; unlimited if that is not known.
func (t *timeline) most(m measure, from, to uint64) int {
	if t == nil {
		return unlimited
	}
	most, met := 0, false
	for _, term := range t.terms {
		if term.gap && term.seen <= to && term.from >= from {
			return unlimited
		}
		if term.from > to || term.to < from {
			continue
		}
		met = true
		most = max(most, term.limits.of(m))
	}
	if !met {
		return unlimited
	}
	return most
}
