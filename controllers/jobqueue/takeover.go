// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// touch makes sure that a claim with the version of the intent can no longer land: either the object has another version, or
// it gets one now. A claim of our own that has landed is acted upon.
func (p *pass) touch(ctx context.Context, intent batchv1alpha1.Intent) error {
	if admission.Kind(intent.Kind) == admission.DirectReservation {
		return p.touchReservation(ctx, intent)
	}
	r := &batchv1alpha1.JobRun{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.queue.key.Namespace, Name: intent.Name}, r)
	switch {
	case apierrors.IsNotFound(err) || (err == nil && r.UID != intent.UID):
		p.settled(intent.UID)
		return nil
	case err != nil:
		return fmt.Errorf("reading run %s of a left-over intent: %w", intent.Name, err)
	case p.landed(r):
		p.taken(ctx, ticket{entry: p.queue.unresolved[r.UID].entry, object: r})
		return nil
	case r.ResourceVersion == intent.ResourceVersion:
		run.Fence(r, p.Self.Stamp().Epoch)
		if err := p.Client.Status().Update(ctx, r); err != nil {
			return fmt.Errorf("fencing run %s: %w", r.Name, err)
		}
	}
	p.settled(intent.UID)
	p.observeRun(r)
	return p.sight(ctx, r)
}

func (p *pass) touchReservation(ctx context.Context, intent batchv1alpha1.Intent) error {
	dr := &batchv1alpha1.DirectReservation{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.queue.key.Namespace, Name: intent.Name}, dr)
	switch {
	case apierrors.IsNotFound(err) || (err == nil && dr.UID != intent.UID):
		p.settled(intent.UID)
		return nil
	case err != nil:
		return fmt.Errorf("reading reservation %s of a left-over intent: %w", intent.Name, err)
	case dr.ResourceVersion == intent.ResourceVersion:
		reservation.Fence(dr, p.Self.Stamp().Epoch)
		if err := p.Client.Status().Update(ctx, dr); err != nil {
			return fmt.Errorf("fencing reservation %s: %w", dr.Name, err)
		}
	}
	p.settled(intent.UID)
	p.observeReservation(dr)
	return p.sight(ctx, dr)
}

// landed reports whether the run is Running by a claim of this process that was not answered.
func (p *pass) landed(r *batchv1alpha1.JobRun) bool {
	_, unanswered := p.queue.unresolved[r.UID]
	return unanswered && r.Status.Phase == batchv1alpha1.JobRunRunning && r.Status.Incarnation != nil && r.Status.Incarnation.ID == p.Self.Stamp().ID
}

// settled ends what this process assumed of a claim of its own that cannot land any more. Of an intent that an earlier
// manager left it has assumed nothing.
func (p *pass) settled(uid types.UID) {
	if t, ours := p.queue.unresolved[uid]; ours {
		p.void(t, (*admission.Queue).Conflict)
	}
}

// pageSize of live lists.
const pageSize = 500

// listHolders reads, past the cache, everything that holds a slot of the queue.
func (p *pass) listHolders(ctx context.Context) error {
	defer p.queue.listing()()
	ofQueue := client.MatchingLabels{batchv1alpha1.LabelQueue: p.queue.key.Name}
	for _, what := range []struct {
		list  client.ObjectList
		which client.ListOption
	}{
		{&batchv1alpha1.JobRunList{}, client.MatchingFields{"status.slot": string(batchv1alpha1.SlotHeld)}},
		{&batchv1alpha1.DirectReservationList{}, client.MatchingFields{"status.phase": string(batchv1alpha1.ReservationGranted)}},
		{&batchv1.JobList{}, ofQueue},
		{&corev1.PodList{}, ofQueue},
	} {
		if err := p.listPages(ctx, what.list, what.which); err != nil {
			return fmt.Errorf("listing what holds slots of queue %s: %w", p.queue.key, err)
		}
	}
	return nil
}

func (p *pass) listPages(ctx context.Context, list client.ObjectList, which client.ListOption) error {
	for more := ""; ; {
		err := p.Live.List(ctx, list, client.InNamespace(p.queue.key.Namespace), which, client.Limit(pageSize), client.Continue(more))
		if err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error { return p.seeHolder(ctx, o) }); err != nil {
			return err
		}
		if more = list.GetContinue(); more == "" {
			return nil
		}
	}
}

// seeHolder puts something that holds a slot into the picture. What is of another queue of the namespace is left out.
func (p *pass) seeHolder(ctx context.Context, o runtime.Object) error {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		p.Self.Check("run "+o.Name, run.Epoch(o))
		if run.Queue(o) == p.queue.key.Name {
			p.observeRun(o)
			return p.sight(ctx, o)
		}
	case *batchv1alpha1.DirectReservation:
		p.Self.Check("reservation "+o.Name, o.Status.Epoch)
		if reservation.Queue(o) == p.queue.key.Name {
			p.observeReservation(o)
			return p.sight(ctx, o)
		}
	case *batchv1.Job:
		p.listedJob(o)
		return p.sightWork(ctx, o)
	case *corev1.Pod:
		p.listedPod(o)
		return p.sightWork(ctx, o)
	}
	return nil
}
