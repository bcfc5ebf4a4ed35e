// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestARunThatItsQueueCanNeverAdmitSaysSoHoldsUpNobodyAndGoesOnWhenTheQueueIsEdited(t *testing.T) {
	for name, c := range misfits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, bounding(sharing()))
			w.create(w.act(s, "misfit", func(r *batchv1alpha1.JobRun) { r.Spec.Type, r.Spec.Claims = c.kind, c.claims }))
			m := w.start()
			w.Expect(w.stalled(w.ofRun("misfit"), c.reason)).To(Equal(c.message + "; the run waits for the queue to change"))
			w.create(w.act(s, "story-ollama-1"))
			s.end("story-ollama-1")
			w.eventually("story-ollama-1", batchv1alpha1.JobRunCompleted)
			w.shows(q, 1, 0, 0)
			w.Expect(w.get("misfit").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
			w.idempotent(m)

			m = w.start()
			w.patch(q, func() { c.edit(q.Spec.Concurrency) })
			s.end("misfit")
			w.notStalled(w.eventually("misfit", batchv1alpha1.JobRunCompleted).Name)
			w.Expect(s.began("")).To(Equal([]string{"story-ollama-1", "misfit"}))
			w.idempotent(m)
		})
	}
}

func TestBadReservationsAreRefusedInWordsThatSayWhatToWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct{ spec, says string }{
		"a lease above the maximum":    {`leaseDurationSeconds: 601`, "spec.leaseDurationSeconds: Invalid value: 601: spec.leaseDurationSeconds in body should be less than or equal to 600"},
		"a lease of no time":           {`leaseDurationSeconds: 0`, "should be greater than or equal to 1"},
		"a wait of two days":           {`waitTimeoutSeconds: 172800`, "should be less than or equal to 86400"},
		"a claim of nothing":           {`claims: [{name: ollama, count: 0}]`, "should be greater than or equal to 1"},
		"the same claim twice":         {`claims: [{name: ollama, count: 1}, {name: ollama, count: 2}]`, "Duplicate value"},
		"a renewal in the Middle Ages": {`renewTime: "1066-10-14T09:00:00Z"`, "write a time of the years 1970 to 2199"},
		"a queue that can be none":     {`queue: No_Queue`, "spec.queue"},
		"a field that does not exist":  {`leaseSeconds: 3`, `unknown field "spec.leaseSeconds"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := w.apply("kind: DirectReservation\nmetadata: {name: bad}\nspec: {" + c.spec + "}")
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring(c.says))
		})
	}
	w.Expect(w.reservations()).To(BeEmpty())
}

func TestReleasingWhatIsOverChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	q := w.queue("default", 1)
	w.queue("closed", 0)
	m := w.start()
	w.create(w.reserve("expired", atQueue("closed"), waitingFor(1)), w.reserve("released"))
	w.reservation("released", batchv1alpha1.ReservationGranted)
	w.release("released")
	before := map[string]batchv1alpha1.DirectReservationStatus{
		"released": w.reservation("released", batchv1alpha1.ReservationReleased).Status,
		"expired":  w.reservation("expired", batchv1alpha1.ReservationExpired).Status,
	}
	w.create(w.act(s, "next"))
	w.Eventually(s.atWork).Should(Equal([]string{"next"}))
	w.release("expired")
	w.release("released")
	dr := w.readReservation("released")
	dr.Spec.Release = false
	w.Expect(w.Update(w.ctx, dr)).To(MatchError(ContainSubstring("release cannot be taken back; create a new reservation instead")))
	dr = w.readReservation("expired")
	dr.Status.Phase = batchv1alpha1.ReservationGranted
	w.Expect(w.Status().Update(w.ctx, dr)).To(MatchError(ContainSubstring("a terminal phase never changes")))
	w.settle()
	for name, status := range before {
		dr := w.readReservation(name)
		status.ObservedGeneration = dr.Generation // that it was asked for is seen, and no more
		for i := range status.Conditions {
			status.Conditions[i].ObservedGeneration = dr.Generation
		}
		w.Expect(dr.Status).To(Equal(status), name)
	}
	w.shows(q, 0, 1, 0)
	s.end("next")
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}

func TestAQueueThatIsDeletedStopsNothingAndWhatWaitsGoesOnWhenItIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	q := w.queue("gone", 1, bounding(sharing()))
	m := w.start()
	w.create(w.act(s, "ollama-1", inQueue("gone")))
	w.Eventually(s.atWork).Should(Equal([]string{"ollama-1"}))
	w.create(w.reserve("dr", atQueue("gone"), needing("ollama")))
	w.reservation("dr", batchv1alpha1.ReservationActive)
	w.create(w.act(s, "ollama-2", inQueue("gone")))
	w.Expect(w.Delete(w.ctx, q)).To(Succeed())
	w.stalled(w.ofReservation("dr"), batchv1alpha1.ReasonQueueNotFound)
	w.stalled(w.ofRun("ollama-2"), batchv1alpha1.ReasonQueueNotFound)
	w.Expect(s.atWork()).To(Equal([]string{"ollama-1"}))

	w.queue("gone", 1, bounding(sharing()))
	w.Eventually(w.ofRun("ollama-2")).ShouldNot(ContainElement(HaveField("Type", batchv1alpha1.ConditionStalled)))
	w.Expect(s.began("")).To(Equal([]string{"ollama-1"}), "what is at work still counts")
	s.end("ollama-1")
	w.notStalled(w.eventually("ollama-1", batchv1alpha1.JobRunCompleted).Name)
	dr := w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.Expect(dr.Status.Conditions).NotTo(ContainElement(HaveField("Type", batchv1alpha1.ConditionStalled)))
	w.release("dr")
	s.end("ollama-2")
	w.eventually("ollama-2", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}
