// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
)

var (
	second = time.Unix(1_800_000_000, 0)
	older  = epoch.New(second, 6)
	mine   = epoch.New(second, 7)
	newer  = epoch.New(second, 8)
)

const uid = "8a3c1a52-3d0c-4f57-9d35-9a4f0d3c7f11"

type runChange func(*batchv1alpha1.JobRun)

// aRun is Running under our epoch, with a Job of one container.
func aRun(changes ...runChange) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly-1", UID: uid}}
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: batchv1.JobTemplateSpec{
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}}},
	}}}
	r.Status.Phase = batchv1alpha1.JobRunRunning
	r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "m", Epoch: mine.String()}
	for _, change := range changes {
		change(r)
	}
	return r
}

func template(change func(*batchv1.JobTemplateSpec)) runChange {
	return func(r *batchv1alpha1.JobRun) { change(&r.Spec.Work.Job.Template) }
}

func skips(codes ...int32) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Spec.Work.Job.SkipExitCodes = codes }
}

type jobChange func(*batchv1.Job)

// aJob is the Job of a run as a manager of our epoch creates it.
func aJob(r *batchv1alpha1.JobRun, changes ...jobChange) *batchv1.Job {
	job := Build(r, mine)
	for _, change := range changes {
		change(job)
	}
	return job
}

func ends(t batchv1.JobConditionType, reason string) jobChange {
	return func(job *batchv1.Job) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason})
	}
}

func completed(job *batchv1.Job) { ends(batchv1.JobComplete, batchv1.JobReasonCompletionsReached)(job) }

// failedPods is a Job that failed because that many of its pods did.
func failedPods(n int32) jobChange {
	return func(job *batchv1.Job) {
		ends(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)(job)
		job.Status.Failed = n
	}
}

func sealedAs(how string) jobChange {
	return func(job *batchv1.Job) {
		job.Annotations[AnnotationSealed] = how
		job.Spec.Suspend = ptr.To(true)
	}
}

func suspensionSeen(job *batchv1.Job) { ends(batchv1.JobSuspended, "JobSuspended")(job) }

func beingDeleted(job *batchv1.Job) { job.DeletionTimestamp = &metav1.Time{Time: second} }

type podChange func(*corev1.Pod)

func aPod(name string, changes ...podChange) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.PodSpec{NodeName: "n1"}}
	pod.Status.Phase = corev1.PodRunning
	for _, change := range changes {
		change(&pod)
	}
	return pod
}

func phase(p corev1.PodPhase) podChange { return func(pod *corev1.Pod) { pod.Status.Phase = p } }

func unbound(pod *corev1.Pod) { pod.Spec.NodeName = "" }

func terminating(pod *corev1.Pod) {
	pod.DeletionTimestamp = &metav1.Time{Time: second.Add(30 * time.Second)}
	pod.DeletionGracePeriodSeconds = ptr.To[int64](30)
}

// exited adds a container that ended that many seconds in, and fails the pod if it did so with an error.
func exited(container string, code int32, reason string, at int) podChange {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, terminated(container, code, reason, at))
		switch {
		case code != 0:
			pod.Status.Phase = corev1.PodFailed
		case pod.Status.Phase == corev1.PodRunning:
			pod.Status.Phase = corev1.PodSucceeded
		}
	}
}

func terminated(container string, code int32, reason string, at int) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(second.Add(time.Duration(at) * time.Second)),
	}}}
}
