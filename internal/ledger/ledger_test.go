// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/ledger"
)

var key = types.NamespacedName{Namespace: "ns", Name: "gpu"}

// leader is a process whose epoch is a word that sorts.
type leader struct {
	epoch   string
	deposed []string
	// replaced says that the Lease shows another holder.
	replaced bool
}

func (l *leader) Check(where, stored string) int {
	c := strings.Compare(stored, l.epoch)
	if c > 0 {
		l.deposed = append(l.deposed, where)
	}
	return c
}

func (l *leader) Confirm(_ context.Context, why string) error {
	if !l.replaced {
		return nil
	}
	l.deposed = append(l.deposed, why)
	return errors.New("another process holds the lease")
}

func (l *leader) Stamp() *batchv1alpha1.Incarnation {
	return &batchv1alpha1.Incarnation{Epoch: l.epoch}
}

func store(t *testing.T) client.WithWatch {
	s := runtime.NewScheme()
	NewWithT(t).Expect(batchv1alpha1.AddToScheme(s)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(s).Build()
}

func intents(names ...string) []batchv1alpha1.Intent {
	var all []batchv1alpha1.Intent
	for _, n := range names {
		all = append(all, batchv1alpha1.Intent{Kind: "JobRun", Name: n, UID: types.UID("uid-" + n), ResourceVersion: "1"})
	}
	return all
}

func stored(t *testing.T, c client.Reader) batchv1alpha1.QueueLedgerSpec {
	book := &batchv1alpha1.QueueLedger{}
	NewWithT(t).Expect(c.Get(t.Context(), key, book)).To(Succeed())
	return book.Spec
}

func TestATakeoverRaisesTheEpochAndKeepsTheIntentsThatWereLeft(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	first := ledger.New(key, &leader{epoch: "a"}, c, c)
	g.Expect(first.Takeover(t.Context())).To(BeEmpty())
	g.Expect(first.Swap(t.Context(), intents("x", "y"), ledger.Memory{})).To(Succeed())

	second := ledger.New(key, &leader{epoch: "b"}, c, c)
	g.Expect(second.Takeover(t.Context())).To(Equal(intents("x", "y")))
	g.Expect(stored(t, c)).To(And(HaveField("Epoch", "b"), HaveField("Intents", intents("x", "y"))))
	g.Expect(second.Takeover(t.Context())).To(Equal(intents("x", "y")), "a takeover whose answer was lost is repeated")
}

func TestWhatIsToBeRememberedIsSwappedWithTheIntentsAndSurvivesATakeover(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	first := ledger.New(key, &leader{epoch: "a"}, c, c)
	g.Expect(first.Memory()).To(BeZero())
	g.Expect(first.Takeover(t.Context())).To(BeEmpty())
	memory := ledger.Memory{
		RecentAdmissions: []batchv1alpha1.Admissions{{At: metav1.NewTime(time.Unix(1_790_000_000, 0)), Count: 3}}, DirectInRow: 2,
	}
	g.Expect(first.Swap(t.Context(), intents("x"), memory)).To(Succeed())
	g.Expect(first.Memory()).To(Equal(memory))

	second := ledger.New(key, &leader{epoch: "b"}, c, c)
	g.Expect(second.Takeover(t.Context())).To(Equal(intents("x")))
	g.Expect(second.Memory()).To(Equal(memory))
	g.Expect(second.Swap(t.Context(), nil, ledger.Memory{})).To(Succeed())
	g.Expect(stored(t, c)).To(And(HaveField("Epoch", "b"), HaveField("Intents", BeEmpty()), HaveField("RecentAdmissions", BeEmpty()), HaveField("DirectInRow", BeZero())))
}

func TestADeposedLeaderCanNoLongerSwapAndEnds(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	old := &leader{epoch: "a"}
	first := ledger.New(key, old, c, c)
	g.Expect(first.Takeover(t.Context())).To(BeEmpty())
	g.Expect(ledger.New(key, &leader{epoch: "b"}, c, c).Takeover(t.Context())).To(BeEmpty())

	g.Expect(first.Swap(t.Context(), intents("x"), ledger.Memory{})).To(MatchError(ledger.ErrDeposed))
	g.Expect(old.deposed).To(HaveLen(1))
	g.Expect(stored(t, c).Intents).To(BeEmpty())
}

func TestALateLeaderDoesNotLowerTheEpoch(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	g.Expect(ledger.New(key, &leader{epoch: "b"}, c, c).Takeover(t.Context())).To(BeEmpty())
	old := &leader{epoch: "a"}
	_, err := ledger.New(key, old, c, c).Takeover(t.Context())
	g.Expect(err).To(MatchError(ledger.ErrDeposed))
	g.Expect(old.deposed).To(HaveLen(1))
	g.Expect(stored(t, c).Epoch).To(Equal("b"))
}

func TestAfterAnUnansweredSwapTheNextOneIsMadeFromALiveRead(t *testing.T) {
	for name, lands := range map[string]bool{"that was carried out": true, "that was not carried out": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := store(t)
			lose := false
			lossy := interceptor.NewClient(c, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					if !lose {
						return c.Update(ctx, o, opts...)
					}
					lose = false
					if lands {
						g.Expect(c.Update(ctx, o, opts...)).To(Succeed())
					}
					return errors.New("the connection was lost")
				},
			})
			l := ledger.New(key, &leader{epoch: "a"}, lossy, c)
			g.Expect(l.Takeover(t.Context())).To(BeEmpty())
			lose = true
			g.Expect(l.Swap(t.Context(), intents("x"), ledger.Memory{})).To(MatchError(ledger.ErrUnanswered))
			g.Expect(l.Swap(t.Context(), intents("y"), ledger.Memory{})).To(Succeed())
			g.Expect(stored(t, c).Intents).To(Equal(intents("y")))
		})
	}
}

