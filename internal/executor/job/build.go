// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/run"
)

// Environment variables that every container gets.
const (
	// EnvRun is the run: <namespace>/<name>.
	EnvRun = "REPRISE_RUN"
	// EnvAttempt is how many retries came before this run: 0 for the first attempt.
	EnvAttempt = "REPRISE_ATTEMPT"
	// EnvIdempotencyKey is the same for every attempt of a chain.
	EnvIdempotencyKey = "REPRISE_IDEMPOTENCY_KEY"
)

// AnnotationSealed on a Job says that Reprise suspended it for good, and when. It is never resumed: its name stays taken,
// so that a creation that is still on its way fails.
const AnnotationSealed = "batch.reprise.dev/sealed"

// Values of AnnotationSealed.
const (
	// SealedPlaceholder: created suspended in the place of work that never began.
	SealedPlaceholder = "placeholder"
	// SealedStopped: suspended while the work may have been going on.
	SealedStopped = "stopped"
)

// placeholderImage is never pulled: a suspended Job has no pods.
const placeholderImage = "reprise/placeholder"

// workOf returns the Job work of a run; nil if it has none, or is yet to be resolved.
func workOf(r *batchv1alpha1.JobRun) *batchv1alpha1.JobWork {
	if t := run.Template(r); t != nil && t.Work != nil {
		return t.Work.Job
	}
	return nil
}

// Build returns the Job of a run with Job work, as a manager of the epoch creates it. What the template says is kept but for
// this: one attempt is one run, so nothing is tried again within the Job (backoffLimit 0, a pod is replaced only when it has
// ended, restartPolicy Never). OnFailure, which a Job copied from elsewhere often has, becomes Never too: it would start a
// failed container again at once, beside the retry policy, and then take its exit code away together with the pod.
func Build(r *batchv1alpha1.JobRun, e epoch.Epoch) *batchv1.Job {
	t := workOf(r).Template.DeepCopy()
	job := skeleton(r, e)
	job.Labels = merged(t.Labels, labels(r))
	job.Annotations = merged(t.Annotations, job.Annotations)
	delete(job.Annotations, AnnotationSealed)
	job.Spec = t.Spec
	job.Spec.BackoffLimit = ptr.To[int32](0)
	job.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
	job.Spec.ActiveDeadlineSeconds = sooner(job.Spec.ActiveDeadlineSeconds, run.Template(r).TimeoutSeconds)

	pod := &job.Spec.Template
	pod.Labels = merged(pod.Labels, labels(r))
	if pod.Spec.RestartPolicy == "" || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever { // of others the API server has no failure policy
		job.Spec.PodFailurePolicy = telling(job.Spec.PodFailurePolicy)
	}
	env := environment(r)
	for i := range pod.Spec.InitContainers {
		setEnvironment(&pod.Spec.InitContainers[i], env)
	}
	for i := range pod.Spec.Containers {
		setEnvironment(&pod.Spec.Containers[i], env)
	}
	return job
}

// maxFailureRules is how many the API server accepts.
const maxFailureRules = 20

// telling adds rules to a failure policy by which any failed pod fails its Job. They decide nothing that backoffLimit 0 does not,
// but by them the Job's condition keeps what became of the pod: one that was deleted or evicted is gone before anybody can ask it.
func telling(theirs *batchv1.PodFailurePolicy) *batchv1.PodFailurePolicy {
	ours := []batchv1.PodFailurePolicyRule{
		{
			Action:          batchv1.PodFailurePolicyActionFailJob,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		},
		{
			Action:      batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0}},
		},
	}
	if theirs == nil {
		return &batchv1.PodFailurePolicy{Rules: ours}
	}
	if len(theirs.Rules)+len(ours) <= maxFailureRules {
		theirs.Rules = append(theirs.Rules, ours...)
	}
	return theirs
}

// Placeholder returns a suspended Job that takes the name of a run's Job. Its pod template is not the run's: that one may
// be what the API server rejects, and if somebody resumed the placeholder the work must not begin.
func Placeholder(r *batchv1alpha1.JobRun, e epoch.Epoch) *batchv1.Job {
	job := skeleton(r, e)
	job.Labels = labels(r)
	job.Spec = batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](0),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels(r)},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "placeholder", Image: placeholderImage}},
			},
		},
	}
	return suspended(job)
}

func suspended(job *batchv1.Job) *batchv1.Job {
	job.Annotations[AnnotationSealed] = SealedPlaceholder
	job.Spec.Suspend = ptr.To(true)
	return job
}

// skeleton is what a Job and its placeholder have in common. blockOwnerDeletion is false: the slot is counted from the Job
// and its pods themselves, and true would ask for the right to set finalizers on runs.
func skeleton(r *batchv1alpha1.JobRun, e epoch.Epoch) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace:   r.Namespace,
		Name:        Name(r),
		Annotations: map[string]string{batchv1alpha1.AnnotationEpoch: e.String()},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion:         batchv1alpha1.GroupVersion.String(),
			Kind:               "JobRun",
			Name:               r.Name,
			UID:                r.UID,
			Controller:         ptr.To(true),
			BlockOwnerDeletion: ptr.To(false),
		}},
	}}
}

// labels by which Jobs and pods are found and counted, also when their run is gone.
func labels(r *batchv1alpha1.JobRun) map[string]string {
	return map[string]string{
		batchv1alpha1.LabelRunUID: string(r.UID),
		batchv1alpha1.LabelRun:    labelValue(r.Name),
		batchv1alpha1.LabelChain:  string(run.ChainUID(r)),
		batchv1alpha1.LabelQueue:  run.Queue(r),
	}
}

// merged returns theirs and ours; ours win.
func merged(theirs, ours map[string]string) map[string]string {
	m := make(map[string]string, len(theirs)+len(ours))
	maps.Copy(m, theirs)
	maps.Copy(m, ours)
	return m
}

func sooner(a, b *int64) *int64 {
	if a == nil || (b != nil && *b < *a) {
		return b
	}
	return a
}

func environment(r *batchv1alpha1.JobRun) []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: EnvRun, Value: r.Namespace + "/" + r.Name},
		{Name: EnvAttempt, Value: strconv.Itoa(int(run.Attempt(r)))},
		{Name: EnvIdempotencyKey, Value: run.Chain(r).IdempotencyKey},
	}
}

// setEnvironment puts ours first, so that the template's own variables may refer to them, and drops what it calls the same.
func setEnvironment(c *corev1.Container, env []corev1.EnvVar) {
	own := slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(env, func(o corev1.EnvVar) bool { return o.Name == v.Name })
	})
	c.Env = slices.Concat(env, own)
}
