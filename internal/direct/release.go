// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// end gives the reservation back, if there may be one. It does not wait, since the client would wait too for the end of its
// answer; the process does before it ends. The name counts as in use until it is done.
func (h *hold) end() {
	if h.gone || (h.current == nil && !h.unsure) {
		h.inboxes.remove(h.key, h.inbox)
		return
	}
	h.gate.later(func() {
		defer h.inboxes.remove(h.key, h.inbox)
		ctx, cancel := context.WithTimeout(context.Background(), h.timing.call)
		defer cancel()
		if err := h.release(ctx); err != nil {
			h.Log.Error(err, "a reservation could not be released; it expires", "namespace", h.key.Namespace, "reservation", h.key.Name)
		}
	})
}

// release gives the reservation back, unless it is over or another's. It tries until it has an answer, or ctx ends.
func (h *hold) release(ctx context.Context) error {
	d := h.current
	for {
		err := h.tryRelease(ctx, d)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		d = nil // to be read
		if !apierrors.IsConflict(err) && !h.rest(ctx, h.timing.pause) {
			return err
		}
	}
}

// tryRelease releases that version, nil: the one that is read live.
func (h *hold) tryRelease(ctx context.Context, d *batchv1alpha1.DirectReservation) error {
	if d == nil {
		d = &batchv1alpha1.DirectReservation{}
		if err := h.Live.Get(ctx, h.key, d); err != nil {
			return err
		}
	}
	another := h.current != nil && h.current.UID != d.UID
	shared := h.current == nil && h.inboxes.count(h.key) > 1 // the other request knows what is its own
	if another || shared || !h.ours(d) || d.Status.Phase.Terminal() || d.Spec.Release {
		return nil
	}
	d = d.DeepCopy()
	d.Spec.Release = true
	if h.current != nil && !h.passed {
		delete(d.Annotations, batchv1alpha1.AnnotationPassedOn)
	}
	return h.Client.Update(ctx, d)
}

// rest pauses, and says whether ctx has not ended.
func (f *Front) rest(ctx context.Context, pause time.Duration) bool {
	timer := f.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
