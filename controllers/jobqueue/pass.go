// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/ledger"
	"reprise.dev/reprise/internal/metrics"
	"reprise.dev/reprise/internal/reservation"
)

// batch is how many slots one swap of the ledger pays for.
const batch = ledger.MaxIntents / 2

// again is how soon a queue is looked at again that has more to do.
const again = time.Nanosecond

// pass is one reconcile of one queue.
type pass struct {
	*Dispatcher
	queue *queue
	now   time.Time
	log   logr.Logger
	due   time.Duration // when to look again; zero: never
}

// clear sees to what is left of earlier passes: claims without an answer, what the cache has not shown, and the work of deleted runs.
func (p *pass) clear(ctx context.Context) error {
	if err := p.resolve(ctx); err != nil {
		return err
	}
	if err := p.search(ctx); err != nil {
		return err
	}
	return p.attend(ctx)
}

// admit claims what the rules admit, under the fence.
func (p *pass) admit(ctx context.Context, jq *batchv1alpha1.JobQueue) error {
	rules := p.limits(jq)
	d := p.decide(rules)
	// Told by what the cache shows, since those who are told look there.
	p.tellMisfits()
	if len(d.Admit)+len(d.Activate) == 0 {
		p.wakeAt(d.Wake)
		return nil
	}
	if p.queue.ledger == nil {
		if err := p.takeover(ctx); err != nil {
			return err
		}
		d = p.decide(rules)
	}
	took := metrics.AdmissionLatency.Timer(p.Clock.Now, p.queue.key.Namespace, p.queue.key.Name)
	d, tickets, err := p.enter(ctx, rules, d)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := p.claim(ctx, tickets); err != nil {
		return err
	}
	if len(tickets) > 0 {
		took()
	}
	p.wakeAt(d.Wake)
	return p.activate(ctx, d.Activate)
}

func (p *pass) decide(l admission.Limits) admission.Decision {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	d := admission.Decide(p.queue.model, l, p.queue.book, p.now, batch)
	p.queue.held = d.Held
	return d
}

// tellMisfits has those looked at that the queue can never admit, or can again.
func (p *pass) tellMisfits() {
	p.queue.mu.Lock()
	misfits := p.queue.model.Misfits()
	p.queue.mu.Unlock()
	for _, e := range misfits {
		key := client.ObjectKey{Namespace: p.queue.key.Namespace, Name: e.Name}
		if e.Kind == admission.DirectReservation {
			p.reservations.wake(key)
		} else {
			p.holds.wake(key)
		}
	}
}

// activate makes reservations the next in line. They hold nothing yet, so a lost race does no harm.
func (p *pass) activate(ctx context.Context, entries []admission.Entry) error {
	for _, e := range entries {
		dr, err := p.reservation(ctx, e)
		if dr == nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		reservation.Activate(dr, p.Self.Stamp().Epoch, p.now)
		err = p.Client.Status().Update(ctx, dr)
		switch {
		case err == nil:
			p.observeReservation(dr)
			p.wakeIn(again)
		case apierrors.IsConflict(err):
			p.wakeIn(soon)
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("activating reservation %s: %w", dr.Name, err)
		}
	}
	return nil
}

// reservation returns the version of a reservation that a decision was made about, nil if the cache has another.
func (p *pass) reservation(ctx context.Context, e admission.Entry) (*batchv1alpha1.DirectReservation, error) {
	dr := &batchv1alpha1.DirectReservation{}
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.queue.key.Namespace, Name: e.Name}, dr)
	if err != nil || dr.ResourceVersion != e.Version() {
		return nil, client.IgnoreNotFound(err)
	}
	return dr, nil
}

// run returns the version of a run that a decision was made about, nil if the cache has another.
func (p *pass) run(ctx context.Context, e admission.Entry) (*batchv1alpha1.JobRun, error) {
	r := &batchv1alpha1.JobRun{}
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.queue.key.Namespace, Name: e.Name}, r)
	if err != nil || r.ResourceVersion != e.Version() {
		return nil, client.IgnoreNotFound(err)
	}
	return r, nil
}

// takeover fences the queue once a term, and again if its ledger was deleted: it raises the epoch of the ledger, voids what an earlier manager may still have on
// its way, and only then lists, past the cache, what holds slots.
func (p *pass) takeover(ctx context.Context) error {
	l := ledger.New(p.queue.key, p.Self, p.Client, p.Live)
	left, err := l.Takeover(ctx)
	if err != nil {
		return err
	}
	for _, intent := range left {
		if err := p.touch(ctx, intent); err != nil {
			return err
		}
	}
	if err := p.listHolders(ctx); err != nil {
		return err
	}
	p.queue.ledger = l
	p.queue.remember(book(l.Memory()))
	return nil
}

// wakeAt has the queue looked at again at a time; zero: no need.
func (p *pass) wakeAt(t time.Time) {
	if !t.IsZero() {
		p.wakeIn(max(t.Sub(p.now), again))
	}
}

func (p *pass) wakeIn(d time.Duration) {
	if p.due == 0 || d < p.due {
		p.due = d
	}
}

// next asks for the next look with the priority of a fresh event: otherwise it would keep that of the initial list, and starve
// behind it after a restart.
func (p *pass) next() ctrl.Result { return ctrl.Result{RequeueAfter: p.due, Priority: new(0)} }
