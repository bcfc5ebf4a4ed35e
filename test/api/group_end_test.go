// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// groupGone waits until a group is deleted.
func (w *world) groupGone(name string) {
	w.t.Helper()
	w.Eventually(func() bool {
		return apierrors.IsNotFound(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, &batchv1alpha1.JobGroup{}))
	}).Should(BeTrue(), func() string { return w.groupStory() })
}

func TestAGroupDeletedWhileAPodWorksTakesItsRunsAlongAndFreesNoSlotEarly(t *testing.T) {
	for name, how := range map[string]metav1.DeletionPropagation{
		"in the background": metav1.DeletePropagationBackground, "from its runs up": metav1.DeletePropagationForeground,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			m := w.start()
			w.create(w.group("g", members{w.podded("a", exits("0")), w.podded("b"), w.podded("c", exits("0"))}))
			w.podOf(w.eventually("g-b", batchv1alpha1.JobRunRunning))
			w.create(w.jobRun("next", exits("0")))
			kubelet.HoldTermination(w.ns)
			w.Expect(w.Delete(w.ctx, w.readGroup("g"), client.PropagationPolicy(how))).To(Succeed())
			w.terminating("g-b")
			w.Eventually(w.allRuns).Should(Equal([]string{"next"}))
			w.groupGone("g")
			w.Consistently(w.phase("next")).WithTimeout(still).Should(Equal("Queued"), "the pod is alive")
			kubelet.ReleaseTermination(w.ns)
			w.eventually("next", batchv1alpha1.JobRunCompleted)
			w.slotFree("next")
			w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a", "Started g-b", "Ended g-b", "Started next", "Ended next"}))
			w.idempotent(m)
		})
	}
}

// collectorIsUpToDate waits until the garbage collector has seen every run that there is: it takes away one that is made now, of an
// owner that never was, and sees runs in order. Before that it would orphan none that it does not know, and delete it later.
func (w *world) collectorIsUpToDate() {
	w.t.Helper()
	last := w.httpRun("last", "http://127.0.0.1:9")
	last.OwnerReferences = []metav1.OwnerReference{{APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "JobGroup", Name: "never", UID: "never"}}
	w.create(last)
	w.Eventually(w.allRuns).ShouldNot(ContainElement("last"))
}

func TestAGroupDeletedAloneLeavesTheRunsThatItHasMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	open := w.gated("default")
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}))
	w.stands("g", "Running: a Queued, b Waiting")
	w.collectorIsUpToDate()
	w.Expect(w.Delete(w.ctx, w.readGroup("g"), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.groupGone("g")
	open()
	w.Expect(w.eventually("g-a", batchv1alpha1.JobRunCompleted).OwnerReferences).To(BeEmpty())
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"g-a"}))
}

func TestAGroupThatIsMadeAnewWhileTheOldOneLeavesRunsItsOwnMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/old"), w.calling("b", s.URL+"/old")}))
	old := w.ends("g", "Completed: a Completed, b Completed")
	w.Expect(w.Delete(w.ctx, old, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.create(w.group("g", members{w.calling("a", s.URL+"/new"), w.calling("b", s.URL+"/new")}))
	g := w.ends("g", "Completed: a Completed, b Completed")
	w.Expect(g.UID).NotTo(Equal(old.UID))
	w.Eventually(w.allRuns).Should(ConsistOf(told(g, "a").RunName, told(g, "b").RunName), "the old ones go")
	w.idempotent(m)
	w.Expect(s.on("/old")).To(HaveLen(2))
	w.Expect(s.on("/new")).To(HaveLen(2))
}

// groupAnnounced waits until nothing is owed about a group any more.
func (w *world) groupAnnounced(name string) {
	w.t.Helper()
	w.Eventually(func() []batchv1alpha1.Announcement { return w.readGroup(name).Status.Announcements }).Should(And(
		Not(BeEmpty()), HaveEach(HaveField("State", batchv1alpha1.AnnouncementDelivered))), name)
}

func TestTheEndOfAGroupIsAnnouncedOnceBesideThoseOfItsRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, other := newReceiver(t), newReceiver(t)
	s := refuses(t)
	w.queue("default", 3, r.of)
	w.queue("other", 3, other.of)
	m := w.start()
	w.create(
		w.group("fine", members{w.calling("a", s.URL)}),
		w.group("poor", members{w.calling("a", s.URL), w.calling("b", s.URL+"/bad", inQueue("other"), retries(0)), w.calling("c", s.URL)}),
		w.group("gone", members{w.calling("a", s.URL)}, func(g *batchv1alpha1.JobGroup) { g.Spec.Cancel = true }),
	)
	for _, name := range []string{"fine", "poor", "gone"} {
		w.groupAnnounced(name)
	}
	want := []string{
		"job.run.completed fine-a", "job.group.completed fine",
		"job.run.completed poor-a", "job.group.failed poor",
		"job.group.cancelled gone",
	}
	for _, run := range []string{"fine-a", "poor-a", "poor-b"} {
		w.delivered(run)
	}
	w.Expect(r.events()).To(ConsistOf(want))
	w.Expect(other.events()).To(ConsistOf("job.run.failed poor-b", "job.run.permanently_failed poor-b"), "the end of a group is for the queue of its first member")
	for _, e := range r.received() {
		if e.Type == "job.group.failed" {
			w.Expect(e.Data.Reason).To(Equal(batchv1alpha1.ReasonMemberFailed))
			w.Expect(e.Data.Message).To(HavePrefix("member b has failed"))
			w.Expect(e.ID).To(HavePrefix(string(w.readGroup("poor").UID)))
		}
	}
	w.idempotent(m)
	w.Expect(r.events()).To(ConsistOf(want))
}