func TestASwapOfOurOwnThatLandsLateCannotUndoALaterOne(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	var late *batchv1alpha1.QueueLedger
	slow := interceptor.NewClient(c, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if late == nil {
				late = o.DeepCopyObject().(*batchv1alpha1.QueueLedger)
				return errors.New("no answer in time")
			}
			return c.Update(ctx, o, opts...)
		},
	})
	l := ledger.New(key, &leader{epoch: "a"}, slow, c)
	g.Expect(l.Takeover(t.Context())).To(BeEmpty())
	g.Expect(l.Swap(t.Context(), intents("x"), ledger.Memory{})).To(MatchError(ledger.ErrUnanswered))
	g.Expect(l.Swap(t.Context(), intents("y"), ledger.Memory{})).To(Succeed())
	g.Expect(apierrors.IsConflict(c.Update(t.Context(), late))).To(BeTrue(), "the late request finds another version")
	g.Expect(stored(t, c).Intents).To(Equal(intents("y")))
}

func TestASwapThatRepeatsAnEarlierOneLetsNoneBetweenThemLand(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	var late *batchv1alpha1.QueueLedger // a swap that is still on its way
	away := false
	slow := interceptor.NewClient(c, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		book := o.(*batchv1alpha1.QueueLedger)
		if away {
			late, away = book.DeepCopy(), false
			return errors.New("no answer")
		}
		now := &batchv1alpha1.QueueLedger{}
		if err := c.Get(ctx, key, now); err != nil {
			return err
		}
		if equality.Semantic.DeepEqual(now.Spec, book.Spec) {
			return nil // as the API server does: what changes nothing gets no version of its own
		}
		return c.Update(ctx, book, opts...)
	}})
	l := ledger.New(key, &leader{epoch: "a"}, slow, c)
	g.Expect(l.Takeover(t.Context())).To(BeEmpty())
	g.Expect(l.Swap(t.Context(), intents("x"), ledger.Memory{})).To(Succeed())
	away = true
	g.Expect(l.Swap(t.Context(), intents("y"), ledger.Memory{})).To(MatchError(ledger.ErrUnanswered))
	g.Expect(l.Swap(t.Context(), intents("x"), ledger.Memory{})).To(Succeed())
	g.Expect(apierrors.IsConflict(c.Update(t.Context(), late))).To(BeTrue())
	g.Expect(stored(t, c).Intents).To(Equal(intents("x")))
}

func TestADeletedLedgerIsLostAndTheQueueIsTakenOverOnceMore(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	me := &leader{epoch: "a"}
	l := ledger.New(key, me, c, c)
	g.Expect(l.Takeover(t.Context())).To(BeEmpty())
	remove(t, c)
	g.Expect(l.Swap(t.Context(), intents("x"), ledger.Memory{})).To(MatchError(ledger.ErrLost))
	g.Expect(ledger.New(key, me, c, c).Takeover(t.Context())).To(BeEmpty())
	g.Expect(stored(t, c).Epoch).To(Equal("a"))
	g.Expect(me.deposed).To(BeEmpty())
}

func TestAManagerThatWasReplacedPutsUpNoFenceOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	old := &leader{epoch: "a", replaced: true}
	_, err := ledger.New(key, old, c, c).Takeover(t.Context())
	g.Expect(err).To(MatchError(ledger.ErrDeposed))
	g.Expect(old.deposed).To(HaveLen(1))
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), key, &batchv1alpha1.QueueLedger{}))).To(BeTrue())
}

func TestALedgerThatALowerEpochMadeAgainIsLost(t *testing.T) {
	g := NewWithT(t)
	c := store(t)
	l := ledger.New(key, &leader{epoch: "b"}, c, c)
	g.Expect(l.Takeover(t.Context())).To(BeEmpty())
	remove(t, c)
	late := ledger.New(key, &leader{epoch: "a"}, c, c)
	g.Expect(late.Takeover(t.Context())).To(BeEmpty())
	g.Expect(late.Swap(t.Context(), intents("y"), ledger.Memory{})).To(Succeed()) // so that the versions differ, as they always do on an API server
	g.Expect(l.Swap(t.Context(), intents("x"), ledger.Memory{})).To(MatchError(ledger.ErrLost))
}

func remove(t *testing.T, c client.Client) {
	book := &batchv1alpha1.QueueLedger{}
	book.Namespace, book.Name = key.Namespace, key.Name
	NewWithT(t).Expect(c.Delete(t.Context(), book)).To(Succeed())
}
