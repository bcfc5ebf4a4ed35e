// SPDX-License-Identifier: Apache-2.0

package directreservation

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/incarnation"
	"reprise.dev/reprise/internal/reservation"
)

func TestAReservationLivesUntilItsLeaseEnds(t *testing.T) {
	g := NewWithT(t)
	b := start(t, interceptor.Funcs{}, pending(granted(mine), renewing(at(40))))

	b.at(41).step()
	g.Expect(b.shell().Status.ExpiresAt.Time.Equal(at(100))).To(BeTrue())
	result := b.at(42).step()
	g.Expect(result.RequeueAfter).To(Equal(63 * time.Second))
	g.Expect(*result.Priority).To(BeZero(), "a due time must not starve behind the initial list")
	g.Expect(b.lines).To(BeEmpty())

	b.at(105).step()
	g.Expect(b.shell().Status.Phase).To(Equal(batchv1alpha1.ReservationExpired))
	g.Expect(b.lines).To(ConsistOf(ContainSubstring("reservation expired")))
}

func TestWhatIsOverIsFinal(t *testing.T) {
	for _, phase := range []batchv1alpha1.DirectReservationPhase{batchv1alpha1.ReservationReleased, batchv1alpha1.ReservationExpired} {
		for name, edit := range map[string]change{
			"left alone":               func(*batchv1alpha1.DirectReservation) {},
			"renewed":                  renewing(at(1)),
			"released":                 releasing,
			"found by a later manager": func(d *batchv1alpha1.DirectReservation) { d.Status.Epoch = before },
		} {
			t.Run(string(phase)+", then "+name, func(t *testing.T) {
				g := NewWithT(t)
				b := start(t, interceptor.Funcs{}, pending(granted(mine), ended(phase), edit))
				found := b.shell()
				reservation.Observe(found)
				g.Expect(b.at(1000).step()).To(Equal(ctrl.Result{}))
				seen := b.shell()
				g.Expect(seen.Status).To(Equal(found.Status), "an edit is observed, and changes nothing")
				g.Expect(b.at(1001).step()).To(Equal(ctrl.Result{}))
				g.Expect(b.shell()).To(Equal(seen))
			})
		}
	}
}

func TestAnOrphanCountsAsEvaluatedOnceItsVerdictIsOnRecord(t *testing.T) {
	g := NewWithT(t)
	fail := true
	b := start(t, statusWrites(func(write func() error) error {
		if fail {
			return errors.New("the API server is away")
		}
		return write()
	}), pending(granted(before)))

	_, err := b.at(1).reconcile()
	g.Expect(err).To(MatchError(ContainSubstring("the API server is away")))
	g.Expect(b.evaluated).To(BeEmpty())
	g.Expect(b.lines).To(BeEmpty())

	fail = false
	b.step()
	g.Expect(b.shell().Status.Reason).To(Equal(batchv1alpha1.ReasonHolderLost))
	g.Expect(b.evaluated).To(Equal([]types.UID{"uid-shell"}))
	g.Expect(b.lines).To(HaveLen(1))
}

func TestAWriteWithoutAnAnswerIsCompletedByTheNextLook(t *testing.T) {
	g := NewWithT(t)
	lost := true
	b := start(t, statusWrites(func(write func() error) error {
		err := write()
		if lost {
			lost = false
			return errors.Join(errors.New("the answer was lost"), err)
		}
		return err
	}), pending(granted(mine), releasing))

	_, err := b.at(1).reconcile()
	g.Expect(err).To(MatchError(ContainSubstring("the answer was lost")))
	found := b.shell()
	g.Expect(found.Status.Phase).To(Equal(batchv1alpha1.ReservationReleased))
	b.at(2).step()
	g.Expect(b.shell()).To(Equal(found))
}

func TestALostRaceIsNoErrorAndNothingIsSaidToHaveHappened(t *testing.T) {
	resource := schema.GroupResource{Group: batchv1alpha1.GroupVersion.Group, Resource: "directreservations"}
	for name, race := range map[string]struct {
		err   error
		again time.Duration
	}{
		// It is looked at again by itself: an answer of conflict need not have another write behind it.
		"another write came first": {apierrors.NewConflict(resource, "shell", errors.New("another write")), soon},
		"it was deleted":           {apierrors.NewNotFound(resource, "shell"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, statusWrites(func(func() error) error { return race.err }), pending(granted(mine)))
			g.Expect(b.at(65).step().RequeueAfter).To(Equal(race.again))
			g.Expect(b.lines).To(BeEmpty())
			g.Expect(b.evaluated).To(BeEmpty())
		})
	}
}

func TestOneThatIsReleasedAfterItsTimeIsNotSaidToHaveExpired(t *testing.T) {
	g := NewWithT(t)
	b := start(t, interceptor.Funcs{}, pending(granted(mine), releasing))
	b.at(100).step()
	g.Expect(b.shell().Status.Phase).To(Equal(batchv1alpha1.ReservationReleased))
	g.Expect(b.lines).To(BeEmpty())
}

func TestAManagerThatMeetsAReservationOfALaterOneEndsAndWritesNothing(t *testing.T) {
	g := NewWithT(t)
	b := start(t, interceptor.Funcs{}, pending(granted(after)))
	found := b.shell()
	b.depose()
	_, _ = b.at(1000).reconcile()
	g.Expect(b.exits).To(Equal(1))
	g.Expect(b.shell()).To(Equal(found))
}

func TestAnEpochThatWasNeverIssuedEndsNobodyAndItsReservationIsAnOrphan(t *testing.T) {
	g := NewWithT(t)
	b := start(t, interceptor.Funcs{}, pending(granted(after)))
	b.at(1).step()
	g.Expect(b.exits).To(BeZero())
	g.Expect(b.shell().Status.Reason).To(Equal(batchv1alpha1.ReasonHolderLost))
}

func TestOneThatIsGoneNeedsNothing(t *testing.T) {
	NewWithT(t).Expect(start(t, interceptor.Funcs{}).step()).To(Equal(ctrl.Result{}))
}

func TestAReadThatFailsIsAnError(t *testing.T) {
	b := start(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("no cache")
	}})
	_, err := b.reconcile()
	NewWithT(t).Expect(err).To(MatchError("no cache"))
}

func TestNothingIsDoneBeforeThisProcessLeads(t *testing.T) {
	b := start(t, interceptor.Funcs{}, pending(granted(before)))
	b.r.Self = incarnation.New(incarnation.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.r.Reconcile(ctx, ctrl.Request{})
	NewWithT(t).Expect(err).To(MatchError(context.Canceled))
}
