// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

func TestJudge(t *testing.T) {
	r := aRun()
	resumed := func(job *batchv1.Job) { job.Spec.Suspend = nil }
	for name, c := range map[string]struct {
		job     *batchv1.Job
		pods    []corev1.Pod
		closed  bool
		life    executor.Life
		stopped bool
		phase   batchv1alpha1.JobRunPhase
		detail  string
	}{
		"nothing to be seen never started, but may": {
			life: executor.NeverStarted},
		"nothing to be seen, and nothing can come any more": {
			closed: true, life: executor.NeverStarted, stopped: true},
		"pods without a Job live": {
			pods: []corev1.Pod{aPod("p", terminating)}, closed: true,
			life: executor.Alive, detail: "pod p on node n1 is terminating since 2027-01-15T08:00:00Z"},
		"ended pods without a Job prove nothing": {
			pods: []corev1.Pod{aPod("p", exited("main", 0, "Completed", 1))},
			life: executor.Unknown, detail: "the Job was removed"},
		"ended pods without a Job prove at least that nothing lives": {
			pods: []corev1.Pod{aPod("p", exited("main", 0, "Completed", 1))}, closed: true,
			life: executor.Unknown, stopped: true},

		"a Job without pods is alive: they may come at any moment": {
			job: aJob(r), life: executor.Alive, detail: "has no live pod yet"},
		"a Job with a running pod": {
			job: aJob(r), pods: []corev1.Pod{aPod("p")}, life: executor.Alive, detail: "pod p on node n1 is Running"},
		"a Job whose pod has ended is alive until the Job controller has counted it": {
			job: aJob(r), pods: []corev1.Pod{aPod("p", exited("main", 0, "Completed", 1))}, life: executor.Alive},
		"a Job about to fail is alive while its other pods end": {
			job:  aJob(r, ends(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded)),
			pods: []corev1.Pod{aPod("p", terminating)}, life: executor.Alive},
		"a Job that a person suspended may go on": {
			job: aJob(r, suspensionSeen, func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) }), life: executor.Alive, detail: "not by Reprise"},

		"a completed Job": {
			job: aJob(r, completed), pods: []corev1.Pod{aPod("p", exited("main", 0, "Completed", 1))},
			life: executor.Ended, stopped: true, phase: batchv1alpha1.JobRunCompleted},
		"a failed Job": {
			job: aJob(r, failedPods(1)), pods: []corev1.Pod{aPod("p", exited("main", 1, "Error", 1))},
			life: executor.Ended, stopped: true, phase: batchv1alpha1.JobRunFailed},
		"a finished Job with a live pod has an outcome, and its slot is still used": {
			job: aJob(r, failedPods(1)), pods: []corev1.Pod{aPod("p", exited("main", 1, "Error", 1)), aPod("q", terminating)},
			life: executor.Ended, phase: batchv1alpha1.JobRunFailed, detail: "pod q"},
		"a finished Job that is being deleted": {
			job: aJob(r, completed, beingDeleted), life: executor.Ended, stopped: true, phase: batchv1alpha1.JobRunCompleted},

		"a placeholder never started": {
			job: aJob(r, sealedAs(SealedPlaceholder)), life: executor.NeverStarted, stopped: true},
		"a placeholder beside live pods, of a Job that was removed": {
			job: aJob(r, sealedAs(SealedPlaceholder)), pods: []corev1.Pod{aPod("p", terminating)}, life: executor.Alive, detail: "pod p"},
		"a placeholder beside ended pods": {
			job: aJob(r, sealedAs(SealedPlaceholder)), pods: []corev1.Pod{aPod("p", phase(corev1.PodFailed))}, life: executor.Unknown, stopped: true},
		"a placeholder that somebody resumed": {
			job: aJob(r, sealedAs(SealedPlaceholder), resumed), life: executor.Alive},
		"a placeholder that is going leaves its name": {
			job: aJob(r, sealedAs(SealedPlaceholder), beingDeleted), life: executor.Alive, detail: "being deleted"},

		"a stopped Job with live pods": {
			job: aJob(r, sealedAs(SealedStopped), suspensionSeen), pods: []corev1.Pod{aPod("p", terminating)},
			life: executor.Alive, detail: "the work is being stopped; pod p on node n1 is terminating"},
		"a stopped Job without pods may get one until the Job controller has seen the suspension": {
			job: aJob(r, sealedAs(SealedStopped)), life: executor.Alive, detail: "not confirmed"},
		"a stopped Job": {
			job: aJob(r, sealedAs(SealedStopped), suspensionSeen), life: executor.Unknown, stopped: true, detail: "stopped"},
		"a stopped Job whose only pod was deleted before any node had it": {
			job: aJob(r, sealedAs(SealedStopped), suspensionSeen), pods: []corev1.Pod{aPod("p", phase(corev1.PodPending), unbound, terminating)},
			life: executor.Unknown, stopped: true},
		"a stopped Job that completed nevertheless": {
			job: aJob(r, sealedAs(SealedStopped), completed), life: executor.Ended, stopped: true, phase: batchv1alpha1.JobRunCompleted},
		"a stopped Job whose deadline had passed": {
			job:  aJob(r, sealedAs(SealedStopped), ends(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)),
			life: executor.Ended, stopped: true, phase: batchv1alpha1.JobRunFailed},
		"a stopped Job that failed by being stopped has no outcome": {
			job: aJob(r, sealedAs(SealedStopped), failedPods(1)), life: executor.Unknown, stopped: true, detail: "stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := Judge(r, Sight{Job: c.job, Pods: c.pods, Closed: c.closed})
			g.Expect(e.Life).To(Equal(c.life))
			g.Expect(e.Stopped).To(Equal(c.stopped))
			g.Expect(e.Detail).To(ContainSubstring(c.detail))
			if c.phase == "" {
				g.Expect(e.Outcome).To(BeNil())
			} else {
				g.Expect(e.Outcome).NotTo(BeNil())
				g.Expect(e.Outcome.Phase).To(Equal(c.phase))
			}
		})
	}
}

