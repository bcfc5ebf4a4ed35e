// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// misfits are what a queue as sharing returns it can never admit: what needs it, and the queue that can.
var misfits = map[string]struct {
	kind            string
	claims          []batchv1alpha1.ResourceClaim
	reason, message string
	edit            func(*batchv1alpha1.QueueConcurrency)
}{
	"an unknown type": {
		kind: "poem", reason: batchv1alpha1.ReasonUnknownType, message: `the queue lists types, and "poem" is none of them`,
		edit: func(c *batchv1alpha1.QueueConcurrency) {
			c.Types = append(c.Types, batchv1alpha1.TypeConcurrency{Name: "poem"})
		},
	},
	"an unknown resource": {
		claims: []batchv1alpha1.ResourceClaim{{Name: "gpu", Count: 1}}, reason: batchv1alpha1.ReasonUnknownResource, message: `the queue has no resource "gpu"`,
		edit: func(c *batchv1alpha1.QueueConcurrency) {
			c.Resources = append(c.Resources, batchv1alpha1.QueueResource{Name: "gpu", Capacity: 1})
		},
	},
	"more of a resource than there is": {
		claims: []batchv1alpha1.ResourceClaim{{Name: "ollama", Count: 3}}, reason: batchv1alpha1.ReasonExceedsCapacity,
		message: `it claims 3 of resource "ollama", and the queue has 1`,
		edit:    func(c *batchv1alpha1.QueueConcurrency) { c.Resources = thereAre(3, 2) },
	},
}

func TestAReservationThatItsQueueCanNeverGrantSaysSoHoldsUpNobodyAndGoesOnWhenTheQueueIsEdited(t *testing.T) {
	for name, c := range misfits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, bounding(sharing()))
			m := w.start()
			w.create(w.reserve("dr", func(dr *batchv1alpha1.DirectReservation) { dr.Spec.Type, dr.Spec.Claims = c.kind, c.claims }))
			w.Expect(w.stalled(w.ofReservation("dr"), c.reason)).To(ContainSubstring(c.message))
			w.create(w.act(s, "story-ollama-1"), w.reserve("other", needing("remote")))
			w.reservation("other", batchv1alpha1.ReservationGranted)
			s.end("story-ollama-1")
			w.eventually("story-ollama-1", batchv1alpha1.JobRunCompleted)
			w.Expect(w.readReservation("dr").Status.Phase).To(Equal(batchv1alpha1.ReservationPending))
			w.release("other")

			w.patch(q, func() { c.edit(q.Spec.Concurrency) })
			dr := w.reservation("dr", batchv1alpha1.ReservationGranted)
			w.Expect(meta.FindStatusCondition(dr.Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
			w.release("dr")
			w.reservation("dr", batchv1alpha1.ReservationReleased)
			w.idempotent(m)
		})
	}
}

func TestAQueueThatIsEditedUnderAReservationThatWaitsHoldsUpNobodyBehindIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	q := w.queue("default", 1, bounding(sharing()))
	m := w.start()
	w.create(w.act(s, "ollama-1"))
	w.Eventually(s.atWork).Should(HaveLen(1))
	w.create(w.reserve("dr", needing("ollama")))
	w.reservation("dr", batchv1alpha1.ReservationActive)
	w.create(w.act(s, "remote-2"))
	w.shows(q, 1, 1, 0)
	w.Expect(s.atWork()).To(Equal([]string{"ollama-1"}))
	w.patch(q, func() { q.Spec.Concurrency.Resources = q.Spec.Concurrency.Resources[1:] })
	w.stalled(w.ofReservation("dr"), batchv1alpha1.ReasonUnknownResource)
	w.Eventually(s.atWork).Should(Equal([]string{"ollama-1", "remote-2"}), "what runs goes on, and what waits goes before it")

	w.patch(q, func() { q.Spec.Concurrency.Resources = thereAre(1, 2) })
	w.Eventually(w.ofReservation("dr")).ShouldNot(ContainElement(HaveField("Type", batchv1alpha1.ConditionStalled)))
	s.end("ollama-1")
	w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.release("dr")
	s.endAll()
	w.eventually("remote-2", batchv1alpha1.JobRunCompleted)
	w.idempotent(m)
}

