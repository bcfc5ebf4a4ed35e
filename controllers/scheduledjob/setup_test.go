// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/retry"
)

func TestARunWakesItsScheduleOnlyWhenThatChangesWhatIsUnsettled(t *testing.T) {
	seven := clockTime("07:00:00")
	waits, runs, failed, done := ticked(seven), ticked(seven, running), ticked(seven, inBackOff), ticked(seven, completed)
	stopping, told := ticked(seven, ended(batchv1alpha1.JobRunFailed), holding), ticked(seven, ended(batchv1alpha1.JobRunFailed))
	reopened := ticked(seven, inBackOff)
	announced := ticked(seven, completed)
	announced.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "r"}}
	for name, c := range map[string]struct {
		before, after batchv1alpha1.JobRun
		wakes         bool
	}{
		"it begins":               {waits, runs, false},
		"it beats":                {runs, runs, false},
		"it fails and is retried": {runs, failed, true},
		"its chain settles":       {failed, told, true},
		"it stops":                {stopping, told, true},
		"it completes":            {runs, done, true},
		"it is announced":         {done, announced, false},
		"its chain is opened":     {told, reopened, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(matters.Update(event.UpdateEvent{ObjectOld: &c.before, ObjectNew: &c.after})).To(Equal(c.wakes))
		})
	}
	g := NewWithT(t)
	g.Expect(matters.Create(event.CreateEvent{Object: &waits})).To(BeTrue(), "its fire may be unrecorded")
	g.Expect(matters.Create(event.CreateEvent{Object: &done})).To(BeFalse())
	g.Expect(matters.Delete(event.DeleteEvent{Object: &done})).To(BeTrue())
}

func TestAGroupWakesItsScheduleWhenItAppearsEndsOrIsDeleted(t *testing.T) {
	g := NewWithT(t)
	group := func(phase batchv1alpha1.JobGroupPhase) *batchv1alpha1.JobGroup {
		made := grouped(clockTime("07:00:00"), phase)
		return &made
	}
	g.Expect(matters.Create(event.CreateEvent{Object: group(groupWaits)})).To(BeTrue(), "its fire may be unrecorded")
	g.Expect(matters.Create(event.CreateEvent{Object: group(groupCompleted)})).To(BeFalse())
	g.Expect(matters.Update(event.UpdateEvent{ObjectOld: group(groupWaits), ObjectNew: group(groupRuns)})).To(BeFalse())
	g.Expect(matters.Update(event.UpdateEvent{ObjectOld: group(groupRuns), ObjectNew: group(groupCancels)})).To(BeFalse())
	g.Expect(matters.Update(event.UpdateEvent{ObjectOld: group(groupCancels), ObjectNew: group(groupCompleted)})).To(BeTrue())
	g.Expect(matters.Delete(event.DeleteEvent{Object: group(groupRuns)})).To(BeTrue())
}

func TestWhichScheduleIsWoken(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.at(time.Minute)
	w.pass()
	first := w.runs()[0]
	// byHand is a retry by hand: it names only the run that it retries, and once it is resolved the chain.
	byHand := func(name string, of batchv1alpha1.JobRun, resolved bool) batchv1alpha1.JobRun {
		r := w.manualRun(name)
		r.Spec.ScheduledJobRef, r.Spec.RetryOf = nil, of.Name
		w.Expect(w.api.Create(w.ctx, r)).To(Succeed())
		if resolved {
			r.Status.ResolvedSpec = retry.ResolveManual(&of, &first, r)
			w.Expect(w.api.Status().Update(w.ctx, r)).To(Succeed())
		}
		return *r
	}
	second := byHand("second", first, true)
	group := grouped(w.born, groupWaits)
	group.Namespace = w.ns
	other := batchv1alpha1.JobRun{}
	lost := second
	lost.Spec.RetryOf, lost.Status.ResolvedSpec = "gone", nil
	for name, c := range map[string]struct {
		object client.Object
		woken  bool
	}{
		"that of a run":                           {&first, true},
		"that of a group":                         {&group, true},
		"none for a run of its own":               {&other, false},
		"that of a retry by hand":                 {&second, true},
		"that of one that is yet to be resolved":  {new(byHand("third", first, false)), true},
		"that of the retry of one":                {new(byHand("fourth", second, false)), true},
		"none for the retry of what is not there": {&lost, false},
	} {
		requests := w.reconciler().scheduledJobOf(w.ctx, c.object)
		if !c.woken {
			w.Expect(requests).To(BeEmpty(), name)
			continue
		}
		w.Expect(requests).To(ConsistOf(ctrl.Request{NamespacedName: w.key()}), name)
	}
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

func TestTheControllerFiresByItself(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-10*time.Second), ttl(0), func(sj *batchv1alpha1.ScheduledJob) { sj.Name = "past" })
	w.create(w.once(2 * time.Second))
	w.start()
	w.Eventually(w.runs).Should(HaveLen(2))
	w.Eventually(w.active).Should(HaveLen(1))
	r := w.runOf(w.get().Spec.RunAt.Time)
	w.Expect(r.CreationTimestamp.Time).To(BeTemporally(">=", r.Spec.ScheduledTime.Time))
	w.Eventually(func() error {
		return w.api.Get(w.ctx, types.NamespacedName{Namespace: w.ns, Name: "past"}, &batchv1alpha1.ScheduledJob{})
	}).Should(MatchError(ContainSubstring("not found")))

	w.clock.SetTime(w.born)
	w.end(r, batchv1alpha1.JobRunCompleted)
	w.Eventually(w.active).Should(BeEmpty())
	m := w.manualRun("m")
	w.Expect(w.api.Create(w.ctx, m)).To(Succeed())
	w.Eventually(func() int32 { return w.get().Status.ActiveCount }).Should(Equal(int32(1)))
	w.remove(m)
	w.Eventually(func() int32 { return w.get().Status.ActiveCount }).Should(BeZero())

	w.edit(func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunAt = &metav1.Time{Time: sj.Spec.RunAt.Add(-time.Hour)}
	})
	w.Eventually(w.active).Should(HaveLen(1))
}

func TestTheControllerReplacesAGroupByItself(t *testing.T) {
	w := newWorld(t)
	w.create(groups, replace, w.once(-10*time.Second))
	byHand := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "by-hand"}}
	byHand.Spec.JobGroupTemplateSpec = *w.get().Spec.GroupTemplate
	byHand.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
	w.Expect(w.api.Create(w.ctx, byHand)).To(Succeed())
	w.start()
	asked := func() *batchv1alpha1.Halt {
		w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(byHand), byHand)).To(Succeed())
		return byHand.Status.Halt
	}
	w.Eventually(asked).ShouldNot(BeNil())
	w.Expect(w.groups()).To(HaveLen(1))
	w.move(byHand, batchv1alpha1.JobGroupCancelled)
	w.Eventually(w.active).Should(HaveLen(1))
	w.Expect(w.get().Status.Active[0].UID).To(Equal(w.groupOf(w.get().Spec.RunAt.Time).UID))
}
