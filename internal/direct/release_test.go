// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAReleaseIsTriedUntilItIsAnswered(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(granted))
	h := b.held()
	failures := []error{conflict, errAway, conflict}
	b.onUpdate(func(send func() error) error {
		if len(failures) > 0 {
			err := failures[0]
			failures = failures[1:]
			return err
		}
		return send()
	})
	h.end()
	g.Expect(b.inboxes.count(shell)).To(Equal(1), "its name is in use")
	b.step(1, b.timing.pause)
	b.gate.close()
	g.Expect(b.gate.empty(t.Context())).To(BeTrue())
	g.Expect(b.stored().Spec.Release).To(BeTrue())
	g.Expect(b.inboxes.count(shell)).To(BeZero())
}

func TestWhatIsNotOursOrOverIsNotReleased(t *testing.T) {
	for name, stored := range map[string]change{
		"another front's":         of("another"),
		"over":                    ended(batchv1alpha1.ReservationExpired),
		"another one of its name": func(d *batchv1alpha1.DirectReservation) { d.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := newBench(t, pending(granted, stored))
			h := &hold{Front: b.Front, key: shell, inbox: b.inboxes.add(shell)}
			h.take(pending(granted, func(d *batchv1alpha1.DirectReservation) { d.ResourceVersion = "999" }), noon) // no version of what is stored
			g.Expect(h.release(t.Context())).To(Succeed())
			g.Expect(b.stored().Spec.Release).To(BeFalse())
		})
	}
}

func TestAReleaseTakesBackWhatWasNotPassedOn(t *testing.T) {
	for passed, want := range map[bool]string{false: "", true: "me"} {
		g := NewWithT(t)
		b := newBench(t, pending())
		h := b.held()
		done := waited(b, h, at(60))
		b.show(granted)
		g.Expect(await(t, "the grant", done)).To(BeNil())
		h.passed = passed
		g.Expect(h.release(t.Context())).To(Succeed())
		g.Expect(b.stored().Spec.Release).To(BeTrue())
		g.Expect(b.stored().Annotations[batchv1alpha1.AnnotationPassedOn]).To(Equal(want))
	}
}

func TestAReservationWhoseCreationHadNoAnswerIsReleased(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	b.Client = interceptor.NewClient(b.api, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		return errors.Join(c.Create(ctx, o, opts...), errors.New("the answer was lost"))
	}})
	_, p := b.reserve(t.Context(), pending())
	g.Expect(p.code).To(Equal("APIUnavailable"))
	b.gate.close()
	g.Expect(b.gate.empty(t.Context())).To(BeTrue())
	g.Expect(b.stored().Spec.Release).To(BeTrue())
}

func TestAReleaseThatIsNeverAnsweredEnds(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t, pending(granted))
	b.onUpdate(func(func() error) error { return errAway })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	g.Expect(b.held().release(ctx)).To(MatchError(errAway))
}
