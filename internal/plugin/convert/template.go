// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// What a Job does where it is silent, and the delays that it makes between its attempts.
const (
	backoffLimit     = 6
	baseDelaySeconds = 10
	maxDelaySeconds  = 600
)

const (
	// mostRetries is the highest maxRetries.
	mostRetries = 100
	// longestAttempt is the highest timeoutSeconds.
	longestAttempt = 30 * 24 * 60 * 60
)

// template makes the template of a run of that of a Job. What the run does itself is taken out of the Job's.
func (n *notes) template(from batchv1.JobTemplateSpec) *batchv1alpha1.JobRunTemplateSpec {
	job := *from.DeepCopy()
	job.Labels, job.Annotations = own(job.Labels), own(job.Annotations)
	spec := &job.Spec
	to := &batchv1alpha1.JobRunTemplateSpec{
		RetryPolicy:             n.retries(spec),
		TimeoutSeconds:          n.timeout(spec),
		TTLSecondsAfterFinished: spec.TTLSecondsAfterFinished,
		// The work of a CronJob does not mind if its controller is started anew.
		RecoveryPolicy: batchv1alpha1.RecoveryAdopt,
	}
	if ttl := spec.TTLSecondsAfterFinished; ttl != nil && *ttl > year {
		to.TTLSecondsAfterFinished = ptr.To[int32](year)
		n.add("ttlSecondsAfterFinished is at most %d: %d became that", year, *ttl)
	}
	spec.BackoffLimit, spec.TTLSecondsAfterFinished = nil, nil
	n.unsupported(spec)
	n.pods(spec)
	to.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: job}}
	return to
}

// retries are those of the Job, as retries of the run.
func (n *notes) retries(spec *batchv1.JobSpec) *batchv1alpha1.RetryPolicy {
	limit := ptr.Deref(spec.BackoffLimit, backoffLimit)
	retries := min(limit, mostRetries)
	if retries != limit && spec.BackoffLimitPerIndex == nil {
		n.add("maxRetries is at most %d: backoffLimit %d became that", mostRetries, limit)
	}
	if spec.BackoffLimitPerIndex != nil {
		retries = 0
		n.add("backoffLimitPerIndex goes on within the Job; the run itself is not retried (maxRetries 0)")
	}
	p := &batchv1alpha1.RetryPolicy{MaxRetries: &retries}
	if retries > 0 {
		p.BaseDelaySeconds, p.MaxDelaySeconds = ptr.To[int32](baseDelaySeconds), ptr.To[int32](maxDelaySeconds)
		n.add("backoffLimit became retryPolicy.maxRetries %d: each retry is a run, and a Job, of its own", retries)
	}
	return p
}

func (n *notes) timeout(spec *batchv1.JobSpec) *int64 {
	deadline := spec.ActiveDeadlineSeconds
	spec.ActiveDeadlineSeconds = nil
	if deadline == nil {
		return nil
	}
	bounded := min(max(*deadline, 1), longestAttempt)
	n.add("activeDeadlineSeconds became timeoutSeconds %d, which bounds each attempt, not all of them together", bounded)
	return &bounded
}

// unsupported takes out what a run does not let its Job say.
func (n *notes) unsupported(spec *batchv1.JobSpec) {
	if ptr.Deref(spec.Suspend, false) {
		n.add("suspend in jobTemplate has no equivalent: suspend the ScheduledJob, or its queue")
	}
	if manager := ptr.Deref(spec.ManagedBy, batchv1.JobControllerName); manager != batchv1.JobControllerName {
		n.add("managedBy %s has no equivalent: the Job controller runs the Job", manager)
	}
	if spec.Selector != nil || ptr.Deref(spec.ManualSelector, false) {
		n.add("selector and manualSelector have no equivalent: the pods of a run are found by its UID")
	}
	if policy := ptr.Deref(spec.PodReplacementPolicy, batchv1.Failed); policy != batchv1.Failed {
		n.add("podReplacementPolicy %s has no equivalent: no pod is replaced before it has ended", policy)
	}
	spec.Suspend, spec.ManagedBy, spec.Selector, spec.ManualSelector, spec.PodReplacementPolicy = nil, nil, nil, nil, nil
}

// pods sees to the pods of a Job.
func (n *notes) pods(spec *batchv1.JobSpec) {
	if parallel := ptr.Deref(spec.Parallelism, 1); parallel > 1 || ptr.Deref(spec.Completions, 1) > 1 {
		n.add("parallelism %d: all pods of the Job share one slot of the queue, and a retry begins with all of them anew", parallel)
	}
	pod := &spec.Template.Spec
	if pod.RestartPolicy == corev1.RestartPolicyOnFailure {
		n.add("restartPolicy OnFailure became Never: a container that fails is not started again in its pod; the run is retried")
		pod.RestartPolicy = corev1.RestartPolicyNever
	}
	undefault(pod)
}

// undefault leaves out what the API server fills in, so that what is printed is about what was written.
func undefault(pod *corev1.PodSpec) {
	if pod.DNSPolicy == corev1.DNSClusterFirst {
		pod.DNSPolicy = ""
	}
	if pod.SchedulerName == corev1.DefaultSchedulerName {
		pod.SchedulerName = ""
	}
	if ptr.Deref(pod.TerminationGracePeriodSeconds, 0) == corev1.DefaultTerminationGracePeriodSeconds {
		pod.TerminationGracePeriodSeconds = nil
	}
	if pod.DeprecatedServiceAccount == pod.ServiceAccountName {
		pod.DeprecatedServiceAccount = ""
	}
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			if containers[i].ImagePullPolicy == usualPull(containers[i].Image) {
				containers[i].ImagePullPolicy = ""
			}
			if containers[i].TerminationMessagePath == corev1.TerminationMessagePathDefault {
				containers[i].TerminationMessagePath = ""
			}
			if containers[i].TerminationMessagePolicy == corev1.TerminationMessageReadFile {
				containers[i].TerminationMessagePolicy = ""
			}
		}
	}
}

// usualPull is when an image is pulled if the container does not say.
func usualPull(image string) corev1.PullPolicy {
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if strings.Contains(image, "@") || tagged && tag != "latest" {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}
