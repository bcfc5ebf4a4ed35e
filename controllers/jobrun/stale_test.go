// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/metrics"
	"reprise.dev/reprise/internal/metrics/metricstest"
)

// startedAt is when the runs of running() were claimed.
var startedAt = noon.Add(-time.Minute)

// staleAfter gives the run a threshold of its own.
func staleAfter(n int64) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.StaleAfterSeconds = &n }
}

// watching is a queue of that name with a threshold of 300 s for the type scrape.
func watching(name string, policy batchv1alpha1.StalePolicy) *batchv1alpha1.JobQueue {
	q := queue(name)
	q.Spec.OnStale = policy
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Types: []batchv1alpha1.TypeConcurrency{{Name: "scrape", StaleAfterSeconds: ptr.To[int64](300)}}}
	return q
}

// in puts the run into the queue.
func in(queue string) change { return func(r *batchv1alpha1.JobRun) { r.Spec.Queue = queue } }

// heartbeat is the Lease that the work of a run renewed.
func heartbeat(name string, at time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
}

// beat renews it.
func (b *bench) beat(name string, at time.Time) {
	b.t.Helper()
	lease := heartbeat(name, at)
	err := b.api.Get(b.t.Context(), client.ObjectKeyFromObject(lease), &coordinationv1.Lease{})
	switch {
	case err == nil:
		err = b.api.Patch(b.t.Context(), lease, client.Merge)
	case apierrors.IsNotFound(err):
		err = b.api.Create(b.t.Context(), lease)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// after sets the clock to that long after the start of the runs.
func (b *bench) after(d time.Duration) time.Time {
	b.clock.SetTime(startedAt.Add(d))
	return b.clock.Now()
}

// said returns the condition of a run.
func (b *bench) said(name, kind string) *metav1.Condition {
	b.t.Helper()
	return meta.FindStatusCondition(b.run(name).Status.Conditions, kind)
}

// counted returns how many runs of the queue were found to be stale. Tests that count have a queue of their own.
func (b *bench) counted(queue string) int {
	b.t.Helper()
	return int(metricstest.Value(b.t, metrics.StaleRuns, "ns", queue))
}

// logged returns the lines of the log that have the message.
func (b *bench) logged(message string) (lines []string) {
	for _, l := range b.lines {
		if strings.Contains(l, `"msg"="`+message+`"`) {
			lines = append(lines, l)
		}
	}
	return lines
}

func TestARunIsLeftAloneUntilItsThresholdHasPassedAndIsThenLookedAt(t *testing.T) {
	for name, work := range map[string]change{"a Job": func(*batchv1alpha1.JobRun) {}, "a call": calling} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, watching("main", ""), jobOf(), queued("a", work, ofType("scrape"), running(mine)))
			g.Expect(b.step("a").RequeueAfter).To(Equal(241*time.Second), "the rest of 300 s, and the second of the start")
			b.after(300 * time.Second)
			g.Expect(b.step("a").RequeueAfter).To(Equal(time.Second))
			g.Expect(b.leases).To(BeZero())
			g.Expect(b.writes).To(BeZero())
		})
	}
}

func TestARunWithoutAThresholdIsNeverLookedAtForIt(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", batchv1alpha1.StaleFail), jobOf(), queued("a", running(mine)))
	b.after(1000 * time.Hour)
	g.Expect(b.step("a")).To(Equal(still))
	g.Expect(b.leases).To(BeZero())
	g.Expect(b.work.asked).To(BeEmpty())
	g.Expect(b.writes).To(BeZero())
}

