// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// aRun is a Queued root, created at noon under resourceVersion 7.
func aRun(name string, with ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Generation: 3,
			CreationTimestamp: metav1.NewTime(noon),
		},
		Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{
			Queue: "slow", Type: "story",
			Work: &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://example.com/"}},
		}},
		Status: batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued},
	}
	for _, f := range with {
		f(r)
	}
	return r
}

func phase(p batchv1alpha1.JobRunPhase) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Status.Phase = p }
}

// failed ends the run five seconds after noon.
func failed(r *batchv1alpha1.JobRun) {
	r.Status.Phase, r.Status.Reason, r.Status.Message = batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, "status 500"
	r.Status.FinishedAt = ptr.To(metav1.NewTime(at(5)))
}

func because(reason string) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Status.Reason = reason }
}

func cancelAsked(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }

func maxRetries(n int32) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: &n} }
}

// attempt makes the run a retry, with that number, of the chain of run "root".
func attempt(n int32, of string) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryOf, r.Spec.Attempt = of, n
		r.Spec.Chain = &batchv1alpha1.Chain{
			RootName: "root", RootUID: "uid-root", QueuedAt: metav1.NewTime(at(-60)), Sequence: 4, IdempotencyKey: "key",
		}
	}
}

func retriedBy(name string, manual bool) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: name, UID: types.UID("uid-" + name), Manual: manual}
	}
}

// manualRetry is a run whose only content is retryOf, submitted at 90 s under resourceVersion 55.
func manualRetry(name, of string) *batchv1alpha1.JobRun {
	return aRun(name, func(r *batchv1alpha1.JobRun) {
		r.Spec = batchv1alpha1.JobRunSpec{RetryOf: of}
		r.CreationTimestamp, r.ResourceVersion = metav1.NewTime(at(90)), "55"
	})
}
