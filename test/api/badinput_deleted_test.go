// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestARunDeletedDuringItsCallEndsTheCallBeforeTheNextRunStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/silent": silent})
	w.start()
	w.create(w.httpRun("deleted", s.URL+"/silent"), w.httpRun("next", s.URL))
	w.Eventually(s.runs).Should(Equal([]string{"deleted"}))
	w.Expect(w.Delete(w.ctx, w.get("deleted"))).To(Succeed())
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.runs()).To(Equal([]string{"deleted", "next"}), "a deletion is no failure: nothing is retried")
	w.Expect(s.most.Load()).To(BeEquivalentTo(1), "the call had ended")
	w.Expect(w.phase("deleted")()).To(ContainSubstring("not found"))
}

// fireSlow fires a one-time ScheduledJob whose call waits, with a run of the same queue behind it, and returns the name of the
// run that calls.
func (w *world) fireSlow(s *server) string {
	w.t.Helper()
	due := time.Now().Add(-time.Minute)
	w.create(w.schedule("report", s.URL+"/slow", runsAt(due)))
	name := fmt.Sprintf("report-%d", due.Unix())
	w.Eventually(s.runs).Should(Equal([]string{name}))
	w.create(w.httpRun("next", s.URL))
	return name
}

func TestAScheduledJobDeletedWhileItsRunIsAtWorkTakesTheRunAlongAndFreesItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/slow": slow})
	w.start()
	name := w.fireSlow(s)
	w.Expect(w.Delete(w.ctx, w.readSchedule("report"), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.Eventually(w.phase(name)).Should(ContainSubstring("not found"))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.runs()).To(Equal([]string{name, "next"}))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1), "the call had ended")
}

func TestAScheduledJobDeletedAloneLeavesItsRunAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slow, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/slow": slow})
	w.start()
	name := w.fireSlow(s)
	w.Expect(w.Delete(w.ctx, w.readSchedule("report"), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.Eventually(func() []metav1.OwnerReference { return w.get(name).OwnerReferences }).Should(BeEmpty())
	release()
	w.eventually(name, batchv1alpha1.JobRunCompleted)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.runs()).To(Equal([]string{name, "next"}))
}

func TestAScheduledJobDeletedWhileItsPodIsAtWorkFreesNoSlotEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	due := time.Now().Add(-time.Minute)
	w.create(w.schedule("report", "", runsAt(due), func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunTemplate = &w.jobRun("").Spec.JobRunTemplateSpec
	}))
	name := fmt.Sprintf("report-%d", due.Unix())
	w.podOf(w.eventually(name, batchv1alpha1.JobRunRunning))
	w.create(w.jobRun("next", exits("0")))
	kubelet.HoldTermination(w.ns)
	w.Expect(w.Delete(w.ctx, w.readSchedule("report"), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.terminating(name)
	w.Eventually(w.phase(name)).Should(ContainSubstring("not found"))
	w.Consistently(w.phase("next")).WithTimeout(still).Should(Equal(string(batchv1alpha1.JobRunQueued)), "the pod is alive")
	kubelet.ReleaseTermination(w.ns)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.lives()).To(Equal([]string{"Started " + name, "Ended " + name, "Started next", "Ended next"}))
}
