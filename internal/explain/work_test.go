// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func suspendedJob(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }

func completed(j *batchv1.Job) {
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True", LastTransitionTime: *at(55)}}
}

func TestWhatARunIsDoing(t *testing.T) {
	a := aRun("a", running(0))
	call := aRun("a", calling, running(0))
	stopping := aRun("a", cancelling(0))
	held := aRun("a", running(0), over(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, 20, false), retriedBy("a-r1"))
	const callBy = "its HTTP call is made by the manager in pod reprise-system/manager-0, until 2026-11-20T12:10:00Z at the latest"
	const confirm = "if the node is gone for good and nothing of the work lives, say so: kubectl annotate jobrun a -n ns --overwrite batch.reprise.dev/confirm-stopped=uid-a"
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		with []any
		want told
	}{
		"its pod runs": {a, []any{aJob(a), aPod(a, "Running")}, told{
			ReasonRunning, "it has been running for 1m", []string{"pod a-pod on node node-3 is Running"}, nil, nil,
		}},
		"its image cannot be pulled": {a, []any{aJob(a), aPod(a, "Pending", waitingFor("ImagePullBackOff", "no such image"))}, told{
			ReasonPodNotRunning, "its pod a-pod does not run: ImagePullBackOff: no such image",
			[]string{"pod a-pod on node node-3 is Pending: ImagePullBackOff: no such image"}, []string{"kubectl describe pod a-pod -n ns"}, nil,
		}},
		"no node has room": {a, []any{aJob(a), aPod(a, "Pending", unschedulable)}, told{
			ReasonPodNotRunning, "its pod a-pod does not run: Unschedulable: 0/3 nodes are available",
			[]string{"pod a-pod is Pending: Unschedulable: 0/3 nodes are available"}, []string{"kubectl describe pod a-pod -n ns"}, nil,
		}},
		"its pod is Pending for long": {a, []any{aJob(a), aPod(a, "Pending")}, told{
			ReasonPodNotRunning, "its pod a-pod does not run: Pending", []string{"pod a-pod on node node-3 is Pending"}, []string{"kubectl describe pod a-pod -n ns"}, nil,
		}},
		"its Job gets no pod": {a, []any{aJob(a)}, told{
			ReasonNoPod, "it has been Running for 1m, and its Job a-job has no pod: a quota or an admission rule may refuse it",
			[]string{"Job a-job has no live pod yet"}, []string{"see why in the Events of the Job: kubectl describe job a-job -n ns"}, nil,
		}},
		"the pods cannot be read": {a, []any{aJob(a), "pods"}, told{
			ReasonRunning, "it has been running for 1m", []string{"its Job is a-job", "not everything could be read, and is missing here: pods"}, nil, nil,
		}},
		"the Jobs cannot be read": {a, []any{"jobs"}, told{
			ReasonRunning, "it has been running for 1m", []string{"not everything could be read, and is missing here: jobs"}, nil, nil,
		}},
		"somebody has suspended its Job": {a, []any{aJob(a, suspendedJob)}, told{
			ReasonJobSuspended, "it has no pod, since somebody has suspended its Job a-job", []string{"Job a-job is suspended, though not by Reprise"},
			[]string{`resume it: kubectl patch job a-job -n ns --type=merge -p '{"spec":{"suspend":false}}'`}, nil,
		}},
		"it has no Job": {a, nil, told{
			ReasonNoJob, "it has been Running for 1m, and has no Job: the API server may refuse it, or somebody has removed it", []string{"its Job a-job does not exist"},
			[]string{"nothing has happened for 1m: see whether the manager runs and what it logs: kubectl get pods -A -l app.kubernetes.io/name=reprise"}, nil,
		}},
		"its outcome is about to be recorded": {a, []any{aJob(a, completed)}, told{
			ReasonRunning, "it has been running for 1m", []string{"its work has ended as Completed, which is recorded in a moment: Job a-job completed"}, nil, nil,
		}},
		"it is a call": {call, nil, told{ReasonRunning, "it has been running for 1m", []string{callBy}, nil, nil}},
		"it is stale": {aRun("a", running(0), says(batchv1alpha1.ConditionStale, metav1.ConditionTrue, "NoSignOfLife", "no sign of life")), []any{aJob(a), aPod(a, "Running")}, told{
			batchv1alpha1.ReasonNoSignOfLife, "no sign of life", []string{"pod a-pod on node node-3 is Running"},
			[]string{"look at its log, and end it if it hangs: kubectl reprise cancel a -n ns"}, nil,
		}},
		"it is an orphan that nobody looks after": {aRun("a", running(0), says(batchv1alpha1.ConditionOrphaned, metav1.ConditionTrue, "Orphaned", "left as it is")), []any{aJob(a), aPod(a, "Running")}, told{
			batchv1alpha1.ConditionOrphaned, "left as it is", []string{"pod a-pod on node node-3 is Running"},
			[]string{"end it, if it is not wanted: kubectl reprise cancel a -n ns"}, nil,
		}},
		"it is being stopped": {stopping, []any{aJob(a), aPod(a, "Running", terminating)}, told{
			ReasonCancelling, "it was asked to cancel, and becomes Cancelled when its work has stopped",
			[]string{"pod a-pod on node node-3 is terminating since 2026-11-20T12:00:00Z"}, nil, nil,
		}},
		"it should have stopped long ago": {aRun("a", cancelling(0), says(batchv1alpha1.ConditionStopConfirmed, metav1.ConditionFalse, batchv1alpha1.ReasonStopOverdue, "overdue: node-3")), []any{aJob(a), aPod(a, "Running", terminating)}, told{
			batchv1alpha1.ReasonStopOverdue, "overdue: node-3", []string{"pod a-pod on node node-3 is terminating since 2026-11-20T12:00:00Z"}, []string{confirm}, nil,
		}},
		"it has failed, and its work has not stopped": {held, []any{aJob(a), aPod(a, "Running", terminating), aRun("a-r1", childOf("a"))}, told{
			batchv1alpha1.ReasonWorkFailed, "by the work", []string{
				"it ran for 20s", "it still holds its slot, since its work has not stopped",
				"pod a-pod on node node-3 is terminating since 2026-11-20T12:00:00Z", "it was retried by a-r1, which is Queued",
			}, nil, nil,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := New(seen(append([]any{c.run, aQueue(1)}, c.with...)...), at(60).Time).Run("a")
			g := NewWithT(t)
			g.Expect(ok).To(BeTrue())
			g.Expect(of(got)).To(Equal(c.want))
		})
	}
}

