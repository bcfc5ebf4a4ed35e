// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// readingRules has f called right before the rules of the queue are read live.
func (b *bench) readingRules(f func()) {
	b.d.Live = interceptor.NewClient(b.api, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, rules := o.(*batchv1alpha1.JobQueue); rules {
				f()
			}
			return api.Get(ctx, key, o, opts...)
		},
	})
}

func TestTheRulesAreReadBesideTheSwapAndTheClaimsWaitForBoth(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a")).sync()
	swapping, reading := make(chan struct{}), make(chan struct{})
	b.once("update ledger", func(send func() error) error {
		close(swapping)
		<-reading
		return send()
	})
	b.readingRules(func() {
		close(reading)
		<-swapping
		g.Expect(b.times("status a")).To(BeZero())
	})
	b.pass()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestABatchByRulesThatAreNotInForceAnyMoreIsReplacedBeforeAnythingIsClaimed(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(2), aRun("a"), aRun("b"), aRun("c"))
	shown := &batchv1alpha1.JobQueue{}
	b.get("main", shown)
	b.stale["main"] = shown
	b.edit(func(s *batchv1alpha1.JobQueueSpec) { *s.Concurrency.Limit = 1 })
	b.sync().pass()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.times("update ledger")).To(Equal(2))
	g.Expect(b.ledger().Spec.Intents).To(ConsistOf(HaveField("Name", "a")))
}

func TestABatchThatIsNotClaimedIsNotRemembered(t *testing.T) {
	g := NewWithT(t)
	q := aQueue(1)
	q.Spec.Direct = &batchv1alpha1.QueueDirect{MaxConsecutive: new(int32)}
	*q.Spec.Direct.MaxConsecutive = 1
	b := begin(t, q, aRun("a"), aReservation("shell"))
	b.sync().pass() // shell is Active
	b.readingRules(func() { b.edit(func(s *batchv1alpha1.JobQueueSpec) { s.Suspend = true }) })
	shown := &batchv1alpha1.JobQueue{}
	b.get("main", shown)
	b.stale["main"] = shown
	b.pass()
	g.Expect(b.ledger().Spec.DirectInRow).To(BeEquivalentTo(1), "the grant that was entered")
	g.Expect(b.shell("shell").Status.Phase).To(Equal(batchv1alpha1.ReservationActive))

	b.d.Live = b.api
	delete(b.stale, "main")
	b.edit(func(s *batchv1alpha1.JobQueueSpec) { s.Suspend = false })
	b.settle()
	g.Expect(b.running()).To(BeEmpty(), "it is still the reservation's turn")
	g.Expect(b.shell("shell").Status.Phase).To(Equal(batchv1alpha1.ReservationGranted))
}

func TestRulesThatCannotBeReadAdmitNothing(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a")).sync()
	b.d.Live = interceptor.NewClient(b.api, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, rules := o.(*batchv1alpha1.JobQueue); rules {
				return errLost
			}
			return api.Get(ctx, key, o, opts...)
		},
	})
	_, err := b.try()
	g.Expect(err).To(MatchError(errLost))
	g.Expect(b.running()).To(BeEmpty())
	b.d.Live = b.api
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}
