// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// told is what matters of an answer.
type told struct {
	reason  string
	message string
	details []string
	hints   []string
	place   *Place
}

func of(a Answer) told { return told{a.Reason, a.Message, a.Details, a.Hints, a.Place} }

func throttled(q *batchv1alpha1.JobQueue) {
	q.Status.Conditions = []metav1.Condition{{
		Type: batchv1alpha1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: admission.CodeStartupThrottle, Message: "bit by bit",
	}}
}

func TestWhyARunDoesNotRun(t *testing.T) {
	busy, other := aRun("busy", running(-60)), aRun("other", running(-30), submitted("2"))
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: "nightly", UID: "uid-nightly", CreationTimestamp: *at(-7200)}}
	sj.Spec.Schedule = "0 * * * *"
	tick := func(r *batchv1alpha1.JobRun) {
		r.Spec.ScheduledJobRef, r.Spec.ScheduledTime = &batchv1alpha1.ObjectName{Name: "nightly"}, at(0)
	}
	naming := func(r *batchv1alpha1.JobRun) {
		r.Spec = batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "nightly"}}
	}
	failed := aRun("root", running(-60), over(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, -10, false), retriedBy("a"))
	overdue := failed.DeepCopy()
	says(batchv1alpha1.ConditionStopConfirmed, metav1.ConditionFalse, batchv1alpha1.ReasonStopOverdue, "the slot stays held: pod root-pod")(overdue)
	lost := aRun("lost", running(-60))
	const manager = "nothing has happened for 1m: see whether the manager runs and what it logs: kubectl get pods -A -l app.kubernetes.io/name=reprise"
	const confirm = "if the node is gone for good and nothing of the work lives, say so: kubectl annotate jobrun root -n ns --overwrite batch.reprise.dev/confirm-stopped=uid-root"
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		with []any
		want told
	}{
		"every slot is in use": {aRun("a", submitted("9")), []any{aQueue(2), busy, other, aPod(busy, "Running"), aRun("before", submitted("3"))}, told{
			admission.CodeLimitReached, "no slot is free: 2 runs and 0 direct reservations use the queue's limit of 2",
			[]string{"held by run busy, Running for 2m (pod busy-pod on node node-3 is Running)", "held by run other, Running for 1m30s"}, nil, &Place{2, 2},
		}},
		"the limit is 0": {aRun("a"), []any{aQueue(0)}, told{
			admission.CodeLimitReached, "the limit of the queue is 0: nothing starts", nil, []string{"raise spec.concurrency.limit of JobQueue main, which is 0"}, &Place{1, 1},
		}},
		"its type is full": {aRun("a", ofType("crawl"), submitted("9")), []any{aQueue(5, withType("crawl", 1)), aRun("busy", ofType("crawl"), running(-60)), other}, told{
			admission.CodeTypeLimitReached, `no slot of type "crawl" is free (in use: 1, limit: 1)`, []string{"held by run busy, Running for 2m"}, nil, &Place{1, 1},
		}},
		"a resource is short": {aRun("a", claiming("gpu", 2), submitted("9")), []any{aQueue(5, withResource("gpu", 2)), aRun("busy", claiming("gpu", 1), running(-60)), other}, told{
			admission.CodeResourceShort, `resource "gpu" is short (in use: 1 of 2, claimed: 2)`, []string{"held by run busy, Running for 2m, 1 of gpu"}, nil, &Place{1, 1},
		}},
		"another needs the same before it": {aRun("a", claiming("gpu", 1), submitted("9")), []any{aQueue(5, withResource("gpu", 2)), aRun("busy", claiming("gpu", 1), running(-60)), aRun("big", claiming("gpu", 2), submitted("3"))}, told{
			admission.CodeBehindOthers, `run big is before it and also needs resource "gpu"`,
			[]string{`run big waits: resource "gpu" is short (in use: 1 of 2, claimed: 2)`}, nil, &Place{2, 2},
		}},
		"a reservation is first": {aRun("a", submitted("9")), []any{aQueue(1), aReservation("shell", "5", active)}, told{
			admission.CodeReservationFirst, "direct reservations are served first: 1", []string{"reservation shell of ada is Active: it is served in its turn"}, nil, &Place{2, 2},
		}},
		"it is in back-off": {aRun("a", notBefore(360)), []any{aQueue(1)}, told{
			admission.CodeBackOff, "it is in back-off until 2026-11-20T12:06:00Z (spec.notBefore), 5m from now", nil,
			[]string{`to have it run before that: kubectl patch jobrun a -n ns --type=merge -p '{"spec":{"notBefore":"2026-11-20T12:01:00Z"}}'`}, nil,
		}},
		"the queue is suspended": {aRun("a"), []any{aQueue(1, suspended)}, told{
			admission.CodeSuspended, "the queue is suspended", nil, []string{"resume the queue: kubectl reprise resume jq/main -n ns"}, &Place{1, 1},
		}},
		"a manager has begun to lead": {aRun("a"), []any{aQueue(1, throttled)}, told{admission.CodeStartupThrottle, "bit by bit", nil, nil, &Place{1, 1}}},
		"its queue does not exist": {aRun("a", inQueue("mian")), []any{aQueue(1)}, told{
			batchv1alpha1.ReasonQueueNotFound, "JobQueue mian does not exist in namespace ns", nil, []string{"create that JobQueue, or name one that exists: main"}, nil,
		}},
		"no queue exists": {aRun("a"), nil, told{
			batchv1alpha1.ReasonQueueNotFound, "JobQueue main does not exist in namespace ns", nil, []string{"create that JobQueue: the namespace has none"}, nil,
		}},
		"the default queue is yet to be made": {aRun("a", inQueue("")), nil, told{
			batchv1alpha1.ReasonQueueNotFound, "JobQueue default does not exist in namespace ns yet: the manager creates it in a moment", nil, []string{manager}, nil,
		}},
		"it can never be admitted": {aRun("a", ofType("odd")), []any{aQueue(1, withType("crawl", 1))}, told{
			admission.CodeUnknownType, `the queue lists types, and "odd" is none of them`, nil,
			[]string{"change spec.concurrency of JobQueue main, or delete this and create it anew with what the queue has"}, nil,
		}},
		"nothing of its type starts": {aRun("a", ofType("crawl")), []any{aQueue(1, withType("crawl", 0))}, told{
			admission.CodeTypeLimitReached, `the limit of type "crawl" is 0: nothing of it starts`, nil,
			[]string{"raise spec.concurrency.types[name=crawl].limit of JobQueue main, which is 0"}, nil,
		}},
		"its predecessor's work has not stopped": {aRun("a", childOf("root")), []any{aQueue(5), failed, aJob(failed), aPod(failed, "Running", terminating)}, told{
			admission.CodePredecessor, "work of the same chain has not stopped: run root holds a slot",
			[]string{"held by run root, which is Failed and whose work has not stopped (pod root-pod on node node-3 is terminating since 2026-11-20T12:00:00Z)"}, nil, nil,
		}},
		"its predecessor's work should have stopped long ago": {aRun("a", childOf("root")), []any{aQueue(5), overdue, aPod(failed, "Running", terminating)}, told{
			admission.CodePredecessor, "work of the same chain has not stopped: run root holds a slot",
			[]string{"held by run root, which is Failed and whose work has not stopped (pod root-pod on node node-3 is terminating since 2026-11-20T12:00:00Z)", "the slot stays held: pod root-pod"},
			[]string{confirm}, nil,
		}},
		"the work of a predecessor that is gone has not stopped": {aRun("a", childOf("lost")), []any{aQueue(5), aPod(lost, "Running")}, told{
			admission.CodePredecessor, "work of the same chain has not stopped: run uid-lost holds a slot",
			[]string{"held by run lost, which was deleted while its work lives (pod lost-pod on node node-3 is Running)"}, nil, nil,
		}},
		"its schedule has not recorded it": {aRun("a", tick), []any{aQueue(5), sj}, told{
			admission.CodeUnconfirmed, "ScheduledJob nightly, which created it, has not recorded it yet", nil, []string{manager}, nil,
		}},
		"its parent was retried by another": {aRun("a", childOf("root")), []any{aQueue(5), aRun("root", running(-60), over(batchv1alpha1.JobRunFailed, "WorkFailed", -10, true), retriedBy("b"))}, told{
			batchv1alpha1.ReasonSuperseded, "it is never executed, and is to become Skipped: run root was retried by b with UID uid-b", nil, nil, nil,
		}},
		"its owner is gone": {aRun("a", ownedBy("ScheduledJob", "gone")), []any{aQueue(5)}, told{
			batchv1alpha1.ReasonOwnerNotFound, "its owner, ScheduledJob gone with UID uid-gone, does not exist", nil,
			[]string{"if it comes from a backup, it may have run already: create a new run in its place, or remove metadata.ownerReferences to let this one run"}, nil,
		}},
		"what it names does not exist": {aRun("a", naming), []any{aQueue(5)}, told{
			batchv1alpha1.ReasonScheduledJobNotFound, "ScheduledJob nightly, which it is to run, does not exist", nil, []string{"create that ScheduledJob, or delete the run"}, nil,
		}},
		"what it names is yet to be looked up": {aRun("a", naming), []any{aQueue(5), sj}, told{
			ReasonUnresolved, "what it names is looked up in a moment", nil, []string{manager}, nil,
		}},
		"what it is to retry does not exist": {aRun("a", func(r *batchv1alpha1.JobRun) { r.Spec = batchv1alpha1.JobRunSpec{RetryOf: "b"} }), []any{aQueue(5)}, told{
			batchv1alpha1.ReasonRetryTargetNotFound, "run b, which it is to retry, does not exist", nil, []string{"delete it and retry a run that exists: kubectl reprise retry RUN"}, nil,
		}},
		"it was cancelled": {aRun("a", cancelled), []any{aQueue(5)}, told{
			batchv1alpha1.ReasonCancelled, "it is to become Cancelled in a moment: cancelled by request", nil, []string{manager}, nil,
		}},
		"it is being deleted": {aRun("a", func(r *batchv1alpha1.JobRun) { r.DeletionTimestamp = at(1) }), []any{aQueue(5)}, told{
			ReasonBeingDeleted, "it is being deleted, and is not admitted any more", nil, nil, nil,
		}},
		"nothing is in the way": {aRun("a", notBefore(50)), []any{aQueue(5)}, told{
			admission.CodeNextInTurn, "nothing stands in its way: its queue admits it in a moment", nil, nil, &Place{1, 1},
		}},
		"nothing is in the way, and nothing happens": {aRun("a"), []any{aQueue(5)}, told{
			admission.CodeNextInTurn, "nothing stands in its way: its queue admits it in a moment", nil, []string{manager}, &Place{1, 1},
		}},
		"others are before it": {aRun("a", submitted("9")), []any{aQueue(1), aRun("b", submitted("4")), aRun("c", submitted("5"))}, told{
			admission.CodeNextInTurn, "nothing stands in its way but the 2 before it", nil, nil, &Place{3, 3},
		}},
		"not everything could be read": {aRun("a", notBefore(50)), []any{aQueue(5), "pods", "jobs"}, told{
			admission.CodeNextInTurn, "nothing stands in its way: its queue admits it in a moment", []string{"not everything could be read, and is missing here: pods, jobs"}, nil, &Place{1, 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, ok := New(seen(append([]any{c.run}, c.with...)...), at(60).Time).Run("a")
			g.Expect(ok).To(BeTrue())
			g.Expect(of(a)).To(Equal(c.want))
			g.Expect(a.Phase).To(Equal("Queued"))
			g.Expect(a.Waits).To(Equal(c.run.DeletionTimestamp == nil && !c.run.Spec.Cancel))
		})
	}
}

