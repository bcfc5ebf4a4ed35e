// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestRetriesOfOrphansAreServedBeforeWhatWasQueuedBehindThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	q := w.queue("default", 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true })
	w.claimed(w.httpRun("orphan-b", s.URL)) // two at once: the limit was 2
	w.claimed(w.httpRun("orphan-a", s.URL))
	w.create(w.httpRun("third", s.URL), w.httpRun("first", s.URL), w.httpRun("second", s.URL))

	m := w.start()
	for _, name := range []string{"orphan-b", "orphan-a"} {
		w.eventually(name, batchv1alpha1.JobRunFailed)
		w.Eventually(w.phase(name + "-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
		w.Eventually(time.Now).Should(BeTemporally(">", w.get(name+"-r1").Spec.NotBefore.Time))
	}
	w.Expect(s.log()).To(BeEmpty(), "the queue is suspended")
	w.suspend(q, false)
	w.Eventually(s.runs).Should(Equal([]string{"orphan-b-r1", "orphan-a-r1", "third", "first", "second"}))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.idempotent(m)
}

func TestARunInBackOffBlocksNobodyAndIsServedBeforeLaterRunsOnceItIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	w.claimed(w.httpRun("orphan", s.URL, backOff(3600)))
	w.create(w.httpRun("early", s.URL+"/hold"), w.httpRun("late", s.URL))
	m := w.start()
	w.Eventually(s.runs).Should(Equal([]string{"early"}), "the retry of the orphan is in back-off")
	child := w.get("orphan-r1")
	w.patch(child, func() { child.Spec.NotBefore = ptr.To(metav1.NewTime(time.Now().Add(-time.Second))) })
	w.Eventually(func() []batchv1alpha1.WaitingEntry { return w.readQueue("default").Status.Next }).
		Should(HaveExactElements(HaveField("Name", "orphan-r1"), HaveField("Name", "late")), "the manager has seen the edit")
	release()
	w.Eventually(s.runs).Should(Equal([]string{"early", "orphan-r1", "late"}))
	w.idempotent(m)
}
