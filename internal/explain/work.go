// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/executor"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/run"
	"reprise.dev/reprise/internal/stale"
)

// Reasons of a run at work.
const (
	// ReasonRunning: nothing is wrong.
	ReasonRunning = "Running"
	// ReasonCancelling: its work is being stopped.
	ReasonCancelling = "Cancelling"
	// ReasonPodNotRunning: its pod cannot start: no node for it, no image, a Secret that does not exist.
	ReasonPodNotRunning = "PodNotRunning"
	// ReasonNoPod: its Job has no pod.
	ReasonNoPod = "NoPod"
	// ReasonNoJob: it has no Job.
	ReasonNoJob = "NoJob"
	// ReasonJobSuspended: somebody has suspended its Job.
	ReasonJobSuspended = "JobSuspended"
)

// podPatience is how long a Job may have no pod, or a pod not run, without that being told as what is wrong.
const podPatience = 15 * time.Second

// running explains a run at work.
func (v *View) running(a *Answer, r *batchv1alpha1.JobRun) {
	a.Since = timeOf(r.Status.StartedAt)
	a.say(ReasonRunning, "it has been running for %s", short(v.now.Sub(a.Since)))
	p := v.picture(a.Queue)
	if e, err := admission.RunEntry(r, true, true); err == nil {
		a.End = End(e, Since(r), &p.durations, v.now)
	}
	if r.Status.JobName != "" {
		v.jobAtWork(a, r)
	} else {
		v.callAtWork(a, r)
	}
	v.silent(a, r, p.queue)
	if c := holds(r, batchv1alpha1.ConditionOrphaned); c != nil {
		a.say(batchv1alpha1.ConditionOrphaned, "%s", c.Message)
		a.hint("end it, if it is not wanted: kubectl reprise cancel %s -n %s", a.Name, a.Namespace)
	}
	if run.Halted(r) != nil && r.Spec.Cancel {
		a.detail("it was asked to cancel, and its work is to be stopped in a moment")
	}
}

// callAtWork tells of a call, which is in a manager and cannot be seen from outside.
func (v *View) callAtWork(a *Answer, r *batchv1alpha1.JobRun) {
	by := "a manager"
	if i := r.Status.Incarnation; i != nil && i.Pod != nil {
		by = fmt.Sprintf("the manager in pod %s/%s", i.Pod.Namespace, i.Pod.Name)
	}
	until := ""
	if d := r.Status.Deadline; d != nil {
		until = ", until " + clock(d.Time) + " at the latest"
	}
	a.detail("its HTTP call is made by %s%s", by, until)
}

// jobAtWork tells of the Job and pods of a run, and what keeps them from running.
func (v *View) jobAtWork(a *Answer, r *batchv1alpha1.JobRun) {
	job, pods := v.job(r), v.living(r.UID)
	switch {
	case len(pods) > 0:
		a.detail("%s", v.where(r.UID))
		v.cannotStart(a, pods)
	case job != nil && v.unread("pods"):
		a.detail("its Job is %s", job.Name)
	case job != nil:
		v.podless(a, r, job)
	case !v.unread("jobs"):
		a.detail("its Job %s does not exist", r.Status.JobName)
		if v.overdueSince(a.Since) {
			a.say(ReasonNoJob, "it has been Running for %s, and has no Job: the API server may refuse it, or somebody has removed it", short(v.now.Sub(a.Since)))
			v.hintManager(a, a.Since)
		}
	}
}

// overdueSince reports whether a pod should run by now.
func (v *View) overdueSince(t time.Time) bool { return v.now.Sub(t) >= podPatience }

// podless tells why a Job has no pod that lives.
func (v *View) podless(a *Answer, r *batchv1alpha1.JobRun, job *batchv1.Job) {
	ev := jobwork.Judge(r, jobwork.Sight{Job: job, Pods: v.pods[r.UID]})
	if ev.Life == executor.Ended {
		a.detail("its work has ended as %s, which is recorded in a moment: %s", ev.Outcome.Phase, ev.Outcome.Message)
		v.hintManager(a, ended(job))
		return
	}
	a.detail("%s", ev.Detail)
	switch {
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		a.say(ReasonJobSuspended, "it has no pod, since somebody has suspended its Job %s", job.Name)
		a.hint(`resume it: kubectl patch job %s -n %s --type=merge -p '{"spec":{"suspend":false}}'`, job.Name, a.Namespace)
	case v.overdueSince(a.Since) && len(v.pods[r.UID]) == 0:
		a.say(ReasonNoPod, "it has been Running for %s, and its Job %s has no pod: a quota or an admission rule may refuse it", short(v.now.Sub(a.Since)), job.Name)
		a.hint("see why in the Events of the Job: kubectl describe job %s -n %s", job.Name, a.Namespace)
	}
}

