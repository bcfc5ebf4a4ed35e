// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// reserve builds a reservation at the default queue.
func (w *world) reserve(name string, change ...func(*batchv1alpha1.DirectReservation)) *batchv1alpha1.DirectReservation {
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	for _, c := range change {
		c(dr)
	}
	return dr
}

// leasedFor gives a reservation another lease than the default.
func leasedFor(seconds int32) func(*batchv1alpha1.DirectReservation) {
	return func(dr *batchv1alpha1.DirectReservation) { dr.Spec.LeaseDurationSeconds = seconds }
}

// readReservation reads a reservation.
func (w *world) readReservation(name string) *batchv1alpha1.DirectReservation {
	w.t.Helper()
	dr := &batchv1alpha1.DirectReservation{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, dr)).To(Succeed())
	return dr
}

// reservation waits until a reservation is in the phase and returns it.
func (w *world) reservation(name string, phase batchv1alpha1.DirectReservationPhase) *batchv1alpha1.DirectReservation {
	w.t.Helper()
	w.Eventually(func() batchv1alpha1.DirectReservationPhase { return w.readReservation(name).Status.Phase }).
		Should(Equal(phase), func() string { return w.story() })
	return w.readReservation(name)
}

// release gives a reservation back.
func (w *world) release(name string) {
	w.t.Helper()
	dr := w.readReservation(name)
	w.patch(dr, func() { dr.Spec.Release = true })
}

// busy is a server whose path /hold answers when the test lets it.
func busy(t *testing.T) (*server, func()) {
	hold, release := block(t)
	return newServer(t, map[string]http.HandlerFunc{"/hold": hold}), release
}

func TestAReservationIsServedBetweenTheRunningWorkAndTheRestOfTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	m := w.start()
	w.create(w.httpRun("running", s.URL+"/hold"))
	w.Eventually(s.runs).Should(Equal([]string{"running"}))
	w.create(w.httpRun("waiting", s.URL), w.reserve("dr"))

	dr := w.reservation("dr", batchv1alpha1.ReservationActive)
	w.Expect(dr.Status.ExpiresAt.Time).To(BeTemporally("~", dr.Status.ActivatedAt.Add(600*time.Second), 0))
	w.Expect(w.get("running").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning), "a reservation takes nothing from anybody")
	release()
	w.eventually("running", batchv1alpha1.JobRunCompleted)
	dr = w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.Expect(dr.Status.ExpiresAt.Time).To(BeTemporally("~", dr.Status.GrantedAt.Add(300*time.Second), 0))
	w.Eventually(func() batchv1alpha1.JobQueueStatus { return w.readQueue("default").Status }).
		Should(And(HaveField("Queued", BeEquivalentTo(1)), HaveField("Running", BeZero()), HaveField("Reserved", BeEquivalentTo(1))))
	w.Consistently(w.phase("waiting"), time.Second).Should(Equal(string(batchv1alpha1.JobRunQueued)), "the slot is the holder's")

	w.release("dr")
	dr = w.reservation("dr", batchv1alpha1.ReservationReleased)
	w.Expect(dr.Status.Reason).To(Equal(batchv1alpha1.ReasonReleased))
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.Expect(s.runs()).To(Equal([]string{"running", "waiting"}))
	w.idempotent(m)
}

func TestAReservationIsServedBeforeRunsThatHaveWaitedLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	q := w.queue("default", 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true })
	m := w.start()
	w.create(w.httpRun("a", s.URL), w.httpRun("b", s.URL), w.reserve("dr"))
	w.Eventually(func() string { return w.readReservation("dr").Status.Reason }).Should(Equal(batchv1alpha1.ReasonWaitingForTurn))
	w.suspend(q, false)
	w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.Expect(s.log()).To(BeEmpty())
	w.release("dr")
	w.Eventually(s.runs).Should(Equal([]string{"a", "b"}))
	w.idempotent(m)
}

func (w *world) readQueue(name string) *batchv1alpha1.JobQueue {
	w.t.Helper()
	q := &batchv1alpha1.JobQueue{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, q)).To(Succeed())
	return q
}

func TestALeaseThatIsNotRenewedEndsAfterTheAllowanceForClocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	w.start()
	w.create(w.reserve("dr", leasedFor(1)))
	granted := w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.create(w.httpRun("waiting", s.URL))
	dr := w.reservation("dr", batchv1alpha1.ReservationExpired)
	w.Expect(dr.Status.Reason).To(Equal(batchv1alpha1.ReasonLeaseExpired))
	end := granted.Status.GrantedAt.Add(time.Second)
	w.Expect(granted.Status.ExpiresAt.Time).To(BeTemporally("==", end))
	w.Expect(dr.Status.FinishedAt.Time).To(BeTemporally(">=", end.Add(allowance)))
	r := w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.Expect(r.Status.StartedAt.Time).To(BeTemporally(">=", end.Add(allowance)))
}

func TestARenewalProlongsTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 1)
	m := w.start()
	w.create(w.reserve("dr", leasedFor(2)))
	granted := w.reservation("dr", batchv1alpha1.ReservationGranted)
	end := granted.Status.ExpiresAt.Add(allowance)

	// The holder renews for as long as its first lease and the allowance would have lasted, and a little longer.
	dr := granted
	w.Eventually(func() time.Time {
		now := metav1.Now()
		w.patch(dr, func() { dr.Spec.RenewTime = &now })
		return now.Time
	}).WithPolling(500 * time.Millisecond).Should(BeTemporally(">", end.Add(time.Second)))
	last := dr.Spec.RenewTime
	w.Eventually(func() *metav1.Time { return w.readReservation("dr").Status.RenewedAt }).Should(HaveValue(BeComparableTo(*last)))
	w.Expect(w.readReservation("dr").Status).To(And(
		HaveField("Phase", batchv1alpha1.ReservationGranted), HaveField("ExpiresAt.Time", BeTemporally("==", last.Add(2*time.Second)))))

	expired := w.reservation("dr", batchv1alpha1.ReservationExpired)
	w.Expect(expired.Status.FinishedAt.Time).To(BeTemporally(">=", last.Add(2*time.Second+allowance)))
	w.idempotent(m)
}

func TestAReservationThatGetsNoSlotInTimeExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	w.queue("closed", 0)
	m := w.start()
	w.create(w.httpRun("running", s.URL+"/hold"))
	w.Eventually(s.runs).Should(Equal([]string{"running"}))
	short := func(dr *batchv1alpha1.DirectReservation) { dr.Spec.WaitTimeoutSeconds = 5 }
	w.create(w.httpRun("waiting", s.URL), w.reserve("active", short), w.reserve("pending", short, func(dr *batchv1alpha1.DirectReservation) { dr.Spec.Queue = "closed" }))
	w.reservation("active", batchv1alpha1.ReservationActive)

	for _, name := range []string{"active", "pending"} {
		dr := w.reservation(name, batchv1alpha1.ReservationExpired)
		w.Expect(dr.Status.Reason).To(Equal(batchv1alpha1.ReasonWaitTimeout))
		w.Expect(dr.Status.GrantedAt).To(BeNil())
		since := dr.CreationTimestamp.Time
		if name == "active" {
			since = dr.Status.ActivatedAt.Time
		}
		w.Expect(dr.Status.FinishedAt.Time).To(BeTemporally(">=", since.Add(5*time.Second)))
	}
	release()
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}

func TestDeletingAReservationFreesItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	m := w.start()
	w.create(w.reserve("dr"))
	dr := w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.create(w.httpRun("waiting", s.URL))
	w.Consistently(w.phase("waiting"), time.Second).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	w.Expect(w.Delete(w.ctx, dr)).To(Succeed())
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}

func TestReleasingAReservationThatWaitsGivesUpItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	q := w.queue("default", 1)
	m := w.start()
	w.create(w.httpRun("running", s.URL+"/hold"))
	w.Eventually(s.runs).Should(Equal([]string{"running"}))
	w.create(w.reserve("first"))
	w.reservation("first", batchv1alpha1.ReservationActive)
	w.create(w.reserve("second"), w.httpRun("waiting", s.URL))
	w.Eventually(func() string { return w.readReservation("second").Status.Reason }).Should(Equal(batchv1alpha1.ReasonWaitingForTurn))

	for _, name := range []string{"second", "first"} {
		w.release(name)
		w.Expect(w.reservation(name, batchv1alpha1.ReservationReleased).Status.GrantedAt).To(BeNil())
	}
	release()
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.suspend(q, true)
	w.create(w.reserve("third"))
	w.release("third")
	w.reservation("third", batchv1alpha1.ReservationReleased)
	w.suspend(q, false)
	w.idempotent(m)
}

func TestReservationsAreServedInTheirOrderBeforeAnyRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, release := busy(t)
	w.queue("default", 1)
	m := w.start()
	w.create(w.httpRun("running", s.URL+"/hold"))
	w.Eventually(s.runs).Should(Equal([]string{"running"}))
	names := []string{"c", "a", "b"}
	w.create(w.httpRun("waiting", s.URL))
	for _, name := range names {
		w.create(w.reserve(name))
	}
	w.reservation("c", batchv1alpha1.ReservationActive)
	release()
	for i, name := range names {
		w.reservation(name, batchv1alpha1.ReservationGranted)
		for _, later := range names[i+1:] {
			w.Expect(w.readReservation(later).Status.Phase).NotTo(Equal(batchv1alpha1.ReservationGranted), "%s before %s", later, name)
		}
		w.release(name)
	}
	w.eventually("waiting", batchv1alpha1.JobRunCompleted)
	w.Expect(strings.Join(s.runs(), " ")).To(Equal("running waiting"))
	w.idempotent(m)
}

func TestASuspendedQueueAndOneWithoutSlotsKeepReservationsPending(t *testing.T) {
	for name, change := range map[string]func(*batchv1alpha1.JobQueue, bool){
		"suspended": func(q *batchv1alpha1.JobQueue, closed bool) { q.Spec.Suspend = closed },
		"limit 0": func(q *batchv1alpha1.JobQueue, closed bool) {
			limit := int32(1)
			if closed {
				limit = 0
			}
			q.Spec.Concurrency.Limit = &limit
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			q := w.queue("default", 1, func(q *batchv1alpha1.JobQueue) { change(q, true) })
			m := w.start()
			w.create(w.reserve("dr"))
			w.Eventually(func() string { return w.readReservation("dr").Status.Reason }).Should(Equal(batchv1alpha1.ReasonWaitingForTurn))
			w.Consistently(func() batchv1alpha1.DirectReservationPhase { return w.readReservation("dr").Status.Phase }, time.Second).
				Should(Equal(batchv1alpha1.ReservationPending))
			w.patch(q, func() { change(q, false) })
			w.reservation("dr", batchv1alpha1.ReservationGranted)
			w.release("dr")
			w.reservation("dr", batchv1alpha1.ReservationReleased)
			w.idempotent(m)
		})
	}
}
