// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// Each of these tests is what only one of the rules of the fence keeps from going wrong.

func TestARunThatWasTouchedAfterTheSwapIsNotClaimed(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	// This manager is paused between its swap and its claim, and another one takes the queue over meanwhile.
	b.once("update ledger", func(send func() error) error {
		err := send()
		b.change("a", func(r *batchv1alpha1.JobRun) { run.Fence(r, b.after()) })
		return err
	})
	b.sync()
	_, err := b.try()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.running()).To(BeEmpty())
	g.Expect(b.times("start a")).To(BeZero())
}

func TestWhatHoldsASlotIsNotTakenFromTheCache(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"), aRun("holder", claimedBy("manager", before)))
	cached := b.d.Client
	b.d.Client = interceptor.NewClient(cached.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return nil // the cache has not seen the holder yet
		},
	})
	b.d.observeRun(b.run("a"))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"holder"}))
}

func TestWhatTheLateClaimOfADeletedRunHasMadeHoldsItsSlot(t *testing.T) {
	g := NewWithT(t)
	a := aRun("a")
	b := begin(t, aQueue(1), a, aRun("b")).leaving(before, a)
	landed := false
	b.d.Live = interceptor.NewClient(b.api, interceptor.Funcs{
		// Right before this manager looks at what the intent names, the claim lands, its Job is made, and somebody deletes the run.
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if key.Name == "a" && !landed {
				landed = true
				b.change("a", claimedBy("manager", before))
				g.Expect(b.api.Create(ctx, aJob(b.run("a")))).To(Succeed())
				g.Expect(b.api.Delete(ctx, b.run("a"))).To(Succeed())
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	b.d.observeRun(b.run("b"))
	b.settle()
	g.Expect(landed).To(BeTrue())
	g.Expect(b.running()).To(BeEmpty(), "the Job of a holds the only slot")
}

// Between the takeover and the claims of this manager nothing but the touch stands in the way of a late one.
func TestALateClaimFindsWhatItClaimsTouchedBeforeThisManagerClaimsAnything(t *testing.T) {
	shell := aReservation("shell")
	reservation.Activate(shell, before, noon)
	for name, c := range map[string]struct {
		of, late client.Object
		claim    func(client.Object)
	}{
		"a run":         {aRun("a"), &batchv1alpha1.JobRun{}, func(o client.Object) { claimedBy("manager", before)(o.(*batchv1alpha1.JobRun)) }},
		"a reservation": {shell, &batchv1alpha1.DirectReservation{}, func(o client.Object) { reservation.Grant(o.(*batchv1alpha1.DirectReservation), before, noon) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), c.of, aRun("b")).leaving(before, c.of)
			b.get(c.of.GetName(), c.late)
			c.claim(c.late)
			var answer error
			b.d.Live = interceptor.NewClient(b.api, interceptor.Funcs{
				Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if _, rules := o.(*batchv1alpha1.JobQueue); rules && answer == nil {
						answer = b.api.Status().Update(ctx, c.late)
					}
					return api.Get(ctx, key, o, opts...)
				},
			})
			b.sync()
			_, _ = b.try()
			g.Expect(apierrors.IsConflict(answer)).To(BeTrue(), "%v", answer)
		})
	}
}
