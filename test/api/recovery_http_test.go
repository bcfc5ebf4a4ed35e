// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
	"reprise.dev/reprise/internal/operator"
)

// The rows "Running orphan" of the table in design section 6, for HTTP work, which lives in the manager.

func TestACallThatDiedWithItsManagerIsMadeAgainWithTheSameKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hang, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/work": func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Reprise-Attempt") == "0" {
			hang(rw, r)
		}
	}})
	x := newWire(t)
	killed := w.startOn(x.config(), x.mortal)
	w.create(w.httpRun("a", s.URL+"/work", adopting), w.httpRun("b", s.URL+"/other"))
	w.Eventually(s.runs).Should(Equal([]string{"a"}))
	x.cut()
	s.CloseClientConnections()
	w.Eventually(s.now.Load).Should(BeZero())

	m := w.start()
	r := w.eventually("a", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	w.Expect(r.Status.Message).To(Equal("Scheduler crash recovery: run was Running when previous instance " + killed.id + " stopped"))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree), "a manager without leader election is alone")
	w.Expect(w.summary(m)).To(counts(1, 0, 0, 0))
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.eventually("b", batchv1alpha1.JobRunCompleted)

	calls := s.on("/work")
	w.Expect(calls).To(HaveLen(2))
	w.Expect([]string{calls[0].Attempt, calls[1].Attempt}).To(Equal([]string{"0", "1"}))
	w.Expect([]string{calls[0].Key, calls[1].Key}).To(Equal([]string{string(r.UID), string(r.UID)}))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(3))
}

// leaseDuration is short, and longer than an API server is silent that serves all tests at once.
const leaseDuration = 6 * time.Second

// elected makes a manager take part in the leader election.
func elected(o *operator.Options) {
	o.LeaderElect = true
	o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = leaseDuration, leaseDuration*2/3, 200*time.Millisecond
}

// allowance is what is added to the deadline of a call of another process before it counts as over, beside the lease.
const allowance = 5 * time.Second

func TestACallOfAManagerThatCannotBeSeenKeepsItsSlotUntilItMustBeOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	orphan := w.claimed(w.httpRun("a", s.URL))
	over := time.Now().Add(15 * time.Second).Truncate(time.Second)
	w.setStatus(orphan, func(st *batchv1alpha1.JobRunStatus) {
		deadline := metav1.NewTime(over.Add(-leaseDuration - allowance))
		st.Deadline = &deadline
	})
	w.create(w.httpRun("b", s.URL))

	m := w.start(elected, func(o *operator.Options) { o.HTTPTimeout = time.Second })
	r := w.eventually("a", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Message).To(Equal(wasRunning))
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
	w.Expect(w.summary(m)).To(counts(1, 0, 0, 0))
	w.Expect(r.Status.FinishedAt.Time).To(BeTemporally("<", over))

	w.slotFree("a")
	w.Expect(time.Now()).To(BeTemporally(">=", over))
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	for _, name := range []string{"a-r1", "b"} {
		w.Expect(w.get(name).Status.StartedAt.Time).To(BeTemporally(">=", over), "%s had to wait for the slot", name)
	}
	w.Expect(s.runs()).To(Equal([]string{"a-r1", "b"}))
	w.idempotent(m)
}

func TestACallOfAManagerWhosePodHasEndedIsOverAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "manager"}}
	pod.Spec.Containers = []corev1.Container{{Name: "manager", Image: "example.org/manager"}}
	w.create(pod)
	w.Eventually(func() corev1.PodPhase {
		w.Expect(w.Get(w.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		return pod.Status.Phase
	}).Should(Equal(corev1.PodSucceeded))
	in := func(s *batchv1alpha1.JobRunStatus) {
		s.Incarnation.Pod = &batchv1alpha1.PodIdentity{Namespace: w.ns, Name: pod.Name, UID: pod.UID, StartedAt: pod.CreationTimestamp}
	}
	inPodThatIsGone := func(s *batchv1alpha1.JobRunStatus) {
		s.Incarnation.Pod = &batchv1alpha1.PodIdentity{Namespace: w.ns, Name: "gone", UID: "gone", StartedAt: pod.CreationTimestamp}
	}
	w.claimed(w.httpRun("a", s.URL), in)
	w.claimed(w.httpRun("b", s.URL), inPodThatIsGone)

	m := w.start(elected)
	for _, name := range []string{"a", "b"} {
		w.Expect(w.eventually(name, batchv1alpha1.JobRunFailed).Status.Slot).To(Equal(batchv1alpha1.SlotFree))
		w.settled(name, batchv1alpha1.ConditionComplete)
	}
	w.Expect(s.runs()).To(Equal([]string{"a-r1", "b-r1"}))
	w.idempotent(m)
}

func TestACallOfAManagerWhosePodRunsKeepsItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.ns, Name: "manager", Annotations: map[string]string{fakekubelet.AnnotationRunsFor: fakekubelet.RunsUntilFinished},
	}}
	pod.Spec.Containers = []corev1.Container{{Name: "manager", Image: "example.org/manager"}}
	w.create(pod)
	w.Eventually(func() corev1.PodPhase {
		w.Expect(w.Get(w.ctx, client.ObjectKeyFromObject(pod), pod)).To(Succeed())
		return pod.Status.Phase
	}).Should(Equal(corev1.PodRunning))
	w.queue("default", 1)
	w.claimed(w.httpRun("a", s.URL, retries(0)), func(s *batchv1alpha1.JobRunStatus) {
		s.Incarnation.Pod = &batchv1alpha1.PodIdentity{Namespace: w.ns, Name: pod.Name, UID: pod.UID, StartedAt: metav1.Now()}
	})
	w.create(w.httpRun("b", s.URL))

	m := w.start(elected)
	w.Expect(w.eventually("a", batchv1alpha1.JobRunFailed).Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
	w.idempotent(m)
	w.Expect(w.get("a").Status.Slot).To(Equal(batchv1alpha1.SlotHeld))
	w.Expect(s.log()).To(BeEmpty(), "the only slot is used")

	ctx, cancel := w.patiently()
	defer cancel()
	w.Expect(kubelet.Finish(ctx, client.ObjectKeyFromObject(pod), 0)).To(Succeed())
	m = w.start(elected)
	w.slotFree("a")
	w.eventually("b", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}
