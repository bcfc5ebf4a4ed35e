// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"errors"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
)

// left is a ledger that the manager of the epoch has left behind, with intents for those objects as they are now.
func left(e string, of ...client.Object) *batchv1alpha1.QueueLedger {
	book := &batchv1alpha1.QueueLedger{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "main"}}
	book.Spec.Epoch = e
	for _, o := range of {
		kind := "JobRun"
		if _, ok := o.(*batchv1alpha1.DirectReservation); ok {
			kind = "DirectReservation"
		}
		book.Spec.Intents = append(book.Spec.Intents, batchv1alpha1.Intent{Kind: kind, Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()})
	}
	return book
}

// leaving puts that ledger into the API, once the objects of the intents have their versions.
func (b *bench) leaving(e string, of ...client.Object) *bench {
	b.t.Helper()
	for _, o := range of {
		b.get(o.GetName(), o)
	}
	if err := b.api.Create(b.t.Context(), left(e, of...)); err != nil {
		b.t.Fatal(err)
	}
	return b
}

func TestAClaimThatAnEarlierManagerHasOnItsWayCannotLandAnyMore(t *testing.T) {
	g := NewWithT(t)
	a := aRun("a")
	b := begin(t, aQueue(1), a).leaving(before, a)
	late := b.run("a")
	claimedBy("manager", before)(late)

	b.sync()
	_, _ = b.try()
	g.Expect(b.api.Status().Update(t.Context(), late)).NotTo(Succeed())
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.run("a").Status.Incarnation.ID).To(Equal("me"))
	g.Expect(b.ledger().Spec.Epoch).To(Equal(mine))
}

func TestAClaimOfAnEarlierManagerThatHasLandedHoldsItsSlot(t *testing.T) {
	g := NewWithT(t)
	a := aRun("a")
	b := begin(t, aQueue(1), a, aRun("b")).leaving(before, a)
	stale := b.run("a")
	b.change("a", claimedBy("manager", before))
	// The caches know nothing of it: b looks as if there were room.
	b.stale["a"] = stale
	b.d.observeRun(stale)
	b.d.observeRun(b.run("b"))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.run("a").Status.FencedBy).To(BeNil(), "its version is another one already")
	g.Expect(b.times("start a")).To(BeZero(), "recovering it is the business of its own controller")
}

func TestWhatHoldsASlotIsFoundPastTheCacheBeforeAnythingIsAdmitted(t *testing.T) {
	gone := aRun("gone")
	for name, holder := range map[string]client.Object{
		"a run at work":                         aRun("holder", claimedBy("manager", before)),
		"a run that ended while its work stops": aRun("holder", claimedBy("manager", before), endedAs(batchv1alpha1.JobRunFailed, false)),
		"a granted reservation": func() client.Object {
			d := aReservation("holder")
			reservation.Activate(d, before, noon)
			reservation.Grant(d, before, noon)
			return d
		}(),
		"the Job of a run that was deleted": aJob(gone),
		"a pod of a run that was deleted":   aPod(gone, corev1.PodRunning),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"), holder)
			b.d.observeRun(b.run("a"))
			b.settle()
			g.Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))
			g.Expect(b.times("update ledger")).To(BeZero())
		})
	}
}

func TestWhatAWatchHasShownToHaveEndedIsNotBroughtBackByAListThatIsOlder(t *testing.T) {
	gone := aRun("gone")
	for name, c := range map[string]struct {
		holder client.Object
		listed client.ObjectList
		ends   func(*bench)
	}{
		"a Job that completes": {aJob(gone), &batchv1.JobList{}, func(b *bench) { b.d.observeJob(aJob(gone, finished(batchv1.JobComplete))) }},
		"a pod that ends":      {aPod(gone, corev1.PodRunning), &corev1.PodList{}, func(b *bench) { b.d.observePod(aPod(gone, corev1.PodSucceeded)) }},
		"a pod that is gone":   {aPod(gone, corev1.PodRunning), &corev1.PodList{}, func(b *bench) { b.d.observePodGone(aPod(gone, corev1.PodRunning)) }},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"), c.holder)
			b.d.observeRun(b.run("a"))
			b.d.Live = interceptor.NewClient(b.api, interceptor.Funcs{List: func(ctx context.Context, api client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
				err := api.List(ctx, l, o...)
				if reflect.TypeOf(l) == reflect.TypeOf(c.listed) {
					c.ends(b) // before the answer is taken in
				}
				return err
			}})
			b.settle()
			g.Expect(b.running()).To(ConsistOf("a"))
			g.Expect(b.counts().Running).To(Equal(1))
		})
	}
}

func TestOnlyWhatHoldsASlotOfThisQueueCounts(t *testing.T) {
	elsewhere := aRun("elsewhere", inQueue("other"))
	for name, other := range map[string]client.Object{
		"not a run of another queue":        aRun("elsewhere", inQueue("other"), claimedBy("manager", before)),
		"not a Job of another queue":        aJob(elsewhere),
		"not a run whose work has stopped":  aRun("over", claimedBy("manager", before), endedAs(batchv1alpha1.JobRunFailed, true)),
		"not a Job that has finished":       aJob(aRun("gone"), finished(batchv1.JobComplete)),
		"not a pod that has ended":          aPod(aRun("gone"), corev1.PodFailed),
		"not a Job in the place of no work": aJob(aRun("gone"), sealed("placeholder")),
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t, aQueue(1), aRun("a"), other)
			b.d.observeRun(b.run("a"))
			b.settle()
			NewWithT(t).Expect(b.run("a").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
		})
	}
}

