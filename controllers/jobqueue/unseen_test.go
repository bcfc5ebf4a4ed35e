// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/reservation"
)

// granted is a reservation that an earlier manager has granted.
func granted(name string) *batchv1alpha1.DirectReservation {
	d := aReservation(name)
	reservation.Activate(d, before, noon)
	reservation.Grant(d, before, noon)
	return d
}

// overlooking begins a manager that has taken over a queue with one slot, of which b waits. Its cache does not show the object.
func overlooking(t *testing.T, o client.Object, intents ...client.Object) *bench {
	b := begin(t, aQueue(1), aRun("b"), o).leaving(before, intents...)
	b.stale[o.GetName()] = nil
	b.d.observeRun(b.run("b"))
	b.settle()
	NewWithT(t).Expect(b.running()).NotTo(ContainElement("b"))
	return b
}

func TestWhatTheCacheNeverShowsIsNotInTheWayOnceItIsGone(t *testing.T) {
	first := aRun("a", priority(1))
	gone := aRun("gone")
	for name, c := range map[string]struct {
		object  client.Object
		intents []client.Object
	}{
		"a run that waits, named by an intent": {first, []client.Object{first}},
		"a run at work":                        {object: aRun("a", claimedBy("manager", before))},
		"a granted reservation":                {object: granted("a")},
		"a Job of a run that was deleted":      {object: aJob(gone)},
		"a pod of a run that was deleted":      {object: aPod(gone, corev1.PodRunning)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := overlooking(t, c.object, c.intents...)
			b.evidence = executor.Evidence{Stopped: true}
			// No watch tells of it.
			g.Expect(b.api.Delete(t.Context(), c.object)).To(Succeed())
			b.clock.SetTime(b.clock.Now().Add(searchEvery))
			b.settle()
			g.Expect(b.running()).To(Equal([]string{"b"}))
			g.Expect(b.counts().Queued).To(BeZero())
			g.Expect(b.d.open(mainKey).unseen).To(BeEmpty())
		})
	}
}

func TestWhatTheCacheDoesNotShowYetStaysWhereItIs(t *testing.T) {
	g := NewWithT(t)
	b := overlooking(t, aRun("a", claimedBy("manager", before)))
	b.clock.SetTime(b.clock.Now().Add(searchEvery))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	g.Expect(b.d.open(mainKey).unseen).To(HaveKey(types.UID("a")), "it is looked at again")
}

func TestAReadThatFailsDoesNotTellThatSomethingIsGone(t *testing.T) {
	g := NewWithT(t)
	b := overlooking(t, aRun("a", claimedBy("manager", before)))
	b.d.Live = interceptor.NewClient(b.api, interceptor.Funcs{Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if key.Name == "a" {
			return errors.New("no answer")
		}
		return api.Get(ctx, key, o, opts...)
	}})
	b.clock.SetTime(b.clock.Now().Add(searchEvery))
	_, err := b.try()
	g.Expect(err).To(MatchError(ContainSubstring("no answer")))
	g.Expect(b.d.open(mainKey).unseen).To(HaveKey(types.UID("a")))
	g.Expect(b.counts().Running).To(Equal(1))
}

func TestWhatTheCacheShowsIsLeftToItsEvents(t *testing.T) {
	g := NewWithT(t)
	b := overlooking(t, aRun("a", claimedBy("manager", before)))
	delete(b.stale, "a")
	b.clock.SetTime(b.clock.Now().Add(searchEvery))
	b.settle()
	g.Expect(b.d.open(mainKey).unseen).To(BeEmpty())
	g.Expect(b.running()).To(Equal([]string{"a"}))
}

func TestWhatIsKnownInALaterVersionIsLeftToItsEvents(t *testing.T) {
	g := NewWithT(t)
	first := aRun("a", priority(1))
	b := overlooking(t, first, first)
	delete(b.stale, "a")
	b.d.observeRun(b.run("a"))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
	// It is gone, and the event that says so on its way. The version that was seen past the cache had no work.
	b.stale["a"] = nil
	g.Expect(b.api.Delete(t.Context(), b.run("a"))).To(Succeed())
	b.evidence = executor.Evidence{Life: executor.NeverStarted}
	b.clock.SetTime(b.clock.Now().Add(searchEvery))
	b.settle()
	g.Expect(b.running()).To(BeEmpty(), "its work may live")
	g.Expect(b.d.open(mainKey).unseen).To(BeEmpty())
}

func TestAJobThatNamesNoRunIsNotLookedFor(t *testing.T) {
	g := NewWithT(t)
	foreign := aJob(aRun("gone"))
	delete(foreign.Labels, batchv1alpha1.LabelRunUID)
	b := begin(t, aQueue(1), aRun("b"), foreign)
	b.stale[foreign.Name] = nil
	b.d.observeRun(b.run("b"))
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"b"}))
	g.Expect(b.d.open(mainKey).unseen).To(BeEmpty())
}
