// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"math"
	"time"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Unlimited is the limit of a queue, or of a type, without one.
const Unlimited = math.MaxInt

// DefaultMaxConsecutive is how many reservations a queue that does not say so grants in a row while runs wait.
const DefaultMaxConsecutive = 10

// Limits are the rules of a queue that are in force.
type Limits struct {
	// Limit is the number of slots. 0 starts nothing; Unlimited is no limit.
	Limit int
	// Suspend stops admission.
	Suspend bool
	// Types holds the limit of each type that the queue lists, Unlimited for one without. Empty: the queue lists no types.
	Types map[string]int
	// Resources holds the capacity of each of the queue's resources.
	Resources map[string]int
	// MaxConsecutive is how many reservations are granted in a row while runs wait. 0: no bound.
	MaxConsecutive int
	// Startup is the start-up throttle. Zero: none.
	Startup Startup
}

// LimitsOf returns what a JobQueue says, without its start-up throttle: that one depends on the manager, too.
func LimitsOf(jq *batchv1alpha1.JobQueue) Limits {
	direct := ptr.Deref(jq.Spec.Direct, batchv1alpha1.QueueDirect{})
	concurrency := ptr.Deref(jq.Spec.Concurrency, batchv1alpha1.QueueConcurrency{})
	l := Limits{
		Suspend:        jq.Spec.Suspend,
		MaxConsecutive: int(ptr.Deref(direct.MaxConsecutive, DefaultMaxConsecutive)),
		Types:          make(map[string]int, len(concurrency.Types)),
		Resources:      make(map[string]int, len(concurrency.Resources)),
	}
	bounded := len(concurrency.Resources) > 0
	for _, t := range concurrency.Types {
		l.Types[t.Name] = limitOf(t.Limit, Unlimited)
		bounded = bounded || t.Limit != nil
	}
	for _, r := range concurrency.Resources {
		l.Resources[r.Name] = int(r.Capacity)
	}
	l.Limit = limitOf(concurrency.Limit, 1)
	if bounded {
		l.Limit = limitOf(concurrency.Limit, Unlimited)
	}
	return l
}

func limitOf(limit *int32, unset int) int {
	if limit == nil {
		return unset
	}
	return int(*limit)
}

// bound returns the limit of a type, and whether it has one.
func (l *Limits) bound(kind string) (int, bool) {
	n, listed := l.Types[kind]
	return n, listed && kind != "" && n != Unlimited
}

// Startup throttles the admission of runs after a manager has begun to lead.
type Startup struct {
	// Since is when this manager began to lead.
	Since time.Time
	// Window is how long the throttle lasts. 0: there is none.
	Window time.Duration
	// Stagger is the time between the opening of one slot and the next. 0: they open together.
	Stagger time.Duration
	// Offset is when the first slot opens, counted from Since.
	Offset time.Duration
	// BurstLimit is how many runs are admitted per slot within any Window. 0: no bound.
	BurstLimit int
}
