// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
)

// explained is what can be read of the namespace, explained.
func (w *world) explained() *explain.View {
	w.t.Helper()
	runs, reservations, queues := &batchv1alpha1.JobRunList{}, &batchv1alpha1.DirectReservationList{}, &batchv1alpha1.JobQueueList{}
	schedules, groups, ledgers := &batchv1alpha1.ScheduledJobList{}, &batchv1alpha1.JobGroupList{}, &batchv1alpha1.QueueLedgerList{}
	jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
	for _, list := range []client.ObjectList{runs, reservations, queues, schedules, groups, ledgers} {
		w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	}
	for _, list := range []client.ObjectList{jobs, pods} {
		w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns), client.HasLabels{batchv1alpha1.LabelRunUID})).To(Succeed())
	}
	return explain.New(explain.Snapshot{
		Namespace: w.ns, Queues: queues.Items, Runs: runs.Items, Reservations: reservations.Items, ScheduledJobs: schedules.Items,
		Groups: groups.Items, Ledgers: ledgers.Items, Jobs: jobs.Items, Pods: pods.Items,
	}, time.Now())
}

func TestWhatAQueueTellsOfThoseThatWaitIsWhatIsExplainedFromOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("main", 2, func(q *batchv1alpha1.JobQueue) {
		q.Spec.Concurrency.Types = []batchv1alpha1.TypeConcurrency{{Name: "crawl", Limit: ptr.To[int32](1)}, {Name: "story"}}
		q.Spec.Concurrency.Resources = []batchv1alpha1.QueueResource{{Name: "gpu", Capacity: 2}}
	})
	gpu := func(n int32) func(*batchv1alpha1.JobRun) {
		return func(r *batchv1alpha1.JobRun) {
			r.Spec.Claims = []batchv1alpha1.ResourceClaim{{Name: "gpu", Count: n}}
		}
	}
	w.start()
	busy := w.jobRun("busy", inQueue("main"), ofType("crawl"), gpu(1))
	w.create(busy)
	w.podOf(busy)
	later := func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = ptr.To(metav1.NewTime(time.Now().Add(time.Hour))) }
	w.create(
		w.jobRun("full", inQueue("main"), ofType("crawl")), w.jobRun("short", inQueue("main"), gpu(2)), w.jobRun("behind", inQueue("main"), gpu(1)),
		w.jobRun("later", inQueue("main"), later), w.jobRun("odd", inQueue("main"), ofType("odd")),
	)
	next := func() (all []string) {
		for _, e := range w.readQueue("main").Status.Next {
			all = append(all, e.Name+" "+e.Reason)
		}
		return all
	}
	w.Eventually(next).Should(Equal([]string{
		"full TypeLimitReached", "short ResourceShort", "behind BehindOthers", "later BackOff", "odd UnknownType",
	}), func() string { return w.story() })
	w.settle()

	view, ok := w.explained().Queue("main", 10)
	w.Expect(ok).To(BeTrue())
	shown := w.readQueue("main").Status.Next
	for i, a := range view.Waiting {
		w.Expect([]string{a.Name, a.Reason}).To(Equal([]string{shown[i].Name, shown[i].Reason}))
	}
	w.Expect(view.Slots).To(HaveLen(1))
	w.Expect(view.Slots[0].Details).To(ContainElement(MatchRegexp("pod busy-.* on node .* is Running")))
	w.Expect(view.Waiting[1].Holders).To(HaveLen(1))
	w.Expect(view.Waiting[1].Details).To(ContainElement(MatchRegexp("held by run busy, Running for .*, 1 of gpu")))

	version := w.readQueue("main").ResourceVersion
	w.Consistently(func() string { return w.readQueue("main").ResourceVersion }, quiet).Should(Equal(version), "nothing happens, and nothing is written")
}

// told returns the reasons of the Events about an object, in the order in which they were made.
func (w *world) told(name string) func() []string {
	return func() (reasons []string) {
		list := &eventsv1.EventList{}
		w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
		slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		for _, e := range list.Items {
			if e.Regarding.Name == name {
				w.Expect(e.Series).To(BeNil(), "no Event is counted up")
				reasons = append(reasons, e.Reason)
			}
		}
		return reasons
	}
}

func TestEventsTellTheStoryOfAChainOnceAndARestartTellsNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("main", 1)
	m := w.start()
	r := w.jobRun("a", inQueue("main"))
	w.create(r)
	w.endPod(r, 3)
	w.eventually("a-r1", batchv1alpha1.JobRunRunning)
	w.endPod(w.get("a-r1"), 0)
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.Eventually(w.told("a")).Should(Equal([]string{"Started", "Failed", "RetryCreated"}))
	w.Eventually(w.told("a-r1")).Should(Equal([]string{"Started", "Completed"}))
	w.idempotent(m)
	w.Expect(w.told("a")()).To(HaveLen(3))
	w.Expect(w.told("a-r1")()).To(HaveLen(2))
}
