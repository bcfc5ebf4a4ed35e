// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// successor returns the retry that a run's status names, nil if there is none or it was deleted.
func successor(ctx context.Context, c client.Reader, r *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	record := r.Status.Retry
	if record == nil {
		return nil, nil
	}
	next := &batchv1alpha1.JobRun{}
	err := c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: record.Name}, next)
	switch {
	case apierrors.IsNotFound(err) || err == nil && next.UID != record.UID:
		return nil, nil
	case err != nil:
		return nil, err
	default:
		return next, nil
	}
}

// latest returns the run of the chain after which no retry exists. Whoever names an earlier one means the chain.
func latest(ctx context.Context, c client.Reader, r *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	for {
		next, err := successor(ctx, c, r)
		if err != nil || next == nil {
			return r, err
		}
		r = next
	}
}