func TestARunWithoutASignOfLifeIsMarkedOnceAndGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		queue string
		work  change
		asked []string
	}{
		"a Job that the cache shows at work": {"warn-job", func(*batchv1alpha1.JobRun) {}, []string{"look a"}},
		"a call":                             {"warn-call", calling, []string{"look a", "look a"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, watching(c.queue, ""), jobOf(), queued("a", c.work, in(c.queue), ofType("scrape"), running(mine)))
			b.after(301 * time.Second)
			g.Expect(b.step("a").RequeueAfter).To(Equal(time.Minute), "no event tells of a heartbeat")
			g.Expect(b.work.asked).To(Equal(c.asked), "the verdict follows a live look at the work")

			said := b.said("a", batchv1alpha1.ConditionStale)
			g.Expect(said).NotTo(BeNil())
			g.Expect(said.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(said.Reason).To(Equal(batchv1alpha1.ReasonNoSignOfLife))
			g.Expect(said.Message).To(Equal("no sign of life since 2026-11-20T11:59:00Z, which was its start; after 300 s the run counts as stale"))
			g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))

			b.after(400 * time.Second)
			g.Expect(b.step("a").RequeueAfter).To(Equal(time.Minute))
			g.Expect(b.writes).To(Equal(1), "what was said is not said again")
			g.Expect(b.events).To(Equal([]string{"a: Warning NoSignOfLife Warn: " + said.Message + " (onStale: Warn)"}))
			g.Expect(b.counted(c.queue)).To(Equal(1))
			g.Expect(b.logged("run is stale")).To(HaveLen(1))
			g.Expect(b.leases).To(Equal(2))
		})
	}
}

func TestAHeartbeatKeepsARunFromBeingStaleAndIsReadAgainWhenItIsTooOld(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", batchv1alpha1.StaleFail), jobOf(), queued("a", ofType("scrape"), running(mine)))
	b.beat("a", b.after(290*time.Second))
	b.after(301 * time.Second)
	g.Expect(b.step("a").RequeueAfter).To(Equal(289 * time.Second))
	g.Expect(b.leases).To(Equal(1))

	b.beat("a", b.after(580*time.Second))
	b.after(590 * time.Second)
	g.Expect(b.step("a").RequeueAfter).To(Equal(290 * time.Second))
	g.Expect(b.leases).To(Equal(2))
	g.Expect(b.writes).To(BeZero())
	g.Expect(b.work.asked).To(BeEmpty())
}

func TestALeaseThatWasOnlyAcquiredIsAHeartbeatToo(t *testing.T) {
	g := NewWithT(t)
	lease := heartbeat("a", startedAt.Add(290*time.Second))
	lease.Spec.AcquireTime, lease.Spec.RenewTime = lease.Spec.RenewTime, nil
	b := start(t, watching("main", ""), jobOf(), lease, queued("a", ofType("scrape"), running(mine)))
	b.after(301 * time.Second)
	g.Expect(b.step("a").RequeueAfter).To(Equal(289 * time.Second))

	lease.Spec.AcquireTime = nil
	g.Expect(b.api.Update(t.Context(), lease)).To(Succeed())
	b.step("a")
	g.Expect(meta.IsStatusConditionTrue(b.run("a").Status.Conditions, batchv1alpha1.ConditionStale)).To(BeTrue(), "a Lease that nobody renewed is none")
}

func TestAByteOfTheResponseKeepsACallFromBeingStaleWithoutAReadOfItsLease(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", batchv1alpha1.StaleFail), queued("a", calling, ofType("scrape"), running(mine)))
	b.work.look.LastSign = b.after(250 * time.Second)
	b.after(400 * time.Second)
	g.Expect(b.step("a").RequeueAfter).To(Equal(150 * time.Second))
	g.Expect(b.leases).To(BeZero())
	g.Expect(b.writes).To(BeZero())
}

func TestTheExecutorIsAskedAgainWhenItWantsToBeIfThatIsSooner(t *testing.T) {
	for _, c := range []struct{ asks, want time.Duration }{{time.Minute, time.Minute}, {time.Hour, 241 * time.Second}} {
		b := start(t, watching("main", ""), queued("a", calling, ofType("scrape"), running(mine)))
		b.work.look.RecheckAfter = c.asks
		NewWithT(t).Expect(b.step("a").RequeueAfter).To(Equal(c.want))
	}
}