func TestWhatIsOwedAboutAGroupOutlivesTheManager(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newReceiver(t)
	r.down.Store(true)
	w.queue("default", 1, r.of)
	s := newServer(t, nil)
	first := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL)}))
	w.Eventually(func() []batchv1alpha1.Announcement { return w.readGroup("g").Status.Announcements }).Should(ConsistOf(
		And(HaveField("State", batchv1alpha1.AnnouncementOwed), HaveField("Attempts", BeNumerically(">", 0)))))
	first.stop()
	refused := len(r.log())
	r.down.Store(false)
	m := w.start()
	w.groupAnnounced("g")
	w.delivered("g-a")
	w.Expect(r.events()[refused:]).To(ConsistOf("job.run.completed g-a", "job.group.completed g"))
	w.idempotent(m)
}

func TestAGroupGoesWithAllItsRunsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsOnce("short-a", "kept-a")})
	first := w.start()
	w.create(
		w.group("short", members{w.calling("a", s.URL+"/flaky"), w.calling("b", s.URL)}, expires(0)),
		w.group("long", members{w.calling("a", s.URL)}, expires(3600)),
		w.group("kept", members{w.calling("a", s.URL+"/flaky", retries(0)), w.calling("b", s.URL)}),
	)
	w.ends("short", "Completed: a Completed, b Completed")
	w.ends("long", "Completed: a Completed")
	w.ends("kept", "Failed: a Failed, b Cancelled")
	w.settle()
	w.Expect(w.allRuns()).To(Equal([]string{"kept-a", "long-a", "short-a", "short-a-r1", "short-b"}), "nothing goes within ten minutes")
	first.stop()

	m := w.start(func(o *operator.Options) { o.Clock = ahead{by: 11 * time.Minute} })
	w.groupGone("short")
	w.Eventually(w.allRuns).Should(Equal([]string{"kept-a", "long-a"}))
	w.settle()
	w.Expect(standing(w.readGroup("long"))).To(Equal("Completed: a Completed"))
	m.stop()

	m = w.start(func(o *operator.Options) { o.Clock = ahead{by: 2 * time.Hour} })
	w.groupGone("long")
	w.Eventually(w.allRuns).Should(Equal([]string{"kept-a"}))
	w.idempotent(m)
	w.Expect(standing(w.readGroup("kept"))).To(Equal("Failed: a Failed, b Cancelled"))
	w.Expect(s.log()).To(HaveLen(5))
}

func expires(seconds int32) groupChange {
	return func(g *batchv1alpha1.JobGroup) { g.Spec.TTLSecondsAfterFinished = ptr.To(seconds) }
}

func TestARunOfAGroupStaysUntilTheGroupHasEndedWhateverItsOwnTimeToLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	open := w.gated("gate")
	first := w.start()
	soon := func(r *batchv1alpha1.JobRun) { r.Spec.TTLSecondsAfterFinished = ptr.To[int32](0) }
	w.create(w.group("g", members{w.calling("a", s.URL, soon), w.calling("b", s.URL, soon, inQueue("gate"))}))
	w.stands("g", "Running: a Completed, b Queued")
	w.settle()
	first.stop()

	m := w.start(func(o *operator.Options) { o.Clock = ahead{by: 11 * time.Minute} })
	w.create(w.httpRun("marks-the-start", s.URL+"/mark"))
	w.eventually("marks-the-start", batchv1alpha1.JobRunCompleted)
	w.settle()
	w.Expect(w.allRuns()).To(ContainElements("g-a", "g-b"))
	open()
	w.ends("g", "Completed: a Completed, b Completed")
	w.Eventually(w.allRuns).ShouldNot(ContainElement("g-a"))
	w.idempotent(m)
	w.Expect(standing(w.readGroup("g"))).To(Equal("Completed: a Completed, b Completed"), "the group remembers")
}
