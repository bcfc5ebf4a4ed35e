// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

func onSchedule(schedule string) func(*batchv1alpha1.ScheduledJob) {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = schedule }
}

func runsAt(t time.Time) func(*batchv1alpha1.ScheduledJob) {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunAt = ptr.To(metav1.NewTime(t.Truncate(time.Second))) }
}

// fires returns the runs of a ScheduledJob's ticks, in the order of the ticks.
func (w *world) fires(schedule string) []batchv1alpha1.JobRun {
	w.t.Helper()
	list := &batchv1alpha1.JobRunList{}
	w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns), client.MatchingFields{"spec.scheduledJobRef.name": schedule})).To(Succeed())
	runs := slices.DeleteFunc(list.Items, func(r batchv1alpha1.JobRun) bool { return r.Spec.ScheduledTime == nil })
	slices.SortFunc(runs, func(a, b batchv1alpha1.JobRun) int { return a.Spec.ScheduledTime.Compare(b.Spec.ScheduledTime.Time) })
	return runs
}

// fired counts the runs of a ScheduledJob's ticks that are in the phase, for Eventually.
func (w *world) fired(schedule string, phase batchv1alpha1.JobRunPhase) func() int {
	return func() int {
		n := 0
		for _, r := range w.fires(schedule) {
			if r.Status.Phase == phase {
				n++
			}
		}
		return n
	}
}

// ahead is a clock that is fast.
type ahead struct {
	clock.RealClock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.RealClock.Now().Add(a.by) }

func TestAScheduleFiresEveryTickOnceAndKeepsItsRunsForTenMinutesAtLeast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	w.create(w.schedule("often", s.URL, onSchedule("@every 1s"), func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.CompletedHistoryLimit = ptr.To[int32](1)
	}))
	w.Eventually(w.fired("often", batchv1alpha1.JobRunCompleted)).Should(BeNumerically(">=", 4))
	sj := w.readSchedule("often")
	w.patch(sj, func() { sj.Spec.Suspend = true })
	w.Eventually(func() bool {
		sj := w.readSchedule("often")
		return sj.Status.ObservedGeneration == sj.Generation && sj.Status.ActiveCount == 0
	}).Should(BeTrue())

	runs := w.fires("often")
	for _, r := range runs {
		w.Expect(r.Name).To(Equal(fmt.Sprintf("often-%d", r.Spec.ScheduledTime.Unix())))
	}
	w.Expect(s.runs()).To(ConsistOf(runNames(runs)), "each run calls once")
	first, last := runs[0].Spec.ScheduledTime.Time, runs[len(runs)-1].Spec.ScheduledTime.Time
	w.Expect(first).To(BeTemporally(">", sj.CreationTimestamp.Time))
	sj = w.readSchedule("often")
	w.Expect(sj.Status.MissedRuns).To(BeEquivalentTo(last.Sub(sj.CreationTimestamp.Time)/time.Second-time.Duration(len(runs))),
		"every tick has its run, or was passed over and counted: the policy is RunOnce")

	m.stop()
	w.start(func(o *operator.Options) { o.Clock = ahead{by: 11 * time.Minute} })
	w.Eventually(func() []string { return runNames(w.fires("often")) }).Should(Equal([]string{runs[len(runs)-1].Name}), "the limit is 1, and chains may go after 10 minutes")
}

func runNames(runs []batchv1alpha1.JobRun) []string {
	var all []string
	for _, r := range runs {
		all = append(all, r.Name)
	}
	return all
}

func TestAOneTimeScheduleThatIsPastDueFiresOnceAndGoesWhileItsRunStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/once": answer})
	w.start()
	due := time.Now().Add(-10 * time.Second)
	w.create(w.schedule("once", s.URL+"/once", runsAt(due), func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.TTLSecondsAfterFired = ptr.To[int32](0)
	}))
	w.Eventually(func() error {
		return w.Get(w.ctx, types.NamespacedName{Namespace: w.ns, Name: "once"}, &batchv1alpha1.ScheduledJob{})
	}).Should(MatchError(ContainSubstring("not found")))
	name := fmt.Sprintf("once-%d", due.Unix())
	w.eventually(name, batchv1alpha1.JobRunRunning)
	release()
	r := w.eventually(name, batchv1alpha1.JobRunCompleted)
	w.Expect(r.OwnerReferences).To(BeEmpty(), "the deletion of the ScheduledJob must not take its run along")
	w.Expect(runNames(w.fires("once"))).To(Equal([]string{name}))
	w.Expect(s.log()).To(HaveLen(1))
}