func TestALaterSignOfLifeIsSaidOnceAndSilenceAfterItCountsAnew(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("anew", ""), jobOf(), queued("a", in("anew"), ofType("scrape"), running(mine)))
	b.after(301 * time.Second)
	b.step("a")
	b.beat("a", b.after(350*time.Second))
	b.after(361 * time.Second)
	g.Expect(b.step("a").RequeueAfter).To(Equal(289 * time.Second))
	said := b.said("a", batchv1alpha1.ConditionStale)
	g.Expect(said.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(said.Reason).To(Equal(batchv1alpha1.ReasonSignOfLife))
	g.Expect(said.Message).To(HavePrefix("the last sign of life, at 2026-11-20T12:04:50Z, was a heartbeat"))

	b.beat("a", b.after(400*time.Second))
	b.step("a")
	g.Expect(b.writes).To(Equal(2), "once")
	g.Expect(b.events).To(HaveLen(2))
	g.Expect(b.events[1]).To(HavePrefix("a: Normal SignOfLife Watch: the last sign of life"))
	g.Expect(b.counted("anew")).To(Equal(1))

	b.after(700 * time.Second)
	b.step("a")
	g.Expect(b.said("a", batchv1alpha1.ConditionStale).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(b.writes).To(Equal(3))
	g.Expect(b.counted("anew")).To(Equal(2))
}

func TestAStaleRunFailsIfItsQueueSaysSoAndItsRetryWaitsBehindItsSlot(t *testing.T) {
	for name, work := range map[string]change{"a Job": func(*batchv1alpha1.JobRun) {}, "a call": calling} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			of := strings.ReplaceAll(strings.ToLower(name), " ", "-")
			b := start(t, watching(of, batchv1alpha1.StaleFail), jobOf(), queued("a", work, in(of), ofType("scrape"), maxRetries(1), running(mine)))
			b.after(301 * time.Second)
			b.step("a")
			s := b.run("a").Status
			g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunFailed))
			g.Expect(s.Reason).To(Equal(batchv1alpha1.ReasonStale))
			g.Expect(s.Message).To(HavePrefix("no sign of life since 2026-11-20T11:59:00Z"))
			g.Expect(s.Slot).To(Equal(batchv1alpha1.SlotHeld), "the work may live")
			g.Expect(s.Announcements).To(HaveLen(1))
			g.Expect(b.events).To(ConsistOf(HavePrefix("a: Warning Failed Fail: Stale: no sign of life"), HavePrefix("a: Normal RetryCreated")))
			g.Expect(b.counted(of)).To(Equal(1))
			g.Expect(b.logged("run is stale")).To(HaveLen(1))

			b.work.stop = executor.Evidence{Life: executor.Alive, RecheckAfter: time.Minute}
			b.step("a")
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
			g.Expect(b.work.asked).To(ContainElement("stop a"))
			g.Expect(b.run("a-r1").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued), "its queue admits it once the slot is free")

			b.work.stop = unknownOver
			b.step("a")
			g.Expect(b.run("a").Status.Slot).To(Equal(batchv1alpha1.SlotFree))
		})
	}
}

func TestAStaleRunWithoutRetriesHasFailedForGood(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", batchv1alpha1.StaleFail), jobOf(), queued("a", staleAfter(60), maxRetries(0), running(mine)))
	b.after(61 * time.Second)
	b.step("a")
	g.Expect(meta.IsStatusConditionTrue(b.run("a").Status.Conditions, batchv1alpha1.ConditionFailed)).To(BeTrue())
	b.step("a")
	g.Expect(b.runs()).To(HaveLen(1))
}

