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
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
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
	r := &Reconciler{}
	g.Expect(r.scheduledJobOf(t.Context(), &waits)).To(ConsistOf(HaveField("NamespacedName", HaveField("Name", "sj"))))
	g.Expect(r.scheduledJobOf(t.Context(), &batchv1alpha1.JobRun{})).To(BeEmpty())
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
