// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

// The rows about reservations of the table in design section 6.

// activeSince leaves a reservation that the crashed manager had made the next in line.
func (w *world) activeSince(dr *batchv1alpha1.DirectReservation, at time.Time) *batchv1alpha1.DirectReservation {
	w.t.Helper()
	w.create(dr)
	reservation.Activate(dr, crashedEpoch, at)
	w.Expect(w.Status().Update(w.ctx, dr)).To(Succeed())
	return dr
}

// grantedSince leaves a reservation that the crashed manager had granted.
func (w *world) grantedSince(dr *batchv1alpha1.DirectReservation, at time.Time) *batchv1alpha1.DirectReservation {
	w.t.Helper()
	w.activeSince(dr, at)
	reservation.Grant(dr, crashedEpoch, at)
	w.Expect(w.Status().Update(w.ctx, dr)).To(Succeed())
	return dr
}

func TestAReservationWithoutASignOfItsHolderExpiresAndDispatchResumes(t *testing.T) {
	const lost = " when the previous instance stopped, and its holder shows no sign of life"
	for name, c := range map[string]struct {
		leave           func(w *world, dr *batchv1alpha1.DirectReservation)
		reason, message string
	}{
		"Active, past the end of its wait": {
			leave:  func(w *world, dr *batchv1alpha1.DirectReservation) { w.activeSince(dr, time.Now().Add(-time.Hour)) },
			reason: batchv1alpha1.ReasonWaitTimeout, message: "no slot was free within 10m0s",
		},
		"Granted, past the end of its lease": {
			leave:  func(w *world, dr *batchv1alpha1.DirectReservation) { w.grantedSince(dr, time.Now().Add(-time.Hour)) },
			reason: batchv1alpha1.ReasonLeaseExpired, message: "the lease of 5m0s was not renewed in time",
		},
		"Active and never renewed": {
			leave:  func(w *world, dr *batchv1alpha1.DirectReservation) { w.activeSince(dr, time.Now()) },
			reason: batchv1alpha1.ReasonHolderLost, message: "Scheduler crash recovery: reservation was Active" + lost,
		},
		"Granted and never renewed": {
			leave:  func(w *world, dr *batchv1alpha1.DirectReservation) { w.grantedSince(dr, time.Now()) },
			reason: batchv1alpha1.ReasonHolderLost, message: "Scheduler crash recovery: reservation was Granted" + lost,
		},
		"Granted without an epoch": {
			leave: func(w *world, dr *batchv1alpha1.DirectReservation) {
				w.grantedSince(dr, time.Now())
				dr.Status.Epoch = ""
				w.Expect(w.Status().Update(w.ctx, dr)).To(Succeed())
			},
			reason: batchv1alpha1.ReasonHolderLost, message: "Scheduler crash recovery: reservation was Granted" + lost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, nil)
			w.queue("default", 1)
			c.leave(w, w.reserve("dr"))
			w.create(w.httpRun("a", s.URL))

			m := w.start()
			dr := w.reservation("dr", batchv1alpha1.ReservationExpired)
			w.Expect(dr.Status.Reason).To(Equal(c.reason))
			w.Expect(dr.Status.Message).To(Equal(c.message))
			w.Expect(dr.Status.FinishedAt).NotTo(BeNil())
			w.eventually("a", batchv1alpha1.JobRunCompleted)
			w.Expect(w.summary(m)).To(counts(0, 0, 0, 0))
			w.Expect(m.log.with("reservation expired")).To(ConsistOf(And(
				HaveKeyWithValue("name", "dr"), HaveKeyWithValue("reason", c.reason), HaveKeyWithValue("message", c.message))))
			w.idempotent(m)
		})
	}
}

func TestAReservationThatItsHolderGoesOnRenewingSurvives(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(w *world, dr *batchv1alpha1.DirectReservation)
		phase batchv1alpha1.DirectReservationPhase
	}{
		"Granted": {
			leave: func(w *world, dr *batchv1alpha1.DirectReservation) { w.grantedSince(dr, time.Now().Add(-time.Minute)) },
			phase: batchv1alpha1.ReservationGranted,
		},
		"Granted, and past the end of its lease but for renewals that nobody saw": {
			leave: func(w *world, dr *batchv1alpha1.DirectReservation) { w.grantedSince(dr, time.Now().Add(-time.Hour)) },
			phase: batchv1alpha1.ReservationGranted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, nil)
			w.queue("default", 1)
			dr := w.reserve("dr")
			c.leave(w, dr)
			renewed := metav1.NewTime(time.Now().Add(-10 * time.Second).Truncate(time.Second))
			w.patch(dr, func() { dr.Spec.RenewTime = &renewed })
			w.create(w.httpRun("a", s.URL))

			m := w.start()
			w.summary(m)
			w.Eventually(func() *metav1.Time { return w.reservation("dr", c.phase).Status.RenewedAt }).ShouldNot(BeNil())
			dr = w.reservation("dr", c.phase)
			w.Expect(dr.Status.ExpiresAt.Time).To(BeTemporally("~", renewed.Add(300*time.Second), 0))
			w.idempotent(m)
			w.Expect(s.log()).To(BeEmpty(), "the slot is the holder's")

			m = w.start()
			w.release("dr")
			w.reservation("dr", batchv1alpha1.ReservationReleased)
			w.eventually("a", batchv1alpha1.JobRunCompleted)
			w.idempotent(m)
		})
	}
}

func TestAnActiveReservationWhoseHolderRenewsGetsTheSlotAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 1)
	dr := w.activeSince(w.reserve("dr"), time.Now().Add(-time.Minute))
	renewed := metav1.Now()
	w.patch(dr, func() { dr.Spec.RenewTime = &renewed })
	w.create(w.httpRun("a", s.URL))
	m := w.start()
	dr = w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.Expect(dr.Status.Epoch).NotTo(Equal(crashedEpoch))
	w.release("dr")
	w.eventually("a", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}

func TestAPendingReservationOutlivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := w.queue("default", 1, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true })
	w.create(w.reserve("dr"))
	m := w.start()
	w.Eventually(func() *metav1.Time { return w.reservation("dr", batchv1alpha1.ReservationPending).Status.ExpiresAt }).ShouldNot(BeNil())
	w.idempotent(m)
	m = w.start()
	w.suspend(q, false)
	w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.release("dr")
	w.reservation("dr", batchv1alpha1.ReservationReleased)
	w.idempotent(m)
}
