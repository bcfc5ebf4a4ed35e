// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// recheckAfter is how soon work that is to end is looked at again, in case the events of its pods do not reach the run.
const recheckAfter = 10 * time.Second

// Sight is what was read of a run's work, live but for the end of a Job: the Job first, so that a pod it had made by then is
// among the pods.
type Sight struct {
	// Job of the run; nil if there is none.
	Job *batchv1.Job
	// Pods that carry the run's UID.
	Pods []corev1.Pod
	// Closed says that no Job can come into being for the run any more, although there is none.
	Closed bool
}

// Judge tells what a sight proves about the work of a run.
func Judge(r *batchv1alpha1.JobRun, s Sight) executor.Evidence {
	live := livePods(s.Pods)
	switch {
	case s.Job == nil:
		return absent(s, live)
	case finished(s.Job) != nil:
		return ended(r, s, live)
	case JobConfirmedStopped(s.Job):
		return confirmed(s, live)
	case sealed(s.Job):
		return halted(s, live)
	default:
		e := executor.Evidence{Life: executor.Alive, Detail: describe(s.Job, live)}
		if len(live) == 0 {
			e.EndedAt = lastEnd(s.Pods)
		}
		return e
	}
}

// absent judges work without a Job. Nothing to be seen is not yet the end of it: a creation may be on its way.
func absent(s Sight, live []*corev1.Pod) executor.Evidence {
	switch {
	case len(live) > 0:
		return executor.Evidence{Life: executor.Alive, Confirmable: s.Closed, Due: due(live), Detail: "the Job is gone; " + list(live), RecheckAfter: recheckAfter}
	case len(s.Pods) > 0:
		stopped := s.Closed || anyConfirmed(s.Pods)
		return executor.Evidence{Life: executor.Unknown, Stopped: stopped, Detail: "the Job was removed; its pods have ended"}
	default:
		return executor.Evidence{Life: executor.NeverStarted, Stopped: s.Closed}
	}
}

// ended judges a finished Job. A Job that we stopped fails by it, since its pods then end with an error: such a failure is
// no outcome of the work. Success and a passed deadline are, whatever came later.
func ended(r *batchv1alpha1.JobRun, s Sight, live []*corev1.Pod) executor.Evidence {
	e := executor.Evidence{Life: executor.Ended, Stopped: len(live) == 0}
	if !e.Stopped {
		e.Confirmable, e.Due, e.Detail, e.RecheckAfter = true, due(live), list(live), recheckAfter
	}
	end := finished(s.Job)
	if sealed(s.Job) && end.Type == batchv1.JobFailed && end.Reason != batchv1.JobReasonDeadlineExceeded {
		e.Life = executor.Unknown
		e.Detail = strings.Join(append([]string{"the work was stopped"}, texts(e.Detail)...), "; ")
		return e
	}
	e.Outcome = outcome(r, s.Job, end, s.Pods)
	return e
}

// halted judges a Job that we suspended. The Job controller may make a pod until it has seen the suspension, which its
// condition tells; a placeholder was suspended from the start.
func halted(s Sight, live []*corev1.Pod) executor.Evidence {
	placeholder := s.Job.Annotations[AnnotationSealed] == SealedPlaceholder
	waits := func(why string) executor.Evidence {
		return executor.Evidence{Life: executor.Alive, Detail: why, RecheckAfter: recheckAfter}
	}
	switch {
	case len(live) > 0:
		e := waits("the work is being stopped; " + list(live))
		e.Due = due(live)
		e.Confirmable = s.Job.DeletionTimestamp == nil && (placeholder || has(s.Job, batchv1.JobSuspended))
		return e
	case s.Job.DeletionTimestamp != nil:
		return waits(fmt.Sprintf("Job %s is being deleted, which frees its name", s.Job.Name))
	case !placeholder && !has(s.Job, batchv1.JobSuspended):
		return waits(fmt.Sprintf("Job %s is to be suspended; the Job controller has not confirmed it", s.Job.Name))
	case placeholder && len(s.Pods) == 0:
		return executor.Evidence{Life: executor.NeverStarted, Stopped: true}
	default:
		return executor.Evidence{Life: executor.Unknown, Stopped: true, Detail: "the work was stopped"}
	}
}