func TestAReservationOfAMissingQueueWaitsForItVisiblyAndNoLongerThanItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	m := w.start()
	w.create(w.reserve("early", atQueue("late")), w.reserve("hopeless", atQueue("late"), waitingFor(2)), w.reserve("misfit", needing("ollama"), waitingFor(2)), w.act(s, "plain"))
	w.Expect(w.stalled(w.ofReservation("early"), batchv1alpha1.ReasonQueueNotFound)).
		To(Equal("JobQueue late does not exist in namespace " + w.ns + "; the reservation waits for it"))
	s.end("plain")
	w.eventually("plain", batchv1alpha1.JobRunCompleted)
	for _, name := range []string{"hopeless", "misfit"} {
		dr := w.reservation(name, batchv1alpha1.ReservationExpired)
		w.Expect(dr.Status.Reason).To(Equal(batchv1alpha1.ReasonWaitTimeout))
		w.Expect(dr.Status.FinishedAt.Time).To(BeTemporally(">=", dr.CreationTimestamp.Add(2*time.Second)))
		w.Expect(meta.FindStatusCondition(dr.Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil(), "it is over")
	}
	w.queue("late", 1)
	dr := w.reservation("early", batchv1alpha1.ReservationGranted)
	w.Expect(meta.FindStatusCondition(dr.Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
	w.release("early")
	w.reservation("early", batchv1alpha1.ReservationReleased)
	w.idempotent(m)
}

func TestAReservationOfATypeWithTheLimitNothingWaitsAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newStage(t)
	q := w.queue("default", 1, bounding(batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](1), Types: ofEach(0, 1)}))
	m := w.start()
	w.create(w.reserve("dr", needing("story")))
	w.Eventually(func() string { return w.readReservation("dr").Status.Reason }).Should(Equal(batchv1alpha1.ReasonWaitingForTurn))
	w.create(w.act(s, "research-1"))
	s.end("research-1")
	w.eventually("research-1", batchv1alpha1.JobRunCompleted)
	dr := w.readReservation("dr")
	w.Expect(dr.Status.Phase).To(Equal(batchv1alpha1.ReservationPending))
	w.Expect(meta.FindStatusCondition(dr.Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil(), "it is a pause")
	w.patch(q, func() { q.Spec.Concurrency.Types = ofEach(1, 1) })
	w.reservation("dr", batchv1alpha1.ReservationGranted)
	w.release("dr")
	w.reservation("dr", batchv1alpha1.ReservationReleased)
	w.idempotent(m)
}

func TestWhatAReservationHoldsOfATypeAndResourceOutlivesARestartOnlyWithASignOfItsHolder(t *testing.T) {
	for name, c := range map[string]struct {
		renewed bool
		first   []string // who is at work then
	}{
		"renewed":       {true, []string{"plain-2", "remote-3"}},
		"never renewed": {false, []string{"plain-2", "remote-3", "story-ollama-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newStage(t)
			q := w.queue("default", 1, bounding(sharing()))
			dr := w.grantedSince(w.reserve("dr", needing("story-ollama")), time.Now())
			if c.renewed {
				w.patch(dr, func() { dr.Spec.RenewTime = ptr.To(metav1.Now()) })
			}
			w.create(w.act(s, "story-ollama-1"), w.act(s, "plain-2"), w.act(s, "remote-3"))
			m := w.start()
			w.Eventually(s.atWork).Should(Equal(c.first))
			if c.renewed {
				w.shows(q, 1, 2, 1)
				w.Expect(s.atWork()).To(Equal(c.first))
				w.release("dr")
				w.reservation("dr", batchv1alpha1.ReservationReleased)
			} else {
				w.Expect(w.reservation("dr", batchv1alpha1.ReservationExpired).Status.Reason).To(Equal(batchv1alpha1.ReasonHolderLost))
			}
			s.endAll()
			for _, name := range []string{"story-ollama-1", "plain-2", "remote-3"} {
				w.eventually(name, batchv1alpha1.JobRunCompleted)
			}
			w.idempotent(m)
		})
	}
}

func TestKubectlTellsTheStoryOfAReservation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 1, bounding(sharing()))
	m := w.start()
	w.create(w.reserve("terminal", needing("story-ollama"), atQueue("default"), func(dr *batchv1alpha1.DirectReservation) { dr.Spec.HolderIdentity = "ada" }))
	tells := func() string {
		out, err := plane.Kubectl(w.ctx, "get", "dr", "terminal", "-n", w.ns).CombinedOutput()
		w.Expect(err).NotTo(HaveOccurred(), string(out))
		return string(out)
	}
	dr := w.reservation("terminal", batchv1alpha1.ReservationGranted)
	w.Expect(tells()).To(MatchRegexp(`terminal +Granted +default +story +ada +%s +Granted`, dr.Status.ExpiresAt.UTC().Format(time.RFC3339)))
	w.release("terminal")
	w.reservation("terminal", batchv1alpha1.ReservationReleased)
	w.Expect(tells()).To(MatchRegexp(`terminal +Released +default +story +ada .* Released`))
	w.idempotent(m)
}
