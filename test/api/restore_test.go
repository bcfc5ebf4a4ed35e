// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// restoreWithStatus creates runs anew, as docs/operations.md says: without the owners of the lost cluster, and with their status
// before any manager works.
func (w *world) restoreWithStatus(runs ...*batchv1alpha1.JobRun) {
	w.t.Helper()
	var objects []client.Object
	for _, r := range runs {
		r.OwnerReferences = nil
		objects = append(objects, r)
	}
	w.restore(objects...)
	for _, r := range runs {
		now := w.get(r.Name)
		now.Status = r.Status
		w.Expect(w.Status().Update(w.ctx, now)).To(Succeed(), r.Name)
	}
}

func TestRunsRestoredWithTheirStatusAreNotExecutedAgainAndThoseThatWaitedAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/failed": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) }})
	open := w.gated("gate")
	first := w.start()
	w.create(w.httpRun("done", s.URL+"/done"), w.httpRun("failed", s.URL+"/failed"), w.httpRun("waits", s.URL+"/waits", inQueue("gate")))
	w.eventually("done", batchv1alpha1.JobRunCompleted)
	w.eventually("failed-r1", batchv1alpha1.JobRunFailed)
	w.settle()
	first.stop()
	calls := len(s.log())
	var lost []client.Object
	var runs []*batchv1alpha1.JobRun
	for _, name := range []string{"done", "failed", "failed-r1", "waits"} {
		r := w.get(name)
		runs, lost = append(runs, r), append(lost, r)
	}
	w.loseCluster(lost...)
	w.restoreWithStatus(runs...)
	open()

	m := w.start()
	w.eventually("waits", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(calls+1), "what had ended is not executed again")
	w.Expect(w.allRuns()).NotTo(ContainElement("failed-r2"), "and what had been retried is not retried again")
	for _, r := range runs[:3] {
		w.Expect(w.get(r.Name).Status.Phase).To(Equal(r.Status.Phase))
	}
}

func TestAGroupRestoredWithItsRunsGoesOnWithoutThoseThatHadNotEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	open := w.gated("gate")
	first := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/a"), w.calling("b", s.URL+"/b", inQueue("gate")), w.calling("c", s.URL+"/c")}))
	w.stands("g", "Running: a Completed, b Queued, c Waiting")
	w.settle()
	first.stop()
	g, a, b := w.readGroup("g"), w.get("g-a"), w.get("g-b")
	w.loseCluster(g, a, b)
	w.restore(g)
	now := w.readGroup("g")
	now.Status = g.Status
	w.Expect(w.Status().Update(w.ctx, now)).To(Succeed())
	w.restoreWithStatus(a, b)
	open()

	m := w.start()
	w.ends("g", "Completed: a Completed, b Cancelled, c Completed")
	w.idempotent(m)
	w.Expect(s.paths()).To(Equal([]string{"/a", "/c"}))
	w.Expect(w.get("g-b").Status.Phase).NotTo(Equal(batchv1alpha1.JobRunCompleted), "it is not a member any more, and is not executed")
}