func TestIntentsOfWhatIsGoneOrWasMadeAnewStandInNobodysWay(t *testing.T) {
	g := NewWithT(t)
	deleted, remade, shell := aRun("deleted"), aRun("remade"), aReservation("shell")
	b := begin(t, aQueue(1), aRun("a"), deleted, remade, shell).leaving(before, deleted, remade, shell)
	for _, o := range []client.Object{deleted, remade, shell} {
		g.Expect(b.api.Delete(t.Context(), o)).To(Succeed())
	}
	g.Expect(b.api.Create(t.Context(), aRun("remade", func(r *batchv1alpha1.JobRun) { r.UID = "another" }, inQueue("other")))).To(Succeed())
	found := b.run("remade")
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.run("remade")).To(Equal(found))
}

func TestAGrantThatAnEarlierManagerHasOnItsWayCannotLandAnyMore(t *testing.T) {
	g := NewWithT(t)
	shell := aReservation("shell")
	reservation.Activate(shell, before, noon)
	b := begin(t, aQueue(1), shell, aRun("a")).leaving(before, shell)
	late := &batchv1alpha1.DirectReservation{}
	b.get("shell", late)
	reservation.Grant(late, before, noon)
	b.sync()
	_, _ = b.try()
	g.Expect(b.api.Status().Update(t.Context(), late)).NotTo(Succeed())
}

func TestATakeoverThatIsCutOffIsMadeAgainFromItsBeginning(t *testing.T) {
	g := NewWithT(t)
	a := aRun("a")
	b := begin(t, aQueue(1), a, aRun("holder", claimedBy("manager", before))).leaving(before, a)
	away := true
	b.d.Live = interceptor.NewClient(b.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if away {
				return errors.New("away")
			}
			return c.List(ctx, l, opts...)
		},
	})
	b.d.observeRun(b.run("a"))
	_, err := b.try()
	g.Expect(err).To(MatchError(ContainSubstring("away")))
	g.Expect(b.ledger().Spec.Epoch).To(Equal(mine))
	g.Expect(b.ledger().Spec.Intents).To(HaveLen(1), "the intents stay until the first batch of this manager")
	fenced := b.run("a").Status.FencedBy
	g.Expect(fenced).NotTo(BeNil())

	away = false
	b.d.observeRun(b.run("a"))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"holder"}))
	g.Expect(b.run("a").Status.FencedBy).To(Equal(fenced), "its version is another one already")
}

func TestAFenceThatMeetsANewerVersionIsNoErrorAndIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	a := aRun("a")
	b := begin(t, aQueue(1), a).leaving(before, a)
	b.once("status a", func(send func() error) error {
		b.change("a", func(r *batchv1alpha1.JobRun) { r.Status.Message = "edited" })
		return send()
	})
	b.sync()
	_, err := b.try()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.running()).To(BeEmpty())
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestAManagerThatMeetsTheLedgerOfALaterOneEndsAndAdmitsNothing(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aRun("a"))
	b.depose()
	b.leaving(b.after())
	b.sync()
	_, err := b.try()
	g.Expect(err).To(HaveOccurred())
	g.Expect(b.exits).To(Equal(1))
	g.Expect(b.running()).To(BeEmpty())
}

func TestAManagerWhoseLedgerALaterOneHasTakenClaimsNothingMore(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(2), aRun("a"))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))

	b.depose()
	book := b.ledger()
	book.Spec.Epoch = b.after()
	g.Expect(b.api.Update(t.Context(), book)).To(Succeed())
	g.Expect(b.api.Create(t.Context(), aRun("b"))).To(Succeed())
	b.sync()
	_, err := b.try()
	g.Expect(err).To(HaveOccurred())
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.exits).To(Equal(1))
}

func TestALedgerThatWasDeletedIsPutUpAgainByWhoIsSureToLead(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(2), aRun("a"))
	b.sync().settle()
	g.Expect(b.api.Delete(t.Context(), b.ledger())).To(Succeed())
	g.Expect(b.api.Create(t.Context(), aRun("b"))).To(Succeed())
	g.Expect(b.api.Create(t.Context(), aRun("c"))).To(Succeed())
	b.sync().settle()
	g.Expect(b.running()).To(HaveLen(2))
	g.Expect(b.ledger().Spec.Epoch).To(Equal(mine))
	g.Expect(b.exits).To(BeZero())

	g.Expect(b.api.Delete(t.Context(), b.ledger())).To(Succeed())
	b.depose()
	b.change("a", endedAs(batchv1alpha1.JobRunCompleted, true))
	b.sync()
	for range 3 {
		_, _ = b.try()
	}
	g.Expect(b.ledger()).To(BeNil())
	g.Expect(b.exits).To(Equal(1))
}

// finished is a Job that has that condition.
func finished(kind batchv1.JobConditionType) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}

func sealed(how string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Annotations = map[string]string{"batch.reprise.dev/sealed": how}
		j.Spec.Suspend = ptr.To(true)
	}
}

func TestTwoManagersInSuccessionNeverUseMoreSlotsThanThereAre(t *testing.T) {
	g := NewWithT(t)
	old := begin(t, aQueue(1), aRun("a"), aRun("b"), aRun("c"))
	old.lose("status a", true)
	old.sync()
	_, _ = old.try()

	next := old.succeed()
	next.sync().settle()
	g.Expect(next.running()).To(Equal([]string{"a"}))
	g.Expect(next.times("start a")).To(BeZero())

	// The old one wakes up, and believes that it leads.
	_, _ = old.try()
	g.Expect(old.running()).To(Equal([]string{"a"}))
}