func TestWhatIsNotThereIsNotExplained(t *testing.T) {
	g := NewWithT(t)
	v := New(seen(aQueue(1)), noon)
	_, ok := v.Run("a")
	g.Expect(ok).To(BeFalse())
	_, ok = v.Reservation("a")
	g.Expect(ok).To(BeFalse())
	_, ok = v.Queue("other", 10)
	g.Expect(ok).To(BeFalse())
}

func TestAboutWhenARunStartsIsToldByWhatRecentOnesTook(t *testing.T) {
	g := NewWithT(t)
	objects := []any{aQueue(1), aRun("busy", running(0)), aRun("a", submitted("2")), aRun("b", submitted("3"))}
	for i, name := range []string{"x", "y", "z"} {
		objects = append(objects, aRun(name, running(-1000+i), over(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, -880+i, true)))
	}
	v := New(seen(objects...), at(60).Time)
	a, _ := v.Run("a")
	b, _ := v.Run("b")
	busy, _ := v.Run("busy")
	g.Expect([]time.Time{busy.End, a.Start, b.Start}).To(Equal([]time.Time{at(120).Time, at(120).Time, at(240).Time}))

	v = New(seen(objects...), at(500).Time)
	a, _ = v.Run("a")
	busy, _ = v.Run("busy")
	g.Expect(a.Start).To(BeZero(), "the one before it has lasted longer than any")
	g.Expect(busy.End).To(BeZero())
}