// ended returns when a Job has ended.
func ended(job *batchv1.Job) time.Time {
	var last time.Time
	for _, c := range job.Status.Conditions {
		if c.LastTransitionTime.After(last) {
			last = c.LastTransitionTime.Time
		}
	}
	return last
}

// cannotStart tells of the first pod that does not run, if none does.
func (v *View) cannotStart(a *Answer, pods []*corev1.Pod) {
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && jobwork.WaitsFor(p) == "" {
			return
		}
	}
	p := pods[0]
	why := jobwork.WaitsFor(p)
	if starting(why) && !v.overdueSince(p.CreationTimestamp.Time) {
		return
	}
	why = cmp.Or(why, string(p.Status.Phase))
	a.say(ReasonPodNotRunning, "its pod %s does not run: %s", p.Name, why)
	a.hint("kubectl describe pod %s -n %s", p.Name, a.Namespace)
}

// starting reports whether a pod that waits for this is about to run, as a rule.
func starting(why string) bool {
	return why == "" || strings.HasPrefix(why, "ContainerCreating") || strings.HasPrefix(why, "PodInitializing")
}

// silent tells that the work gives no sign of life.
func (v *View) silent(a *Answer, r *batchv1alpha1.JobRun, queue *batchv1alpha1.JobQueue) {
	if c := holds(r, batchv1alpha1.ConditionStale); c != nil {
		a.say(batchv1alpha1.ReasonNoSignOfLife, "%s", c.Message)
		a.hint("look at its log, and end it if it hangs: kubectl reprise cancel %s -n %s", a.Name, a.Namespace)
		return
	}
	var signs stale.Signs
	for i := range v.snapshot.Leases {
		if l := &v.snapshot.Leases[i]; l.Name == r.Name && l.Spec.RenewTime != nil {
			signs.Heartbeat = l.Spec.RenewTime.Time
		}
	}
	if signs.Heartbeat.IsZero() {
		return
	}
	if verdict := stale.Decide(r, stale.Threshold(r, queue), signs, v.now); verdict.Message != "" && !verdict.Stale {
		a.detail("%s", verdict.Message)
	}
}

// stopping explains a run whose work is being stopped.
func (v *View) stopping(a *Answer, r *batchv1alpha1.JobRun) {
	a.Since = timeOf(r.Status.StartedAt)
	a.say(ReasonCancelling, "it was asked to cancel, and becomes Cancelled when its work has stopped")
	v.stop(a, r)
}

// stop tells what of the work of a run that is not wanted any more still lives.
func (v *View) stop(a *Answer, r *batchv1alpha1.JobRun) {
	if where := v.where(r.UID); where != "" {
		a.detail("%s", where)
	} else if job := v.job(r); job != nil {
		if d := jobwork.Judge(r, jobwork.Sight{Job: job, Pods: v.pods[r.UID]}).Detail; d != "" {
			a.detail("%s", d)
		}
	} else if r.Status.JobName == "" {
		v.callAtWork(a, r)
	}
	v.overdue(a, r)
}

// overdue tells that work should have stopped long ago, and what a person can do.
func (v *View) overdue(a *Answer, r *batchv1alpha1.JobRun) {
	c := meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStopConfirmed)
	if c == nil || c.Status != metav1.ConditionFalse {
		return
	}
	if a.Name == r.Name && a.Kind == admission.JobRun {
		a.Reason, a.Message = c.Reason, c.Message
	} else {
		a.detail("%s", c.Message)
	}
	a.hint("if the node is gone for good and nothing of the work lives, say so: kubectl annotate jobrun %s -n %s --overwrite %s=%s",
		r.Name, a.Namespace, batchv1alpha1.AnnotationConfirmStopped, r.UID)
}

// where tells which pods of a run live, and on which nodes. Empty if none is seen.
func (v *View) where(uid types.UID) string {
	var out []string
	for _, p := range v.living(uid) {
		out = append(out, jobwork.Sentence(p))
	}
	slices.Sort(out)
	return strings.Join(listed(out), ", ")
}

// unread reports whether objects of a kind could not be read.
func (v *View) unread(kind string) bool { return slices.Contains(v.snapshot.Unread, kind) }

func holds(r *batchv1alpha1.JobRun, kind string) *metav1.Condition {
	if c := meta.FindStatusCondition(r.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}
