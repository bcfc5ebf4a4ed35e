// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// over returns the Job of a run from the cache if it is the one that this process has made and it has finished; nil otherwise.
// However old the cache is, that still holds: the API server takes no Job's end back, a Job that has ended is not sealed any
// more, and the UID is that of no other Job which had or has the name. Its pods are another matter.
func (e *Executor) over(ctx context.Context, r *batchv1alpha1.JobRun) *batchv1.Job {
	uid := e.made.job(r.UID)
	if uid == "" {
		return nil
	}
	job := &batchv1.Job{}
	err := e.Client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: Name(r)}, job)
	if err != nil || job.UID != uid || finished(job) == nil || !metav1.IsControlledBy(job, r) {
		return nil
	}
	return job
}
