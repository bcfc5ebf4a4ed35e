// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// searchEvery is how often something is looked for that the cache does not show. Most is shown long before.
const searchEvery = 10 * time.Second

// unseen is what was read past the cache, which does not show it. It may never: what goes while a watch is interrupted is in no
// list after that, and no event tells of its end.
type unseen struct {
	object client.Object
	// next is when to look at it again.
	next time.Time
}

// sight remembers what was read past the cache, unless the cache shows it: of that its events tell.
func (p *pass) sight(ctx context.Context, o client.Object) error {
	shown, err := p.shown(ctx, o)
	if err == nil && !shown {
		p.wait(o)
	}
	return err
}

// sightWork is sight for a Job or a pod. The picture has none that names no run, and neither has the cache.
func (p *pass) sightWork(ctx context.Context, o client.Object) error {
	if o.GetLabels()[batchv1alpha1.LabelRunUID] == "" {
		return nil
	}
	return p.sight(ctx, o)
}

// shown reports whether the cache shows it, or has: what is known of a later version comes from there.
func (p *pass) shown(ctx context.Context, o client.Object) (bool, error) {
	p.queue.mu.Lock()
	newer := p.queue.model.KnowsNewer(o.GetUID(), o.GetResourceVersion())
	p.queue.mu.Unlock()
	if newer {
		return true, nil
	}
	return has(ctx, p.Client, o)
}

// wait has something looked at again.
func (p *pass) wait(o client.Object) {
	u := unseen{object: o, next: p.now.Add(searchEvery)}
	p.queue.unseen[o.GetUID()] = u
	p.wakeAt(u.next)
}

// search looks for what the cache has not shown, until it does, and takes out of the picture what is gone.
func (p *pass) search(ctx context.Context) error {
	for uid, u := range p.queue.unseen {
		if p.now.Before(u.next) {
			p.wakeAt(u.next)
			continue
		}
		shown, err := p.shown(ctx, u.object)
		if err != nil {
			return err
		}
		if !shown {
			there, err := has(ctx, p.Live, u.object)
			if err != nil {
				return fmt.Errorf("looking for %s, which the cache does not show: %w", u.object.GetName(), err)
			}
			if there {
				p.wait(u.object)
				continue
			}
			p.gone(u.object)
		}
		delete(p.queue.unseen, uid)
	}
	return nil
}

// gone takes something out of the picture, as the event of its deletion does.
func (p *pass) gone(o client.Object) {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		p.observeRunGone(o)
	case *batchv1alpha1.DirectReservation:
		p.observeReservationGone(o)
	case *batchv1.Job:
		p.observeJobGone(o)
	case *corev1.Pod:
		p.observePodGone(o)
	}
}

// has reports whether a reader shows this very object.
func has(ctx context.Context, from client.Reader, o client.Object) (bool, error) {
	found, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return false, nil
	}
	err := from.Get(ctx, client.ObjectKeyFromObject(o), found)
	return err == nil && found.GetUID() == o.GetUID(), client.IgnoreNotFound(err)
}
