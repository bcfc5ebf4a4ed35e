// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestARunWakesItsGroupOnlyWhenThatChangesWhereAMemberStands(t *testing.T) {
	aRun := func(changes ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
		r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "r"}}
		r.Spec.Work = &batchv1alpha1.Work{}
		r.Status.Phase = batchv1alpha1.JobRunQueued
		for _, c := range changes {
			c(r)
		}
		return r
	}
	atWork := func(r *batchv1alpha1.JobRun) { run.Claim{}.Apply(r, noon) }
	ends := func(stopped bool) func(*batchv1alpha1.JobRun) {
		return func(r *batchv1alpha1.JobRun) {
			atWork(r)
			run.Finish(r, batchv1alpha1.JobRunFailed, "WorkFailed", "", stopped, noon)
			retry.Conclude(r, noon)
		}
	}
	told := func(r *batchv1alpha1.JobRun) {
		r.Spec.Cancel = true // it is not retried
		retry.Conclude(r, noon)
	}
	for name, c := range map[string]struct {
		before, after *batchv1alpha1.JobRun
		wakes         bool
	}{
		"it begins":     {aRun(), aRun(atWork), true},
		"it fails":      {aRun(atWork), aRun(ends(true)), true},
		"it stops":      {aRun(ends(false)), aRun(ends(true)), true},
		"its chain has": {aRun(ends(true)), aRun(ends(true), told), true},
		"it is retried": {aRun(ends(true)), aRun(ends(true), func(r *batchv1alpha1.JobRun) { r.Status.Retry = &batchv1alpha1.RetryRecord{UID: "c"} }), true},
		"it is held":    {aRun(), aRun(func(r *batchv1alpha1.JobRun) { run.Hold(r, "QueueNotFound", "", noon) }), true},
		"it is fenced":  {aRun(), aRun(func(r *batchv1alpha1.JobRun) { run.Fence(r, "1.2") }), false},
		"it is asked":   {aRun(), aRun(func(r *batchv1alpha1.JobRun) { r.Status.Halt = &batchv1alpha1.Halt{} }), false},
		"it is announced": {aRun(ends(true)), aRun(ends(true), func(r *batchv1alpha1.JobRun) {
			r.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "r"}}
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(matters.Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after})).To(Equal(c.wakes))
		})
	}
	g := NewWithT(t)
	g.Expect(matters.Create(event.CreateEvent{Object: aRun()})).To(BeTrue(), "it may be on record as missing")
	g.Expect(matters.Delete(event.DeleteEvent{Object: aRun()})).To(BeTrue())
}

func TestAGroupIsLookedAtWhenOthersWriteIt(t *testing.T) {
	g := NewWithT(t)
	before := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	edited, halted, counted := before.DeepCopy(), before.DeepCopy(), before.DeepCopy()
	edited.Generation = 2
	halted.Status.Halt = &batchv1alpha1.Halt{}
	counted.Status.Settled = "1/3"
	g.Expect(asked.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: edited})).To(BeTrue())
	g.Expect(asked.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: halted})).To(BeTrue())
	g.Expect(asked.Update(event.UpdateEvent{ObjectOld: halted, ObjectNew: halted.DeepCopy()})).To(BeFalse())
	g.Expect(asked.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: counted})).To(BeFalse(), "its own writes")
	g.Expect(asked.Create(event.CreateEvent{Object: before})).To(BeTrue())
}

func TestARetryByAPersonWakesTheGroupOfItsChain(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	group := []reconcile.Request{{NamespacedName: w.key("g")}}
	r := w.reconciler()
	w.Expect(r.groupOf(w.ctx, w.run("g-a"))).To(Equal(group))
	byHand := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "again", UID: "again"}}
	byHand.Spec.RetryOf = "g-a"
	w.Expect(r.groupOf(w.ctx, byHand)).To(BeEmpty(), "it is yet to be resolved")
	byHand.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{Chain: &batchv1alpha1.Chain{RootName: "g-a"}}
	w.Expect(r.groupOf(w.ctx, byHand)).To(Equal(group))
	byHand.Status.ResolvedSpec.Chain.RootName = "gone"
	w.Expect(r.groupOf(w.ctx, byHand)).To(BeEmpty())
	w.Expect(r.groupOf(w.ctx, &batchv1alpha1.JobRun{})).To(BeEmpty())
}

func TestAScheduledJobWakesTheGroupsThatWaitForIt(t *testing.T) {
	w := newWorld(t)
	sj, g := w.scheduled(true)
	w.create(func(g *batchv1alpha1.JobGroup) {
		g.Name, g.Spec.ScheduledJobRef = "by-hand", &batchv1alpha1.ObjectName{Name: "sj"}
	})
	r := w.reconciler()
	w.Expect(r.waitingFor(w.ctx, sj)).To(Equal([]reconcile.Request{{NamespacedName: w.key("g")}}))
	w.says(sj, naming(g))
	w.pass()
	w.Expect(r.waitingFor(w.ctx, sj)).To(BeEmpty())
}

// start runs the controller in a manager of its own, with real caches and the real clock.
func (w *world) start() {
	w.t.Helper()
	mgr, err := ctrl.NewManager(plane.Config(), ctrl.Options{
		Scheme:     scheme(w.t),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.ns: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(index.Register(w.ctx, mgr.GetFieldIndexer())).To(Succeed())
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Self: w.leading(), Gate: open{}, Clock: clock.RealClock{}}
	w.Expect(r.SetupWithManager(mgr)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(w.ctx) }()
	w.t.Cleanup(func() { w.Expect(<-ended).To(Succeed()) })
}

func TestTheControllerWorksByItself(t *testing.T) {
	w := newWorld(t)
	sj, g := w.scheduled(true)
	w.start()
	w.says(sj, naming(g))
	recorded := func(member int) types.UID {
		told := w.get().Status.Members
		if len(told) <= member {
			return ""
		}
		return told[member].RunUID
	}
	w.Eventually(func() types.UID { return recorded(0) }).ShouldNot(BeEmpty())
	w.does("g-a", "Completed")
	w.Eventually(func() types.UID { return recorded(1) }).ShouldNot(BeEmpty())
	w.remove(w.run("g-b"))
	w.Eventually(func() types.UID { return recorded(2) }).ShouldNot(BeEmpty())
	w.begin("g-c")
	w.Eventually(func() error {
		now := w.get()
		now.Status.Halt = &batchv1alpha1.Halt{Phase: "Cancelled", Reason: batchv1alpha1.ReasonReplaced, Message: "by a tick"}
		return w.api.Status().Update(w.ctx, now)
	}).Should(Succeed())
	w.Eventually(func() *batchv1alpha1.Halt { return w.run("g-c").Status.Halt }).ShouldNot(BeNil())
	w.obey("g-c")
	w.Eventually(func() batchv1alpha1.JobGroupPhase { return w.get().Status.Phase }).Should(Equal(batchv1alpha1.JobGroupCancelled))
	w.shows("Cancelled", "Completed", "Cancelled", "Cancelled")
}
