// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/ledger"
)

// Startup is the start-up throttle of queues that set none of their own.
type Startup struct {
	// Window is how long it lasts. Zero: off.
	Window time.Duration
	// Stagger is the time between the opening of one slot and the next.
	Stagger time.Duration
	// BurstLimit is how many runs are admitted per slot during the window.
	BurstLimit int
}

// limits returns the rules of a queue that are in force.
func (d *Dispatcher) limits(jq *batchv1alpha1.JobQueue) admission.Limits {
	l := admission.LimitsOf(jq)
	l.Startup = d.startup(jq)
	return l
}

// startup returns the throttle of a queue: what it says itself wins over the manager's defaults.
func (d *Dispatcher) startup(jq *batchv1alpha1.JobQueue) admission.Startup {
	own := ptr.Deref(jq.Spec.Startup, batchv1alpha1.QueueStartup{})
	s := admission.Startup{Since: d.leadingSince(), Window: d.Startup.Window, Stagger: d.Startup.Stagger, BurstLimit: d.Startup.BurstLimit}
	if own.WindowSeconds != nil {
		s.Window = time.Duration(*own.WindowSeconds) * time.Second
	}
	if own.StaggerSeconds != nil {
		s.Stagger = time.Duration(*own.StaggerSeconds) * time.Second
	}
	if own.BurstLimit != nil {
		s.BurstLimit = int(*own.BurstLimit)
	}
	if s.Window <= 0 {
		return admission.Startup{}
	}
	s.Offset = admission.Offset(jq.Namespace, jq.Name, s.Stagger)
	return s
}

// lead notes when this process can first admit, whether there is any queue by then or not.
func (d *Dispatcher) lead(ctx context.Context) error {
	err := d.ready(ctx)
	if ctx.Err() != nil {
		return nil // the process is ending
	}
	if err == nil {
		d.leadingSince()
	}
	return err
}

// leadingSince is when this process could first admit: it leads, and every orphan was evaluated.
func (d *Dispatcher) leadingSince() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.since.IsZero() {
		d.since = d.Clock.Now()
	}
	return d.since
}

// remember keeps what the ledger of the queue remembers where decisions find it.
func (q *queue) remember(b admission.Book) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.book = b
}

// book is what a ledger remembers.
func book(m ledger.Memory) admission.Book {
	b := admission.Book{DirectInRow: int(m.DirectInRow)}
	for _, a := range m.RecentAdmissions {
		b.Recent = append(b.Recent, admission.Admitted{At: a.At.Time, Count: int(a.Count)})
	}
	return b
}

// memory is the book as the ledger stores it.
func memory(b admission.Book) ledger.Memory {
	m := ledger.Memory{DirectInRow: count(b.DirectInRow)}
	for _, a := range b.Recent {
		m.RecentAdmissions = append(m.RecentAdmissions, batchv1alpha1.Admissions{At: metav1.NewTime(a.At), Count: count(a.Count)})
	}
	return m
}