func TestAnOutcomeThatExistsWinsOverSilence(t *testing.T) {
	for _, policy := range []batchv1alpha1.StalePolicy{batchv1alpha1.StaleWarn, batchv1alpha1.StaleFail} {
		t.Run(string(policy), func(t *testing.T) {
			g := NewWithT(t)
			of := "outcome-" + strings.ToLower(string(policy))
			b := start(t, watching(of, policy), jobOf(), queued("a", in(of), ofType("scrape"), running(mine)))
			b.work.look = over(batchv1alpha1.JobRunCompleted, true)
			b.after(301 * time.Second)
			b.step("a")
			s := b.run("a").Status
			g.Expect(s.Phase).To(Equal(batchv1alpha1.JobRunCompleted), "the cache shows a Job that is at work")
			g.Expect(meta.FindStatusCondition(s.Conditions, batchv1alpha1.ConditionStale)).To(BeNil())
			g.Expect(b.events).To(Equal([]string{"a: Normal Completed Complete: Proven: by the work"}))
			g.Expect(b.counted(of)).To(BeZero())
		})
	}
}

// speaks is work of which the second look shows a byte of its response.
type speaks struct {
	*work
	at    time.Time
	looks int
}

func (s *speaks) Look(ctx context.Context, r *batchv1alpha1.JobRun) (executor.Evidence, error) {
	ev, err := s.work.Look(ctx, r)
	if s.looks++; s.looks > 1 {
		ev.LastSign = s.at
	}
	return ev, err
}

func TestASignOfLifeThatComesRightBeforeTheVerdictWins(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", batchv1alpha1.StaleFail), queued("a", calling, ofType("scrape"), running(mine)))
	b.r.Executors.HTTP = &speaks{work: b.work, at: b.after(301 * time.Second)}
	g.Expect(b.step("a").RequeueAfter).To(Equal(300 * time.Second))
	g.Expect(b.writes).To(BeZero())
}

func TestARunThatHasEndedIsNotStale(t *testing.T) {
	for name, end := range map[string]change{
		"its work has ended": func(*batchv1alpha1.JobRun) {},
		"it was cancelled":   cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, watching("main", ""), jobOf(), queued("a", ofType("scrape"), running(mine)))
			b.after(301 * time.Second)
			b.step("a")
			g.Expect(b.said("a", batchv1alpha1.ConditionStale)).NotTo(BeNil())
			g.Expect(b.api.Delete(t.Context(), jobOf())).To(Succeed())
			b.work.look = over(batchv1alpha1.JobRunCompleted, true)
			b.edit("a", end)
			b.step("a")
			b.step("a")
			g.Expect(b.run("a").Status.Phase.Terminal()).To(BeTrue())
			g.Expect(b.said("a", batchv1alpha1.ConditionStale)).To(BeNil())
		})
	}
}

func TestAnAdoptedRunIsJudgedByItsFirstStart(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", ""), jobOf(), queued("a", ofType("scrape"), recovering(batchv1alpha1.RecoveryAdopt), running(before)))
	b.after(301 * time.Second)
	b.step("a")
	g.Expect(b.said("a", batchv1alpha1.ConditionStale)).To(BeNil(), "it is adopted first")
	b.step("a")
	g.Expect(b.said("a", batchv1alpha1.ConditionStale).Status).To(Equal(metav1.ConditionTrue))
}

