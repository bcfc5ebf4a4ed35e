// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// needing gives a reservation the type and claims that a name like "story-ollama" says.
func needing(needs string) func(*batchv1alpha1.DirectReservation) {
	return func(dr *batchv1alpha1.DirectReservation) { dr.Spec.Type, dr.Spec.Claims = needsOf(needs) }
}

// waitingFor gives a reservation another bound of its wait than the default.
func waitingFor(seconds int32) func(*batchv1alpha1.DirectReservation) {
	return func(dr *batchv1alpha1.DirectReservation) { dr.Spec.WaitTimeoutSeconds = seconds }
}

// atQueue gives a reservation another queue than the default.
func atQueue(name string) func(*batchv1alpha1.DirectReservation) {
	return func(dr *batchv1alpha1.DirectReservation) { dr.Spec.Queue = name }
}

// ofReservation returns the conditions of a reservation, for stalled.
func (w *world) ofReservation(name string) func() []metav1.Condition {
	return func() []metav1.Condition { return w.readReservation(name).Status.Conditions }
}

// sharing is a queue with room for everything but two of one type or resource.
func sharing() batchv1alpha1.QueueConcurrency {
	return batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](5), Types: ofEach(1, 1), Resources: thereAre(1, 2)}
}

func TestAReservationWaitsForItsTypeAndClaimsHoldsDispatchAndCountsBesideTheRuns(t *testing.T) {
	for name, c := range map[string]struct{ needs, taken, alike, other string }{
		"a type":              {needs: "story", taken: "story-1", alike: "story-2", other: "research-3"},
		"a resource":          {needs: "ollama", taken: "ollama-1", alike: "ollama-2", other: "remote-3"},
		"a type and resource": {needs: "story-ollama", taken: "ollama-1", alike: "story-2", other: "research-remote-3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, bounding(sharing()))
			m := w.start()
			w.create(w.act(s, c.taken))
			w.Eventually(s.atWork).Should(Equal([]string{c.taken}))
			w.create(w.reserve("dr", needing(c.needs)))
			w.reservation("dr", batchv1alpha1.ReservationActive)
			w.create(w.act(s, c.alike), w.act(s, c.other))
			w.shows(q, 2, 1, 0)
			w.Expect(w.readReservation("dr").Status.Phase).To(Equal(batchv1alpha1.ReservationActive))
			w.Expect(s.began("")).To(Equal([]string{c.taken}), "while it waits nothing starts, not even what needs something else")

			s.end(c.taken)
			w.reservation("dr", batchv1alpha1.ReservationGranted)
			w.Eventually(s.atWork).Should(Equal([]string{c.other}))
			w.shows(q, 1, 1, 1)
			w.Expect(s.atWork()).To(Equal([]string{c.other}), "what it reserves is not for runs")
			w.release("dr")
			w.reservation("dr", batchv1alpha1.ReservationReleased)
			w.Eventually(s.atWork).Should(ConsistOf(c.alike, c.other))
			s.endAll()
			w.eventually(c.alike, batchv1alpha1.JobRunCompleted)
			w.eventually(c.other, batchv1alpha1.JobRunCompleted)
			w.idempotent(m)
		})
	}
}

func TestReservationsOfOneResourceAreServedInOrderAndOthersPassThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	q := w.queue("default", 1, bounding(sharing()))
	m := w.start()
	w.create(w.act(s, "ollama-1"))
	w.Eventually(s.atWork).Should(HaveLen(1))
	w.create(w.act(s, "ollama-2"))
	w.shows(q, 1, 1, 0)
	needs := map[string]string{"z": "ollama", "y": "ollama", "x": "remote", "w": "ollama"}
	for _, name := range []string{"z", "y", "x", "w"} {
		w.create(w.reserve(name, needing(needs[name])))
	}
	w.reservation("x", batchv1alpha1.ReservationGranted)
	w.shows(q, 1, 1, 1)
	s.end("ollama-1")
	for i, name := range []string{"z", "y", "w"} {
		w.reservation(name, batchv1alpha1.ReservationGranted)
		for _, later := range []string{"z", "y", "w"}[i+1:] {
			w.Expect(w.readReservation(later).Status.GrantedAt).To(BeNil(), "%s before %s", later, name)
		}
		w.Expect(s.began("")).To(HaveLen(1), "reservations come first")
		w.release(name)
	}
	w.Eventually(s.atWork).Should(Equal([]string{"ollama-2"}))
	w.release("x")
	s.endAll()
	w.eventually("ollama-2", batchv1alpha1.JobRunCompleted)
	w.reservation("x", batchv1alpha1.ReservationReleased)
	w.idempotent(m)
}