func TestARunThatHasJustBegunIsGivenTime(t *testing.T) {
	a := aRun("a", running(0))
	for name, with := range map[string][]any{
		"no Job yet": nil, "no pod yet": {aJob(a)}, "a pod that is being made": {aJob(a), aPod(a, "Pending")},
		"containers that are being made": {aJob(a), aPod(a, "Pending", waitingFor("ContainerCreating", ""))},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := New(seen(append([]any{a, aQueue(1)}, with...)...), at(10).Time).Run("a")
			NewWithT(t).Expect(got.Reason).To(Equal(ReasonRunning))
		})
	}
}

func TestHowARunHasEnded(t *testing.T) {
	const failed, reason = batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed
	retry := []string{"try it again: kubectl reprise retry a -n ns"}
	last := aRun("a-r1", childOf("a"), running(30), over(failed, reason, 40, true))
	last.Status.Retry = nil
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		with []any
		want told
	}{
		"it succeeded": {aRun("a", running(0), over(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 50, true)), nil, told{
			batchv1alpha1.ReasonSucceeded, "by the work", []string{"it ran for 50s"}, nil, nil,
		}},
		"it was cancelled before it began": {aRun("a", over(batchv1alpha1.JobRunCancelled, batchv1alpha1.ReasonCancelled, 50, true)), nil, told{
			batchv1alpha1.ReasonCancelled, "by the work", []string{"it never ran"}, nil, nil,
		}},
		"its retry is about to be made": {aRun("a", running(0), over(failed, reason, 20, true)), nil, told{
			reason, "by the work", []string{"it ran for 20s", "its retry is about to be created, and begins at 2026-11-20T12:00:30Z at the earliest"}, nil, nil,
		}},
		"its retry was retried": {aRun("a", running(0), over(failed, reason, 20, true), retriedBy("a-r1")), []any{
			aRun("a-r1", childOf("a"), running(30), over(failed, reason, 40, true), retriedBy("a-r2")),
			aRun("a-r2", childOf("a"), func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf, r.Spec.Attempt = "a-r1", 2 }, running(50)),
		}, told{
			reason, "by the work", []string{"it ran for 20s", "it was retried by a-r1, which is Failed", "the latest run of its chain is a-r2, which is Running"}, nil, nil,
		}},
		"it is not retried": {aRun("a", func(r *batchv1alpha1.JobRun) {
			r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}
		}, running(0), over(failed, reason, 20, true)), nil, told{
			reason, "by the work", []string{"it ran for 20s", "its chain has failed for good: WorkFailed: by the work"}, retry, nil,
		}},
		"its retry was deleted": {aRun("a", running(0), over(failed, reason, 20, true), retriedBy("a-r1")), nil, told{
			reason, "by the work", []string{"it ran for 20s", "its chain has failed for good: WorkFailed: its retry a-r1 was deleted; the failure: by the work"}, retry, nil,
		}},
		"receivers have not heard of it": {aRun("a", running(0), over(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 50, true), func(r *batchv1alpha1.JobRun) {
			r.Status.Announcements = []batchv1alpha1.Announcement{
				{Receiver: "ops", Event: "job.run.completed", State: batchv1alpha1.AnnouncementOwed, Attempts: 3, Message: "status 503"},
				{Receiver: "new", Event: "job.run.completed", State: batchv1alpha1.AnnouncementOwed},
				{Receiver: "old", Event: "job.run.completed", State: batchv1alpha1.AnnouncementAbandoned, Message: "410 Gone"},
				{Receiver: "older", Event: "job.run.completed", State: batchv1alpha1.AnnouncementAbandoned, Message: "410 Gone"},
				{Receiver: "good", Event: "job.run.completed", State: batchv1alpha1.AnnouncementDelivered},
			}
		}), nil, told{
			batchv1alpha1.ReasonSucceeded, "by the work", []string{
				"it ran for 50s", "receiver ops has not accepted job.run.completed after 3 attempts: status 503",
				"receiver old was not told of job.run.completed, which was given up: 410 Gone", "receiver older was not told of job.run.completed, which was given up: 410 Gone",
			}, []string{"have it sent again: kubectl reprise resend a -n ns"}, nil,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, ok := New(seen(append([]any{c.run, aQueue(1)}, c.with...)...), at(60).Time).Run("a")
			g.Expect(ok).To(BeTrue())
			g.Expect(of(got)).To(Equal(c.want))
			g.Expect(got.Since).To(Equal(c.run.Status.FinishedAt.Time))
		})
	}
}

func TestAHeartbeatIsToldOf(t *testing.T) {
	a := aRun("a", running(0), func(r *batchv1alpha1.JobRun) { r.Spec.StaleAfterSeconds = ptr.To[int64](300) })
	s := seen(a, aQueue(1), aJob(a), aPod(a, "Running"))
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: at(40).Time}
	s.Leases = []coordinationv1.Lease{lease}
	got, _ := New(s, at(60).Time).Run("a")
	NewWithT(t).Expect(got.Details).To(ContainElement("the last sign of life, at 2026-11-20T12:00:40Z, was a heartbeat; without another the run counts as stale after 300 s"))
}
