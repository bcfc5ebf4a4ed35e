// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// runChange changes a run that is built.
type runChange = func(*batchv1alpha1.JobRun)

// jobRun builds a run of one pod, whose work ends at once and well unless a change says otherwise. It is not retried, and
// its pod, once asked to end, has a second.
func (w *world) jobRun(name string, changes ...runChange) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	r.Spec.Work = jobWork()
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}
	for _, c := range changes {
		c(r)
	}
	return r
}

// jobWork is the work of one pod that may run under the restricted Pod Security Standard.
func jobWork() *batchv1alpha1.Work {
	return &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: workPod()}}}}
}

// workPod is the pod of the test image, without arguments.
func workPod() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: ptr.To[int64](1),
		AutomountServiceAccountToken:  ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "main", Image: workImage, ImagePullPolicy: corev1.PullIfNotPresent,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}}
}

func podSpec(r *batchv1alpha1.JobRun) *corev1.PodSpec {
	return &r.Spec.Work.Job.Template.Spec.Template.Spec
}

// does gives the work its arguments: see test/e2e/work.
func does(args ...string) runChange {
	return func(r *batchv1alpha1.JobRun) { podSpec(r).Containers[0].Args = args }
}

// grace is how many seconds the pod has to end when it is asked to.
func grace(seconds int64) runChange {
	return func(r *batchv1alpha1.JobRun) { podSpec(r).TerminationGracePeriodSeconds = &seconds }
}

// inQueue puts the run into a queue.
func inQueue(name string) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Spec.Queue = name }
}

// retries lets the run be retried n times, the first time after a second.
func retries(n int32) runChange {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: &n, BaseDelaySeconds: ptr.To[int32](1)}
	}
}

// within bounds an attempt.
func within(seconds int64) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Spec.TimeoutSeconds = &seconds }
}

// recovered sets the recovery policy.
func recovered(policy batchv1alpha1.RecoveryPolicy) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RecoveryPolicy = policy }
}

// skips lists the exit codes that say that there was nothing to do.
func skips(codes ...int32) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Spec.Work.Job.SkipExitCodes = codes }
}

// image makes the container one of another image.
func image(name string) runChange {
	return func(r *batchv1alpha1.JobRun) { podSpec(r).Containers[0].Image = name }
}

// memory is the container's limit.
func memory(limit string) runChange {
	return func(r *batchv1alpha1.JobRun) {
		podSpec(r).Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
}