func TestWorkThatIsToEndIsLookedAtAgain(t *testing.T) {
	live := []corev1.Pod{aPod("p", terminating)}
	for name, s := range map[string]Sight{
		"pods without a Job":          {Pods: live},
		"a stopped Job's pods":        {Job: aJob(aRun(), sealedAs(SealedStopped)), Pods: live},
		"a suspension not yet seen":   {Job: aJob(aRun(), sealedAs(SealedStopped))},
		"a finished Job's last pods":  {Job: aJob(aRun(), completed), Pods: live},
		"a placeholder that is going": {Job: aJob(aRun(), sealedAs(SealedPlaceholder), beingDeleted)},
	} {
		if e := Judge(aRun(), s); e.Stopped || e.RecheckAfter == 0 {
			t.Errorf("%s: stopped %v, recheck after %v", name, e.Stopped, e.RecheckAfter)
		}
	}
}

func TestLives(t *testing.T) {
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"running":                   {aPod("p"), true},
		"pending":                   {aPod("p", phase(corev1.PodPending), unbound), true},
		"unknown":                   {aPod("p", phase(corev1.PodUnknown)), true},
		"running and terminating":   {aPod("p", terminating), true},
		"bound and terminating":     {aPod("p", phase(corev1.PodPending), terminating), true},
		"never bound, terminating":  {aPod("p", phase(corev1.PodPending), unbound, terminating), false},
		"succeeded":                 {aPod("p", phase(corev1.PodSucceeded)), false},
		"failed":                    {aPod("p", phase(corev1.PodFailed)), false},
		"failed and still deleting": {aPod("p", phase(corev1.PodFailed), terminating), false},
	} {
		if got := Lives(&c.pod); got != c.want {
			t.Errorf("a pod that is %s lives: %v, want %v", name, got, c.want)
		}
	}
}

func TestDetailTellsWhatAPodWaitsFor(t *testing.T) {
	waiting := func(reason, message string) podChange {
		return func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodPending
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
			}}}
		}
	}
	unschedulable := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available",
		}}
	}
	for want, pod := range map[string]corev1.Pod{
		"pod p on node n1 is Pending: ImagePullBackOff: Back-off pulling": aPod("p", waiting("ImagePullBackOff", "Back-off pulling")),
		"pod p on node n1 is Pending: ContainerCreating":                  aPod("p", waiting("ContainerCreating", "")),
		"pod p is Pending: Unschedulable: 0/3 nodes are available":        aPod("p", unbound, unschedulable),
	} {
		if got := Judge(aRun(), Sight{Job: aJob(aRun()), Pods: []corev1.Pod{pod}}).Detail; got != want {
			t.Errorf("detail = %q, want %q", got, want)
		}
	}
}

func TestDetailOfManyPodsIsBounded(t *testing.T) {
	var pods []corev1.Pod
	for range 5000 {
		pods = append(pods, aPod(strings.Repeat("p", 63)))
	}
	detail := Judge(aRun(), Sight{Job: aJob(aRun()), Pods: pods}).Detail
	if len(detail) > 1000 || !strings.Contains(detail, "and 4995 more") {
		t.Errorf("detail of %d bytes: %s", len(detail), detail)
	}
}
