// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
)

// What scenarios are made of.

// called names an object.
func called(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// queue is the queue of the scenario, with its limit.
func (h *history) queue(change ...func(*batchv1alpha1.JobQueue)) *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{ObjectMeta: called("default")}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &h.limit}
	for _, c := range change {
		c(q)
	}
	return q
}

// retries is a policy with the shortest back-off.
func retries(n int32) *batchv1alpha1.RetryPolicy {
	return &batchv1alpha1.RetryPolicy{MaxRetries: &n, BaseDelaySeconds: ptr.To[int32](1)}
}

type template = batchv1alpha1.JobRunTemplateSpec

// calls is work over HTTP that fails as often as that, and then succeeds.
func (h *history) calls(fails int, change ...func(*template)) template {
	return h.http(fmt.Sprintf("/ok/now?fails=%d", fails), change...)
}

// holds is work over HTTP that goes on until the gate is opened.
func (h *history) holds(gate string, change ...func(*template)) template {
	return h.http("/hold/"+gate, change...)
}

func (h *history) http(path string, change ...func(*template)) template {
	t := template{RetryPolicy: retries(4)}
	t.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: works.URL + "/" + h.ns + path}}
	for _, c := range change {
		c(&t)
	}
	return t
}

// pods is work in a pod that runs for as long as fakekubelet.AnnotationRunsFor says, and then ends with the exit code.
func (h *history) pods(runsFor, exitCode string, change ...func(*template)) template {
	t := template{RetryPolicy: retries(4)}
	t.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			fakekubelet.AnnotationRunsFor: runsFor, fakekubelet.AnnotationExitCode: exitCode,
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/work"}}},
	}}}}}
	for _, c := range change {
		c(&t)
	}
	return t
}

// retried sets how often it is retried.
func retried(n int32) func(*template) { return func(t *template) { t.RetryPolicy = retries(n) } }

// adopting keeps work that is alive at a restart.
func adopting(t *template) { t.RecoveryPolicy = batchv1alpha1.RecoveryAdopt }

// run1 is a run of the work.
func run1(name string, t template) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: called(name)}
	r.Spec.JobRunTemplateSpec = t
	return r
}

// three are three runs alike, named a, b and c.
func three(t template) []client.Object {
	var all []client.Object
	for _, name := range abc {
		all = append(all, run1(name, *t.DeepCopy()))
	}
	return all
}

var abc = []string{"a", "b", "c"}