func TestARunHasItsTurnAfterAsManyReservationsInARowAsTheQueueSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.queue("default", 1, func(q *batchv1alpha1.JobQueue) {
		q.Spec.Direct = &batchv1alpha1.QueueDirect{MaxConsecutive: ptr.To[int32](2)}
	})
	m := w.start()
	w.create(w.act(s, "run-0"))
	w.Eventually(s.atWork).Should(Equal([]string{"run-0"}))
	w.create(w.act(s, "run-1"), w.act(s, "run-2"))
	holders := []string{"a", "b", "c", "d", "e"}
	for _, name := range holders {
		w.create(w.reserve(name))
	}
	w.reservation("a", batchv1alpha1.ReservationActive)
	s.end("run-0")

	for _, next := range []string{"a", "b", "run-1", "c", "d", "run-2", "e"} {
		if slices.Contains(holders, next) {
			w.reservation(next, batchv1alpha1.ReservationGranted)
			w.Expect(s.atWork()).To(BeEmpty())
			w.release(next)
			continue
		}
		w.Eventually(s.atWork).Should(Equal([]string{next}))
		granted := 0
		for _, name := range holders {
			if w.readReservation(name).Status.GrantedAt != nil {
				granted++
			}
		}
		w.Expect(granted).To(Equal(2 * (len(s.began("run")) - 1)))
		s.end(next)
	}
	w.reservation("e", batchv1alpha1.ReservationReleased)
	w.Expect(s.began("")).To(Equal([]string{"run-0", "run-1", "run-2"}))
	w.idempotent(m)
}

func TestLimitsThatAreLoweredTakeNothingFromAHolderAndHoldBackTheNext(t *testing.T) {
	for name, rules := range knobs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, bounding(*rules(2)))
			m := w.start()
			turn := func(n int32) {
				t.Helper()
				w.patch(q, func() { q.Spec.Concurrency = rules(n) })
			}
			w.create(w.reserve("a", needing("story-ollama")), w.reserve("b", needing("story-ollama")))
			w.reservation("a", batchv1alpha1.ReservationGranted)
			w.reservation("b", batchv1alpha1.ReservationGranted)
			w.create(w.act(s, "story-ollama-1"))
			w.shows(q, 1, 0, 2)

			turn(1)
			w.shows(q, 1, 0, 2)
			w.release("a")
			w.shows(q, 1, 0, 1)
			w.Expect(s.began("")).To(BeEmpty())
			turn(0)
			w.shows(q, 1, 0, 1)
			w.Expect(w.readReservation("b").Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
			w.release("b")
			w.create(w.reserve("c", needing("story-ollama")))
			w.shows(q, 1, 0, 0)
			w.Expect(w.readReservation("c").Status.GrantedAt).To(BeNil())
			w.Expect(s.began("")).To(BeEmpty())

			turn(1)
			w.reservation("c", batchv1alpha1.ReservationGranted)
			w.shows(q, 1, 0, 1)
			w.Expect(s.began("")).To(BeEmpty())
			w.release("c")
			s.end("story-ollama-1")
			w.eventually("story-ollama-1", batchv1alpha1.JobRunCompleted)
			w.idempotent(m)
		})
	}
}

func TestDeletingAReservationThatWaitsLetsTheQueueGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	w.queue("default", 1, bounding(sharing()))
	m := w.start()
	w.create(w.act(s, "ollama-1"))
	w.Eventually(s.atWork).Should(HaveLen(1))
	w.create(w.reserve("dr", needing("ollama")))
	dr := w.reservation("dr", batchv1alpha1.ReservationActive)
	w.create(w.act(s, "remote-2"))
	w.Eventually(func() *metav1.Condition {
		return meta.FindStatusCondition(w.readQueue("default").Status.Conditions, batchv1alpha1.ConditionAdmitting)
	}).Should(HaveValue(HaveField("Reason", "ResourceShort")))
	w.Expect(s.atWork()).To(Equal([]string{"ollama-1"}))
	w.Expect(w.Delete(w.ctx, dr)).To(Succeed())
	w.Eventually(s.atWork).Should(Equal([]string{"ollama-1", "remote-2"}))
	s.endAll()
	w.eventually("ollama-1", batchv1alpha1.JobRunCompleted)
	w.eventually("remote-2", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}

func TestAReservationGoesWhenItsTimeAfterItsEndIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 1)
	w.queue("closed", 0)
	m := w.start()
	keeping := func(seconds int32) func(*batchv1alpha1.DirectReservation) {
		return func(dr *batchv1alpha1.DirectReservation) { dr.Spec.TTLSecondsAfterFinished = &seconds }
	}
	w.create(w.reserve("released", keeping(3)), w.reserve("expired", keeping(0), atQueue("closed"), waitingFor(1)), w.reserve("kept"), w.reserve("longer", keeping(3600)))
	begun := time.Now().Truncate(time.Second)
	for _, name := range []string{"released", "kept", "longer"} {
		w.reservation(name, batchv1alpha1.ReservationGranted)
		w.release(name)
	}
	w.Eventually(w.reservationNames).Should(ConsistOf("kept", "longer"))
	w.Expect(time.Now()).To(BeTemporally(">=", begun.Add(3*time.Second)))
	w.reservation("longer", batchv1alpha1.ReservationReleased)
	w.Expect(w.reservationNames()).To(ConsistOf("kept", "longer"))
	w.idempotent(m)
}

// reservations returns those of the namespace.
func (w *world) reservations() []batchv1alpha1.DirectReservation {
	w.t.Helper()
	list := &batchv1alpha1.DirectReservationList{}
	w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	return list.Items
}

func (w *world) reservationNames() []string {
	w.t.Helper()
	names := []string{}
	for _, dr := range w.reservations() {
		names = append(names, dr.Name)
	}
	return names
}