func TestWhyAReservationIsNotGranted(t *testing.T) {
	busy := aRun("busy", running(-60))
	typed := func(d *batchv1alpha1.DirectReservation) { d.Spec.Type = "odd" }
	for name, c := range map[string]struct {
		reservation *batchv1alpha1.DirectReservation
		with        []any
		want        told
	}{
		"it is next, and no slot is free": {aReservation("a", "5", active), []any{aQueue(1), busy}, told{
			admission.CodeLimitReached, "no slot is free: 1 runs and 0 direct reservations use the queue's limit of 1",
			[]string{"held by run busy, Running for 2m", "it gives up at 2026-11-20T12:10:05Z, in 9m5s"}, nil, &Place{1, 1},
		}},
		"another is before it": {aReservation("a", "5"), []any{aQueue(1), busy, aReservation("b", "4", active)}, told{
			admission.CodeReservationFirst, "1 direct reservations are before it, and the limit of the queue is 1",
			[]string{"reservation b of ada is Active: no slot is free: 1 runs and 0 direct reservations use the queue's limit of 1"}, nil, &Place{2, 2},
		}},
		"it does not fit": {aReservation("a", "5", typed), []any{aQueue(1, withType("crawl", 1))}, told{
			admission.CodeUnknownType, `the queue lists types, and "odd" is none of them`, nil,
			[]string{"change spec.concurrency of JobQueue main, or delete this and create it anew with what the queue has"}, nil,
		}},
		"its queue does not exist": {aReservation("a", "5"), nil, told{
			batchv1alpha1.ReasonQueueNotFound, "JobQueue main does not exist in namespace ns", nil, []string{"create that JobQueue: the namespace has none"}, nil,
		}},
		"it is granted": {aReservation("a", "5", granted), []any{aQueue(1)}, told{
			batchv1alpha1.ReasonGranted, "it holds a slot", []string{"its holder is ada", "it expires at 2026-11-20T12:01:10Z, in 10s, unless it is renewed"}, nil, nil,
		}},
		"it is over": {aReservation("a", "5", granted, func(d *batchv1alpha1.DirectReservation) {
			d.Status.Phase, d.Status.Reason, d.Status.Message, d.Status.FinishedAt = batchv1alpha1.ReservationExpired, batchv1alpha1.ReasonLeaseExpired, "not renewed", at(70)
		}), nil, told{batchv1alpha1.ReasonLeaseExpired, "not renewed", nil, nil, nil}},
		"it was released": {aReservation("a", "5", granted, func(d *batchv1alpha1.DirectReservation) { d.Spec.Release = true }), nil, told{
			batchv1alpha1.ReasonReleased, "its holder has released it, and it is Released in a moment", nil,
			[]string{"nothing has happened for 1m: see whether the manager runs and what it logs: kubectl get pods -A -l app.kubernetes.io/name=reprise"}, nil,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a, ok := New(seen(append([]any{c.reservation}, c.with...)...), at(60).Time).Reservation("a")
			g.Expect(ok).To(BeTrue())
			g.Expect(of(a)).To(Equal(c.want))
		})
	}
}

func TestTheLedgerTellsWhoseTurnItIs(t *testing.T) {
	g := NewWithT(t)
	q := aQueue(2)
	q.Spec.Direct = &batchv1alpha1.QueueDirect{MaxConsecutive: ptr.To[int32](1)}
	s := seen(q, aRun("a"), aReservation("shell", "2", active))
	a, _ := New(s, noon).Run("a")
	g.Expect(a.Reason).To(Equal(admission.CodeReservationFirst))
	ledger := batchv1alpha1.QueueLedger{ObjectMeta: metav1.ObjectMeta{Name: "main"}}
	ledger.Spec.DirectInRow = 1
	s.Ledgers = []batchv1alpha1.QueueLedger{ledger}
	a, _ = New(s, noon).Run("a")
	g.Expect(a.Reason).To(Equal(admission.CodeNextInTurn))
	g.Expect(a.Place).To(Equal(&Place{1, 2}))
}
