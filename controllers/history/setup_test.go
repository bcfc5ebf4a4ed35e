// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
)

// start runs both controllers in a manager of their own, with real caches.
func (w *world) start() {
	w.t.Helper()
	mgr, err := ctrl.NewManager(plane.Config(), ctrl.Options{
		Scheme:     w.api.Scheme(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.ns: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(index.Register(w.ctx, mgr.GetFieldIndexer())).To(Succeed())
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Self: w.leading(), Gate: open{}, Clock: w.clock}
	w.Expect(r.SetupWithManager(mgr)).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(w.ctx) }()
	w.t.Cleanup(func() { w.Expect(<-ended).To(Succeed()) })
}

func TestTheControllersRemoveByThemselves(t *testing.T) {
	w := newWorld(t)
	sj := w.schedule(1, 1)
	kept := w.run("kept")
	w.run("old", scheduled)
	w.run("older", scheduled)
	root := w.run("dated", ttl(60), failing)
	w.run("dated-r1", retryOf(root, 1))
	w.start()
	w.Eventually(w.left).Should(Equal([]string{"kept", "older"}))

	w.run("newer", scheduled, endedAfter(w, 1))
	w.Eventually(w.left).Should(Equal([]string{"kept", "newer"}))
	sj.Spec.CompletedHistoryLimit = ptr.To[int32](0)
	w.Expect(w.api.Update(w.ctx, sj)).To(Succeed())
	w.Eventually(w.left).Should(Equal([]string{"kept"}))
	kept.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	w.Expect(w.api.Update(w.ctx, kept)).To(Succeed())
	w.Eventually(w.left).Should(BeEmpty())
}

func TestTheControllersRemoveGroupsAndReservationsByThemselves(t *testing.T) {
	w := newWorld(t)
	sj := w.schedule(1, 1)
	w.run("dated-m", memberOf(w.group("dated", groupTTL(60))))
	w.run("old-m", memberOf(w.group("old", groupScheduled)))
	w.group("older", groupScheduled)
	kept := w.reserve("kept", nil)
	w.reserve("dated", ptr.To[int32](60))
	running := w.group("running", groupIn(batchv1alpha1.JobGroupRunning))
	w.run("running-m", memberOf(running), ttl(0))
	w.start()
	w.Eventually(w.groupsLeft).Should(Equal([]string{"older", "running"}))
	w.Eventually(w.left).Should(Equal([]string{"running-m"}))
	w.Eventually(w.reservationsLeft).Should(Equal([]string{"kept"}))

	running.Status.Phase = batchv1alpha1.JobGroupCompleted
	w.write(running)
	w.Eventually(w.left).Should(BeEmpty(), "the end of its group frees a member")
	running.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	w.Expect(w.api.Update(w.ctx, running)).To(Succeed())
	w.Eventually(w.groupsLeft).Should(Equal([]string{"older"}))
	w.group("newer", groupScheduled, groupEndedAfter(w, 1))
	w.Eventually(w.groupsLeft).Should(Equal([]string{"newer"}))
	sj.Spec.CompletedHistoryLimit = ptr.To[int32](0)
	w.Expect(w.api.Update(w.ctx, sj)).To(Succeed())
	w.Eventually(w.groupsLeft).Should(BeEmpty())
	kept.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
	w.Expect(w.api.Update(w.ctx, kept)).To(Succeed())
	w.Eventually(w.reservationsLeft).Should(BeEmpty())
}
