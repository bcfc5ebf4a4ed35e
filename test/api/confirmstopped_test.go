// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// A node that never answers: the pods of the namespace terminate and never end.

func (w *world) loseNode() {
	w.t.Helper()
	kubelet.HoldTermination(w.ns)
	w.t.Cleanup(func() { kubelet.ReleaseTermination(w.ns) })
}

// confirmStopped sets the annotation by which a person confirms that nothing of the work lives.
func (w *world) confirmStopped(o client.Object, value string) {
	w.t.Helper()
	w.patch(o, func() {
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[batchv1alpha1.AnnotationConfirmStopped] = value
		o.SetAnnotations(annotations)
	})
}

// lostPod waits until a pod of the run is to end and does not.
func (w *world) lostPod(r *batchv1alpha1.JobRun) *corev1.Pod {
	w.t.Helper()
	var pod *corev1.Pod
	w.Eventually(func() bool {
		pods := &corev1.PodList{}
		w.Expect(w.List(w.ctx, pods, client.InNamespace(w.ns), client.MatchingLabels{batchv1alpha1.LabelRunUID: string(r.UID)})).To(Succeed())
		for i := range pods.Items {
			pod = &pods.Items[i]
			if pod.DeletionTimestamp != nil {
				return true
			}
		}
		return false
	}).Should(BeTrue(), func() string { return w.story() })
	return pod
}

func TestTheSlotOfARunOnADeadNodeIsFreedByTheWordOfAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loseNode()
	w.queue("default", 1)
	m := w.start()
	w.create(w.jobRun("a"))
	w.podOf(w.get("a"))
	w.create(w.jobRun("b", exits("0")))
	w.cancelRun("a")
	r := w.eventually("a", batchv1alpha1.JobRunCancelling)
	w.lostPod(r)

	w.confirmStopped(w.get("a"), "yes")
	w.Eventually(func() *metav1.Condition { return w.condition("a", batchv1alpha1.ConditionStopConfirmed) }).
		Should(And(Not(BeNil()), HaveField("Reason", batchv1alpha1.ReasonUIDMismatch)))
	w.Eventually(w.eventsOf("a", batchv1alpha1.ReasonUIDMismatch)).Should(HaveLen(1))
	w.Expect(w.get("a").Status.Phase).To(Equal(batchv1alpha1.JobRunCancelling))
	w.Expect(w.get("b").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))

	w.confirmStopped(w.get("a"), string(r.UID))
	r = w.eventually("a", batchv1alpha1.JobRunCancelled)
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	said := w.condition("a", batchv1alpha1.ConditionStopConfirmed)
	w.Expect(said.Status).To(Equal(metav1.ConditionTrue))
	w.Expect(said.Reason).To(Equal(batchv1alpha1.ReasonConfirmedByPerson))
	w.Expect(said.Message).To(MatchRegexp(`^somebody, by \S+ at 20\S+Z, confirmed that nothing of the work lives; what could be seen: .*pod a-.* is terminating since`))
	w.Eventually(w.eventsOf("a", batchv1alpha1.ReasonConfirmedByPerson)).Should(HaveExactElements(said.Message))
	w.Expect(m.log.with("stop confirmed by a person")).To(HaveLen(1))
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	w.lostPod(r) // still
	w.idempotent(m)
}

func TestARetryWaitsForADeadNodeUntilAPersonConfirms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loseNode()
	now := steeredClock()
	q := w.queue("default", 2, crawling(batchv1alpha1.StaleFail))
	w.start(now.use)
	w.create(w.jobRun("a", ofType("scrape")))
	w.podOf(w.get("a"))
	w.confirmStopped(w.get("a"), string(w.get("a").UID)) // too early: it is at work
	w.settle()
	r := w.get("a")
	w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	w.patch(r, func() { delete(r.Annotations, batchv1alpha1.AnnotationConfirmStopped) })

	now.after(r.Status.StartedAt.Time, 301*time.Second)
	w.nudge(q)
	w.eventually("a", batchv1alpha1.JobRunFailed)
	w.lostPod(w.get("a"))
	w.Eventually(w.phase("a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	w.Expect(w.get("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))

	w.confirmStopped(w.get("a"), string(r.UID))
	w.slotFree("a")
	w.endPod(w.eventually("a-r1", batchv1alpha1.JobRunRunning), 0)
	w.settled("a", batchv1alpha1.ConditionComplete)
}

func TestAPodWhoseRunWasDeletedIsConfirmedByItsOwnAnnotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.loseNode()
	w.queue("default", 1)
	m := w.start()
	w.create(w.jobRun("a"))
	r := w.get("a")
	w.podOf(r)
	w.create(w.jobRun("b", exits("0")))
	w.Expect(w.Delete(w.ctx, w.get("a"))).To(Succeed())
	lost := w.lostPod(r)
	w.confirmStopped(lost, "another-uid")
	w.settle()
	w.Expect(w.get("b").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued), "the pod counts")

	w.confirmStopped(lost, string(r.UID))
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	w.lostPod(r) // still
	w.idempotent(m)
}

func TestTheCallOfAManagerThatCannotBeSeenIsConfirmedByAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	w.claimed(w.httpRun("a", s.URL))
	w.create(w.httpRun("b", s.URL))
	w.start(elected)
	r := w.eventually("a", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotHeld), "its call may be going on for minutes")
	w.confirmStopped(r, string(r.UID))
	w.slotFree("a")
	w.Expect(w.condition("a", batchv1alpha1.ConditionStopConfirmed).Message).To(ContainSubstring("the manager process " + crashedID + " cannot be seen to have ended"))
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.eventually("b", batchv1alpha1.JobRunCompleted)
}
