// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// parallel is how many claims of a batch are on the way at once.
const parallel = 32

// ticket is one claim of a batch: an object at exactly the version that the ledger records, with the claim written into it.
type ticket struct {
	entry  admission.Entry
	object client.Object
}

// claim swaps the batch into the ledger and then claims slots, each with exactly the version that the swap recorded.
func (p *pass) claim(ctx context.Context, entries []admission.Entry) error {
	tickets, err := p.tickets(ctx, entries)
	if len(tickets) == 0 || err != nil {
		return err
	}
	p.wakeIn(again)
	intents := make([]batchv1alpha1.Intent, len(tickets))
	for i, t := range tickets {
		intents[i] = batchv1alpha1.Intent{Kind: string(t.entry.Kind), Name: t.entry.Name, UID: t.entry.UID, ResourceVersion: t.entry.Version()}
	}
	if err := p.queue.ledger.Swap(ctx, intents); err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, t := range tickets {
		if p.assume(t) {
			group.Go(func() error { p.take(ctx, t); return nil })
		}
	}
	return group.Wait()
}

// tickets writes the claims into the versions that were decided upon. What the cache shows in another version is left out:
// the event of that version brings the queue back.
func (p *pass) tickets(ctx context.Context, entries []admission.Entry) ([]ticket, error) {
	var tickets []ticket
	for _, e := range entries {
		var object client.Object
		if e.Kind == admission.DirectReservation {
			dr, err := p.reservation(ctx, e)
			if err != nil {
				return nil, err
			}
			if dr == nil {
				continue
			}
			reservation.Grant(dr, p.Self.Stamp().Epoch, p.now)
			object = dr
		} else {
			r, err := p.run(ctx, e)
			if err != nil {
				return nil, err
			}
			if r == nil {
				continue
			}
			p.claimOf(r).Apply(r, p.now)
			object = r
		}
		tickets = append(tickets, ticket{entry: e, object: object})
	}
	return tickets, nil
}

func (p *pass) claimOf(r *batchv1alpha1.JobRun) run.Claim {
	c := run.Claim{Incarnation: p.Self.Stamp()}
	if run.Template(r).Work.HTTP != nil {
		deadline := p.HTTPDeadline(r, p.now)
		c.Deadline = &deadline
	} else {
		c.JobName = p.JobName(r)
	}
	return c
}

// assume counts the slot before the claim is sent. It reports false if the object has changed since the decision.
func (p *pass) assume(t ticket) bool {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	return p.queue.model.Assume(t.entry.UID, t.entry.ResourceVersion)
}

// take sends one claim. Losing the race is normal and harmless; a claim without an answer keeps its slot until it is resolved.
func (p *pass) take(ctx context.Context, t ticket) {
	r, isRun := t.object.(*batchv1alpha1.JobRun)
	if isRun {
		p.Work.For(r).Expect(r.UID)
	}
	err := p.Client.Status().Update(ctx, t.object)
	switch {
	case err == nil:
		p.taken(ctx, t)
	case definite(err):
		p.log.V(1).Info("claim lost", "kind", t.entry.Kind, "name", t.entry.Name, "why", err.Error())
		p.unclaim(t.entry, err)
		if isRun {
			p.Work.For(r).Forget(r.UID)
		}
	default:
		p.log.Info("claim without an answer", "kind", t.entry.Kind, "name", t.entry.Name, "error", err.Error())
		p.queue.mu.Lock()
		p.queue.unresolved[t.entry.UID] = t.entry
		p.queue.mu.Unlock()
	}
}

// unclaim gives the slot of a lost claim back.
func (p *pass) unclaim(e admission.Entry, err error) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		p.queue.model.Conflict(e.UID)
		return
	}
	p.queue.model.Unassume(e.UID)
}

// taken acts on an answered claim: the picture is told, and the work begins.
func (p *pass) taken(ctx context.Context, t ticket) {
	if dr, ok := t.object.(*batchv1alpha1.DirectReservation); ok {
		p.observeReservation(dr)
		return
	}
	r, ok := t.object.(*batchv1alpha1.JobRun)
	if !ok {
		return
	}
	if !p.upsert(r, true) && p.gone(ctx, r) {
		p.Work.For(r).Forget(r.UID)
		return
	}
	p.queue.mu.Lock()
	p.queue.sign(r.UID, run.ChainUID(r), own, true)
	p.queue.mu.Unlock()
	if err := p.Work.For(r).Start(ctx, r); err != nil {
		// The run is Running and its work is not there: its own controller tries again, or records why it cannot be.
		p.log.Info("the work of a claimed run has not begun yet", "run", r.Name, "error", err.Error())
		p.holds.wake(client.ObjectKeyFromObject(r))
		return
	}
	p.MarkStarted(r.UID)
}

// gone reports whether the run was deleted right after its claim.
func (p *pass) gone(ctx context.Context, r *batchv1alpha1.JobRun) bool {
	live := &batchv1alpha1.JobRun{}
	err := p.Live.Get(ctx, client.ObjectKeyFromObject(r), live)
	return apierrors.IsNotFound(err) || (err == nil && live.UID != r.UID)
}

// resolve finds out what became of claims without an answer. Until then they keep their slots, and nothing else is claimed.
func (p *pass) resolve(ctx context.Context) error {
	for uid, e := range p.queue.unresolved {
		intent := batchv1alpha1.Intent{Kind: string(e.Kind), Name: e.Name, UID: e.UID, ResourceVersion: e.Version()}
		if err := p.touch(ctx, intent); err != nil {
			return fmt.Errorf("resolving a claim without an answer: %w", err)
		}
		delete(p.queue.unresolved, uid)
	}
	return nil
}