func TestASuspendedScheduleFiresNothingAndResumesWithLaterTicks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	sj := w.schedule("paused", s.URL, onSchedule("@every 1s"), func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = true })
	w.create(sj)
	w.Eventually(func() bool {
		return meta.IsStatusConditionTrue(w.readSchedule("paused").Status.Conditions, batchv1alpha1.ConditionReady)
	}).
		Should(BeTrue(), "suspended or not, it is accepted")
	w.Consistently(func() []batchv1alpha1.JobRun { return w.fires("paused") }).WithTimeout(2500 * time.Millisecond).Should(BeEmpty())
	resumed := time.Now().Truncate(time.Second)
	w.patch(sj, func() { sj.Spec.Suspend = false })
	w.Eventually(w.fired("paused", batchv1alpha1.JobRunCompleted)).Should(BeNumerically(">=", 2))
	w.pause("paused")
	runs := w.fires("paused")
	w.Expect(runs[0].Spec.ScheduledTime.Time).To(BeTemporally(">=", resumed), "ticks that passed meanwhile are given up")
	later := runs[len(runs)-1].Spec.ScheduledTime.Sub(resumed)/time.Second + 1
	w.Expect(w.readSchedule("paused").Status.MissedRuns).To(BeNumerically("<=", int(later)-len(runs)), "and only what a busy manager passed over later is counted")
}

func TestAForbiddenOverlapLeavesOneSkippedRunAndThenOnlyCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/slow": answer})
	w.start()
	w.create(w.schedule("alone", s.URL+"/slow", onSchedule("@every 1s"), func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.ConcurrencyPolicy = batchv1alpha1.ConcurrencyForbid
	}))
	w.Eventually(func() int64 { return w.readSchedule("alone").Status.SkippedRuns }).Should(BeNumerically(">=", 3))
	runs := w.fires("alone")
	w.Expect(runs).To(HaveLen(2), "%v", runNames(runs))
	w.eventually(runs[0].Name, batchv1alpha1.JobRunRunning)
	skipped := w.eventually(runs[1].Name, batchv1alpha1.JobRunSkipped)
	w.Expect(skipped.Status.Reason).To(Equal(batchv1alpha1.ReasonOverlapForbidden))
	w.Expect(s.runs()).To(Equal([]string{runs[0].Name}))

	release()
	w.Eventually(w.fired("alone", batchv1alpha1.JobRunCompleted)).Should(BeNumerically(">=", 2), "it goes on once the way is free")
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
}

func TestARunByHandDoesWhatItsScheduledJobSaidWhenItWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	w.queue("later", 0)
	sj := w.schedule("template", s.URL+"/then", func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunTemplate.Queue = "later" })
	w.create(sj)
	byHand := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "by-hand"}}
	byHand.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "template"}
	w.create(byHand)
	w.Eventually(func() *batchv1alpha1.ResolvedSpec { return w.get("by-hand").Status.ResolvedSpec }).ShouldNot(BeNil())
	w.patch(sj, func() { sj.Spec.RunTemplate.Work.HTTP.URL = s.URL + "/now" })
	w.Expect(w.Delete(w.ctx, sj)).To(Succeed())

	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "later"}}
	w.patch(q, func() { q.Spec.Concurrency.Limit = ptr.To[int32](1) })
	r := w.eventually("by-hand", batchv1alpha1.JobRunCompleted)
	w.Expect(r.Status.Queue).To(Equal("later"))
	w.Expect(s.log()).To(HaveLen(1))
	w.Expect(s.log()[0].Path).To(Equal("/then"), "a later edit, or deletion, changes nothing")
}

func TestAScheduledCloudEventReachesItsSubscriberByItsSubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	received := make(chan cloudevents.Event, 1)
	protocol, err := cloudevents.NewHTTP()
	w.Expect(err).NotTo(HaveOccurred())
	handler, err := cloudevents.NewHTTPReceiveHandler(w.ctx, protocol, func(_ context.Context, e cloudevents.Event) { received <- e })
	w.Expect(err).NotTo(HaveOccurred())
	broker := httptest.NewServer(handler)
	t.Cleanup(broker.Close)
	w.start()
	due := time.Now().Add(-time.Minute).Truncate(time.Second)
	w.create(w.schedule("wakeup", broker.URL+"/topics", runsAt(due), func(sj *batchv1alpha1.ScheduledJob) {
		work := sj.Spec.RunTemplate.Work.HTTP
		work.Body = ptr.To(`{"agent": 7}`)
		work.CloudEvent = &batchv1alpha1.CloudEvent{Type: "agent.wakeup", Subject: "agent:agent-7:scheduled"}
	}))
	var e cloudevents.Event
	w.Eventually(received).Should(Receive(&e))
	w.Expect(e.Validate()).To(Succeed())
	w.Expect(e.Subject()).To(Equal("agent:agent-7:scheduled"))
	w.Expect(e.Type()).To(Equal("agent.wakeup"))
	w.Expect(e.Time()).To(BeTemporally("==", due), "the time of the event is that of the tick")
	w.Expect(string(e.Data())).To(MatchJSON(`{"agent": 7}`))
	r := w.eventually(fmt.Sprintf("wakeup-%d", due.Unix()), batchv1alpha1.JobRunCompleted)
	w.Expect(e.ID()).To(Equal(string(r.UID)), "the key of the chain, by which a broker recognises a repetition")
	w.Expect(e.Source()).To(HaveSuffix("/namespaces/" + w.ns + "/jobruns/" + r.Name))
}
