// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// parallel is how many claims of a batch are on the way at once.
const parallel = 32

// ticket is one claim of a batch: an object at exactly the version that the ledger records.
type ticket struct {
	entry  admission.Entry
	object client.Object
}

// intent is what the ledger records of it.
func (t ticket) intent() batchv1alpha1.Intent {
	return batchv1alpha1.Intent{Kind: string(t.entry.Kind), Name: t.entry.Name, UID: t.entry.UID, ResourceVersion: t.entry.Version()}
}

// claim claims slots for a batch that has been entered in the ledger, each with exactly the version that the swap recorded.
func (p *pass) claim(ctx context.Context, tickets []ticket) error {
	if len(tickets) > 0 {
		p.wakeIn(again)
	}
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, t := range tickets {
		if p.assume(t) {
			group.Go(func() error { return p.take(ctx, t) })
		}
	}
	return group.Wait()
}

// write makes the claim in the object. Its times count from now, after the swap.
func (p *pass) write(t ticket) {
	now := p.Clock.Now()
	switch o := t.object.(type) {
	case *batchv1alpha1.DirectReservation:
		reservation.Grant(o, p.Self.Stamp().Epoch, now)
	case *batchv1alpha1.JobRun:
		c := run.Claim{Incarnation: p.Self.Stamp()}
		if run.Template(o).Work.HTTP != nil {
			deadline := p.HTTPDeadline(o, now)
			c.Deadline = &deadline
		} else {
			c.JobName = p.JobName(o)
		}
		c.Apply(o, now)
	}
}

// assume counts the slot, and what may live of the run's work, before the claim is sent. It reports false if the object has
// changed since the decision.
func (p *pass) assume(t ticket) bool {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	if !p.queue.model.Assume(t.entry.UID, t.entry.ResourceVersion) {
		return false
	}
	if t.entry.Kind == admission.JobRun {
		p.queue.sign(t.entry.UID, t.entry.ChainUID, own, true)
	}
	return true
}

// take sends one claim. Losing the race is normal and harmless. A claim without an answer keeps its slot until it is resolved; so
// does one that met another version, since that may be its own: the client repeats requests by itself.
func (p *pass) take(ctx context.Context, t ticket) error {
	if r, ok := t.object.(*batchv1alpha1.JobRun); ok {
		p.Work.For(r).Expect(r.UID)
	}
	p.write(t)
	err := p.Client.Status().Update(ctx, t.object)
	switch {
	case err == nil:
		p.taken(ctx, t)
		return nil
	case apierrors.IsNotFound(err):
		p.void(t, (*admission.Queue).Conflict)
		return nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		p.log.Error(err, "claim refused: the object is passed over until it changes", "kind", t.entry.Kind, "name", t.entry.Name)
		p.void(t, (*admission.Queue).Unassume)
		p.passOver(t.entry)
		return nil
	case refused(err):
		p.void(t, (*admission.Queue).Unassume)
		return fmt.Errorf("claiming %s %s: %w", t.entry.Kind, t.entry.Name, err)
	default:
		p.log.V(1).Info("claim to be resolved", "kind", t.entry.Kind, "name", t.entry.Name, "error", err.Error())
		p.queue.mu.Lock()
		p.queue.unresolved[t.entry.UID] = t
		p.queue.mu.Unlock()
		return nil
	}
}

// refused reports whether the API server has said that it did not carry out the request, whatever the object.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// void ends what this process assumed of a claim that is known not to be carried out, now or later.
func (p *pass) void(t ticket, end func(*admission.Queue, types.UID)) {
	p.queue.mu.Lock()
	end(p.queue.model, t.entry.UID)
	if t.entry.Kind == admission.JobRun {
		p.queue.sign(t.entry.UID, t.entry.ChainUID, own, false)
	}
	p.queue.mu.Unlock()
	if r, ok := t.object.(*batchv1alpha1.JobRun); ok {
		p.Work.For(r).Forget(r.UID)
	}
}

// passOver lets the others go before a version that cannot be claimed.
func (p *pass) passOver(e admission.Entry) {
	e.Waiting = false
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.queue.model.Upsert(e)
}

// taken acts on an answered claim: the picture is told, and the work begins, unless somebody has ended the run meanwhile.
func (p *pass) taken(ctx context.Context, t ticket) {
	if dr, ok := t.object.(*batchv1alpha1.DirectReservation); ok {
		p.observeReservation(dr)
		return
	}
	r, ok := t.object.(*batchv1alpha1.JobRun)
	if !ok {
		return
	}
	if !p.upsert(r, confirmedAlready) && !p.stillOurs(ctx, r) {
		p.Work.For(r).Forget(r.UID)
		return
	}
	p.tell(r)
	go p.begin(ctx, r)
}

// tell writes an Event on a run whose claim is on record.
func (p *pass) tell(r *batchv1alpha1.JobRun) {
	work := "its call is made"
	if r.Status.JobName != "" {
		work = fmt.Sprintf("Job %s is created", r.Status.JobName)
	}
	p.Recorder.Eventf(r, nil, corev1.EventTypeNormal, "Started", "Claim", "it has a slot of JobQueue %s, and %s", p.queue.key.Name, work)
}

// begin begins the work of a claimed run. An API server that is slow to create Jobs does not hold up admission.
func (d *Dispatcher) begin(ctx context.Context, r *batchv1alpha1.JobRun) {
	d.starts <- struct{}{}
	defer func() { <-d.starts }()
	if err := d.Work.For(r).Start(ctx, r); err != nil {
		// The run is Running and its work is not there: its own controller tries again, or records why it cannot be.
		log.Info("the work of a claimed run has not begun yet", "namespace", r.Namespace, "run", r.Name, "error", err.Error())
		d.holds.wake(client.ObjectKeyFromObject(r))
		return
	}
	d.MarkStarted(r.UID)
}

// stillOurs reports whether a claimed run of which a newer version is known is at work under this process, by a live read.
// If that fails it is taken to be: its work is stopped later if it must be.
func (p *pass) stillOurs(ctx context.Context, r *batchv1alpha1.JobRun) bool {
	live := &batchv1alpha1.JobRun{}
	err := p.Live.Get(ctx, client.ObjectKeyFromObject(r), live)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return live.UID == r.UID && live.Status.Phase.InProgress() && run.Epoch(live) == run.Epoch(r)
}

// resolve finds out what became of claims without an answer. Until then they keep their slots, and nothing else is claimed.
func (p *pass) resolve(ctx context.Context) error {
	for uid, t := range p.queue.unresolved {
		if err := p.touch(ctx, t.intent()); err != nil {
			return fmt.Errorf("resolving a claim without an answer: %w", err)
		}
		delete(p.queue.unresolved, uid)
	}
	return nil
}
