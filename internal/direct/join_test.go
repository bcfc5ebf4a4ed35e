// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhatARequestDoesAboutAReservationThatHasItsName(t *testing.T) {
	deleting := metav1.NewTime(noon)
	active := func(d *batchv1alpha1.DirectReservation) { d.Status.Phase = batchv1alpha1.ReservationActive }
	served := func(d *batchv1alpha1.DirectReservation) { d.Annotations[batchv1alpha1.AnnotationPassedOn] = "old" }
	for name, c := range map[string]struct {
		found *batchv1alpha1.DirectReservation
		now   int
		alone bool
		want  standing
		code  string
	}{
		"it is over and was never granted":            {pending(of("old"), ended("Expired")), 1, true, replace, ""},
		"it is over after a grant nobody used":        {pending(of("old"), granted, ended("Released")), 1, true, replace, ""},
		"it expired after a grant nobody used":        {pending(of("old"), granted, ended("Expired")), 1, true, replace, ""},
		"it is over, and its request was passed on":   {pending(of("old"), granted, served, ended("Released")), 1, true, leave, "AlreadyServed"},
		"it expired, and its request was passed on":   {pending(of("old"), granted, served, ended("Expired")), 1, true, leave, "AlreadyServed"},
		"it is being released":                        {pending(of("old"), func(d *batchv1alpha1.DirectReservation) { d.Spec.Release = true }), 100, true, leave, "InProgress"},
		"it is being deleted":                         {pending(of("old"), func(d *batchv1alpha1.DirectReservation) { d.DeletionTimestamp = &deleting }), 100, true, leave, "InProgress"},
		"it is granted, and its front alive":          {pending(of("old"), granted), 1, true, leave, "InProgress"},
		"it is granted, and its front silent":         {pending(of("old"), granted), 100, true, leave, "InProgress"},
		"it waits, and its front is alive":            {pending(of("old")), 29, true, leave, "InProgress"},
		"it waits, and its front is silent":           {pending(of("old")), 30, true, takeOver, ""},
		"it is next in line, and its front is silent": {pending(of("old"), active), 30, true, takeOver, ""},
		"it was left by this process":                 {pending(of("me")), 1, true, takeOver, ""},
		"it is another request's of this process":     {pending(of("me")), 1, false, leave, "InProgress"},
		"it is nobody's for long, but for two of us":  {pending(of("me")), 30, false, takeOver, ""},
		"its front is silent, but it is another wish": {pending(of("old"), func(d *batchv1alpha1.DirectReservation) { d.Spec.Type = "other" }), 30, true, leave, "IdempotencyKeyReused"},
		"its front is silent, and its claims are more": {pending(of("old"), func(d *batchv1alpha1.DirectReservation) {
			d.Spec.Claims = []batchv1alpha1.ResourceClaim{{Name: "a", Count: 1}}
		}), 30, true, leave, "IdempotencyKeyReused"},
		"somebody made it by hand": {pending(of("")), 30, true, leave, "IdempotencyKeyReused"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := stand(c.found, pending(), c.alone, at(c.now))
			code := ""
			if p != nil {
				code = p.code
			}
			if s != c.want || code != c.code {
				t.Errorf("%d %q, want %d %q", s, code, c.want, c.code)
			}
		})
	}
}

func TestAReservationThatIsTakenOverKeepsItsPlace(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(of("old")))
	b.clock.SetTime(at(40))
	h, p := b.reserve(t.Context(), pending())
	g.Expect(p).To(BeNil())
	g.Expect(string(h.current.UID)).To(Equal("uid-shell"))
	g.Expect(b.stored().Annotations[batchv1alpha1.AnnotationFront]).To(Equal("me"))
	g.Expect(b.stored().Spec.RenewTime.Time.UTC()).To(Equal(at(40)))
	g.Expect(h.next).To(Equal(at(50)))
}

func TestATakeOverThatLosesItsRaceIsJudgedAgain(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(of("old")))
	b.clock.SetTime(at(40))
	b.onUpdate(func(send func() error) error {
		b.onUpdate(nil)
		d := b.stored()
		of("faster")(d)
		sign(d, at(40))
		g.Expect(b.api.Update(t.Context(), d)).To(Succeed())
		return send()
	})
	_, p := b.reserve(t.Context(), pending())
	g.Expect(p.code).To(Equal("InProgress"))
	g.Expect(b.stored().Annotations[batchv1alpha1.AnnotationFront]).To(Equal("faster"))
	g.Expect(b.stored().Spec.Release).To(BeFalse())
	g.Expect(b.inboxes.count(shell)).To(BeZero())
}

func TestANameIsAFunctionOfWhoseKeyItIs(t *testing.T) {
	g := NewWithT(t)
	to := route{namespace: "ns", queue: "main"}
	name := reservationName("ada", to, "once")
	g.Expect(name).To(MatchRegexp(`^http-[0-9a-f]{32}$`))
	g.Expect(reservationName("ada", to, "once")).To(Equal(name))
	seen := map[string]bool{name: true}
	for _, other := range []string{
		reservationName("bob", to, "once"), reservationName("ada", to, "twice"), reservationName("ada", route{namespace: "ns", queue: "other"}, "once"),
		reservationName("ada", to, ""), reservationName("ada", to, ""), reservationName("", route{namespace: "ada", queue: "ns"}, "mainonce"),
	} {
		g.Expect(isLabel(other)).To(BeTrue())
		g.Expect(seen[other]).To(BeFalse())
		seen[other] = true
	}
}

func TestTheHolderIsCutToWhatFits(t *testing.T) {
	g := NewWithT(t)
	g.Expect(cutTo("ada", 3)).To(Equal("ada"))
	g.Expect(cutTo("äöü", 2)).To(Equal("äö"))
	g.Expect(cutTo("", 2)).To(BeEmpty())
}

func TestAReservationThatIsDeletedBetweenTwoLooksIsMadeAnew(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(ended("Expired")))
	h, p := b.reserve(t.Context(), pending(func(d *batchv1alpha1.DirectReservation) { d.UID = "" }))
	g.Expect(p).To(BeNil())
	g.Expect(h.current.Status.Phase.Terminal()).To(BeFalse())
	g.Expect(h.renewed).To(Equal(noon))
	g.Expect(h.expiry()).To(Equal(noon.Add(30 * time.Second)))
}