func TestAChangeOfTheQueueIsActedUpon(t *testing.T) {
	stale := func(t *testing.T) *bench {
		b := start(t, watching("main", ""), jobOf(), queued("a", ofType("scrape"), running(mine)))
		b.after(301 * time.Second)
		b.step("a")
		return b
	}
	edit := func(b *bench, change func(*batchv1alpha1.JobQueue)) {
		q := &batchv1alpha1.JobQueue{}
		if err := b.api.Get(b.t.Context(), client.ObjectKey{Namespace: "ns", Name: "main"}, q); err != nil {
			b.t.Fatal(err)
		}
		change(q)
		if err := b.api.Update(b.t.Context(), q); err != nil {
			b.t.Fatal(err)
		}
	}
	t.Run("a longer threshold brings it back to life", func(t *testing.T) {
		g := NewWithT(t)
		b := stale(t)
		edit(b, func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency.Types[0].StaleAfterSeconds = ptr.To[int64](900) })
		g.Expect(b.step("a").RequeueAfter).To(Equal(600 * time.Second))
		said := b.said("a", batchv1alpha1.ConditionStale)
		g.Expect(said.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(said.Message).To(HaveSuffix("was its start; without another the run counts as stale after 900 s"))
	})
	t.Run("without a threshold nothing is said any more", func(t *testing.T) {
		g := NewWithT(t)
		b := stale(t)
		edit(b, func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency = nil })
		g.Expect(b.step("a")).To(Equal(still))
		g.Expect(b.said("a", batchv1alpha1.ConditionStale)).To(BeNil())
		b.step("a")
		g.Expect(b.writes).To(Equal(2))
	})
	t.Run("onStale Fail fails what was only marked", func(t *testing.T) {
		g := NewWithT(t)
		b := stale(t)
		count := b.counted("main")
		edit(b, func(q *batchv1alpha1.JobQueue) { q.Spec.OnStale = batchv1alpha1.StaleFail })
		b.step("a")
		g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonStale))
		g.Expect(b.said("a", batchv1alpha1.ConditionStale)).To(BeNil())
		g.Expect(b.counted("main")).To(Equal(count), "it fell silent once")
	})
	t.Run("a queue that is gone has no say", func(t *testing.T) {
		g := NewWithT(t)
		b := stale(t)
		g.Expect(b.api.Delete(t.Context(), watching("main", ""))).To(Succeed())
		g.Expect(b.step("a")).To(Equal(still))
		g.Expect(b.said("a", batchv1alpha1.ConditionStale)).To(BeNil())
	})
}

func TestHeartbeatsThatCannotBeReadDoNotStandInTheWayOfAnOutcome(t *testing.T) {
	g := NewWithT(t)
	b := start(t, watching("main", batchv1alpha1.StaleFail), queued("a", ofType("scrape"), running(mine)))
	b.unreadable = true
	b.after(301 * time.Second)
	_, err := b.reconcile("a")
	g.Expect(err).To(MatchError(errAway), "and nobody is declared stale by it")
	g.Expect(b.writes).To(BeZero())
	b.work.look = over(batchv1alpha1.JobRunCompleted, true)
	b.step("a")
	g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
}

func TestAWriteThatFailsIsNotToldOfAndIsMadeAgain(t *testing.T) {
	for name, carriedOut := range map[string]bool{"it was lost": false, "its answer was lost": true} {
		for _, policy := range []batchv1alpha1.StalePolicy{batchv1alpha1.StaleWarn, batchv1alpha1.StaleFail} {
			t.Run(name+" under "+string(policy), func(t *testing.T) {
				g := NewWithT(t)
				b := start(t, watching("main", policy), jobOf(), queued("a", ofType("scrape"), maxRetries(0), running(mine)))
				b.failOnce(1, carriedOut)
				b.after(301 * time.Second)
				_, err := b.reconcile("a")
				g.Expect(err).To(MatchError(errAway))
				g.Expect(b.events).To(BeEmpty())
				b.work.stop = executor.Evidence{Life: executor.Alive}
				b.step("a")
				if policy == batchv1alpha1.StaleFail {
					g.Expect(b.run("a").Status.Reason).To(Equal(batchv1alpha1.ReasonStale))
				} else {
					g.Expect(b.said("a", batchv1alpha1.ConditionStale).Status).To(Equal(metav1.ConditionTrue))
				}
			})
		}
	}
}

func TestAQueueThatChangesWakesItsRunsThatAreAtWork(t *testing.T) {
	other := queued("elsewhere", running(mine))
	other.Namespace = "other"
	b := start(t, queued("a", running(mine)), queued("b", in("another"), running(mine)), queued("c"), queued("d", failed(false)),
		queued("e", func(r *batchv1alpha1.JobRun) { r.Spec.Queue = "" }, running(mine)), other)
	g := NewWithT(t)
	g.Expect(b.r.atWorkIn(t.Context(), queue("main"))).To(Equal(wakened("a")))
	g.Expect(b.r.atWorkIn(t.Context(), queue(batchv1alpha1.DefaultQueue))).To(Equal(wakened("e")))
	g.Expect(b.r.atWorkIn(t.Context(), queue("empty"))).To(BeEmpty())
}
