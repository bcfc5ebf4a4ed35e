// SPDX-License-Identifier: Apache-2.0

package directreservation

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/reservation"
)

// obstacle is why a reservation that waits cannot be granted as its queue is, the zero value if it can.
type obstacle struct{ reason, message string }

// obstacle looks at the queue of a reservation. The queue "default" is created by the dispatcher.
func (r *Reconciler) obstacle(ctx context.Context, dr *batchv1alpha1.DirectReservation) (obstacle, error) {
	if dr.Status.Phase == batchv1alpha1.ReservationGranted {
		return obstacle{}, nil
	}
	name := reservation.Queue(dr)
	jq := &batchv1alpha1.JobQueue{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: dr.Namespace, Name: name}, jq)
	switch {
	case apierrors.IsNotFound(err) && name == batchv1alpha1.DefaultQueue:
		return obstacle{}, nil
	case apierrors.IsNotFound(err):
		return obstacle{batchv1alpha1.ReasonQueueNotFound, fmt.Sprintf("JobQueue %s does not exist in namespace %s; the reservation waits for it", name, dr.Namespace)}, nil
	case err != nil:
		return obstacle{}, err
	}
	reason, fits := admission.Fit(admission.LimitsOf(jq), dr.Spec.Type, admission.ClaimsOf(dr.Spec.Claims))
	if fits {
		return obstacle{}, nil
	}
	return obstacle{reason.Code, reason.Message}, nil
}

// hold returns the change that makes the obstacle visible, or takes it back; nil if there is nothing to change.
func hold(dr *batchv1alpha1.DirectReservation, o obstacle, now time.Time) func(*batchv1alpha1.DirectReservation) {
	change := reservation.Unhold
	if o.reason != "" {
		change = func(d *batchv1alpha1.DirectReservation) bool { return reservation.Hold(d, o.reason, o.message, now) }
	}
	if !change(dr.DeepCopy()) {
		return nil
	}
	return func(d *batchv1alpha1.DirectReservation) { change(d) }
}