// confirmed judges a Job that a person says is gone, whatever can be seen of it. Its pods count for themselves.
func confirmed(s Sight, live []*corev1.Pod) executor.Evidence {
	if len(live) > 0 {
		return executor.Evidence{Life: executor.Alive, Confirmable: true, Due: due(live), Detail: list(live), RecheckAfter: recheckAfter}
	}
	return executor.Evidence{
		Life: executor.Unknown, Stopped: true,
		Detail: fmt.Sprintf("a person has confirmed that nothing of Job %s lives", s.Job.Name),
	}
}

// resumed judges a Job that a person has resumed and that is suspended once more. Its condition Suspended may still be that of
// the time before, while the Job controller is about to make pods: for the time being it confirms nothing.
func resumed(job *batchv1.Job) executor.Evidence {
	return executor.Evidence{
		Life: executor.Alive, RecheckAfter: recheckAfter,
		Detail: fmt.Sprintf("Job %s was resumed by somebody and is suspended once more; the Job controller may not have seen it", job.Name),
	}
}

// finished returns the condition that ended the Job, or nil. The Job controller writes it only when no pod is left to end.
func finished(job *batchv1.Job) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		c := &job.Status.Conditions[i]
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func has(job *batchv1.Job, t batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// sealed reports whether we suspended the Job for good. One that a person suspended may go on.
func sealed(job *batchv1.Job) bool {
	return job.Annotations[AnnotationSealed] != "" && ptr.Deref(job.Spec.Suspend, false)
}

// MayGetPods reports whether the Job may get pods. One that has finished, or that was stopped by us and knows it, gets none; those
// it had count themselves.
func MayGetPods(job *batchv1.Job) bool {
	if JobConfirmedStopped(job) {
		return false
	}
	how := job.Annotations[AnnotationSealed]
	for _, c := range job.Status.Conditions {
		over := c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed || (c.Type == batchv1.JobSuspended && how != "")
		if over && c.Status == corev1.ConditionTrue {
			return false
		}
	}
	return how != SealedPlaceholder
}

// JobConfirmedStopped reports whether a person's word counts that nothing of the Job lives. It does not for a Job that goes
// on and belongs to its run: that one makes pods as it likes, and to end it the run is cancelled.
func JobConfirmedStopped(job *batchv1.Job) bool {
	goesOn := !sealed(job) && job.DeletionTimestamp == nil && metav1.GetControllerOf(job) != nil
	return confirmedStopped(job) && !goesOn
}

// anyConfirmed: a person who speaks for a pod of a run speaks for the run.
func anyConfirmed(pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return confirmedStopped(&p) })
}

// confirmedStopped reports whether a person has confirmed, by the annotation on a Job or pod of a run, that nothing of it
// lives. The value has to be the UID of that run: what is copied onto another confirms nothing.
func confirmedStopped(o metav1.Object) bool {
	uid := o.GetLabels()[batchv1alpha1.LabelRunUID]
	return uid != "" && o.GetAnnotations()[batchv1alpha1.AnnotationConfirmStopped] == uid
}

// Lives reports whether something of the pod may be running, or may come to run. A terminating pod lives until its
// containers have ended, but not one that no node has got: the API server binds none that is being deleted. Where its node
// never answers, a person may confirm that it does not.
func Lives(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || confirmedStopped(pod) {
		return false
	}
	return pod.DeletionTimestamp == nil || pod.Spec.NodeName != ""
}

func livePods(pods []corev1.Pod) []*corev1.Pod {
	var live []*corev1.Pod
	for i := range pods {
		if Lives(&pods[i]) {
			live = append(live, &pods[i])
		}
	}
	return live
}

func texts(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
