// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// studio is the queue main with a type and a resource.
func studio() *batchv1alpha1.JobQueue {
	q := aQueue(0)
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{
		Types:     []batchv1alpha1.TypeConcurrency{{Name: "story", Limit: ptr.To[int32](1)}},
		Resources: []batchv1alpha1.QueueResource{{Name: "ollama", Capacity: 1}},
	}
	return q
}

func ofType(kind string, claims ...string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.Type = kind
		for _, name := range claims {
			r.Spec.Claims = append(r.Spec.Claims, batchv1alpha1.ResourceClaim{Name: name, Count: 1})
		}
	}
}

// edit changes the spec of the queue main.
func (b *bench) edit(f func(*batchv1alpha1.JobQueueSpec)) {
	b.t.Helper()
	q := &batchv1alpha1.JobQueue{}
	b.get("main", q)
	f(&q.Spec)
	if err := b.api.Update(b.t.Context(), q); err != nil {
		b.t.Fatal(err)
	}
}

func TestTypesAndResourcesOfTheQueueBoundWhatIsClaimed(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, studio(),
		aRun("a", ofType("story")), aRun("b", ofType("story", "ollama")), aRun("c", ofType("", "ollama")), aRun("d", ofType("")))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a", "d"}), "b waits for the type and keeps the resource it needs from c")
	g.Expect(b.shown().Limit).To(BeNil(), "there is none")

	b.change("a", endedAs(batchv1alpha1.JobRunCompleted, true))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"b", "d"}))
	b.edit(func(s *batchv1alpha1.JobQueueSpec) { s.Concurrency.Resources[0].Capacity = 2 })
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"b", "c", "d"}))
}

func TestWhatTheQueueCanNeverAdmitIsToldAndToldAgainWhenItCan(t *testing.T) {
	g := NewWithT(t)
	misfit := aReservation("shell")
	misfit.Spec.Type = "novel"
	b := begin(t, studio(), aRun("typo", ofType("novel")), aRun("fine", ofType("story")), misfit)
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"fine"}), "they are in nobody's way")
	told := func() (names []string) {
		names = b.woken()
		for key := range b.d.reservations.early {
			names = append(names, key.Name)
		}
		b.d.holds.early, b.d.reservations.early = nil, nil
		return names
	}
	g.Expect(told()).To(ConsistOf("typo", "shell"))
	b.settle()
	g.Expect(told()).To(BeEmpty(), "once")

	b.edit(func(s *batchv1alpha1.JobQueueSpec) {
		s.Concurrency.Types = append(s.Concurrency.Types, batchv1alpha1.TypeConcurrency{Name: "novel"})
	})
	b.settle()
	g.Expect(told()).To(ConsistOf("typo", "shell"))
}

func TestTheThrottleIsTheQueuesOwnWhereItHasOneAndTheManagersElsewhere(t *testing.T) {
	d := &Dispatcher{Options: Options{Startup: Startup{Window: time.Minute, Stagger: time.Second, BurstLimit: 5}, Clock: begin(t).clock}, registry: newRegistry()}
	for name, c := range map[string]struct {
		own  *batchv1alpha1.QueueStartup
		want admission.Startup
	}{
		"it says nothing":   {nil, admission.Startup{Window: time.Minute, Stagger: time.Second, BurstLimit: 5}},
		"it says something": {&batchv1alpha1.QueueStartup{BurstLimit: ptr.To[int32](2)}, admission.Startup{Window: time.Minute, Stagger: time.Second, BurstLimit: 2}},
		"it says everything": {
			&batchv1alpha1.QueueStartup{BurstLimit: ptr.To[int32](1), WindowSeconds: ptr.To[int32](9), StaggerSeconds: ptr.To[int32](0)},
			admission.Startup{Window: 9 * time.Second, BurstLimit: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := aQueue(1)
			q.Spec.Startup = c.own
			c.want.Since = noon
			c.want.Offset = admission.Offset("ns", "main", c.want.Stagger)
			NewWithT(t).Expect(d.startup(q)).To(Equal(c.want))
		})
	}
	t.Run("it is turned off", func(t *testing.T) {
		q := aQueue(1)
		q.Spec.Startup = &batchv1alpha1.QueueStartup{WindowSeconds: ptr.To[int32](0)}
		NewWithT(t).Expect(d.startup(q)).To(BeZero())
	})
}

func TestAManagerThatTakesOverRemembersWhatTheOneBeforeHadAdmittedInItsWindow(t *testing.T) {
	g := NewWithT(t)
	q := aQueue(4)
	q.Spec.Startup = &batchv1alpha1.QueueStartup{BurstLimit: ptr.To[int32](1), WindowSeconds: ptr.To[int32](60), StaggerSeconds: new(int32)}
	b := begin(t, q, aRun("a"), aRun("b"), aRun("c"), aRun("d"), aRun("e"), aRun("f"))
	b.sync().settle()
	g.Expect(b.running()).To(HaveLen(4))
	for _, name := range b.running() {
		b.change(name, endedAs(batchv1alpha1.JobRunCompleted, true))
	}
	b.clock.SetTime(noon.Add(2 * time.Second))
	b.sync().settle()
	g.Expect(b.running()).To(BeEmpty(), "four slots of one run each are used up")
	g.Expect(b.shown().Conditions).To(ContainElement(HaveField("Reason", admission.CodeStartupThrottle)))

	next := b.succeed()
	next.clock.SetTime(noon.Add(30 * time.Second))
	next.sync().settle()
	g.Expect(next.running()).To(BeEmpty())
	next.clock.SetTime(noon.Add(61 * time.Second))
	next.settle()
	g.Expect(next.running()).To(HaveLen(2), "the first window is over, and the second has admitted nothing")
}

func TestReservationsInARowAreCountedInTheLedger(t *testing.T) {
	g := NewWithT(t)
	q := aQueue(1)
	q.Spec.Direct = &batchv1alpha1.QueueDirect{MaxConsecutive: ptr.To[int32](2)}
	b := begin(t, q, aRun("a"), aReservation("1"), aReservation("2"), aReservation("3"))
	var order []string
	for range 4 {
		b.sync().settle()
		order = append(order, b.running()...)
		for i := range 3 {
			d := b.shell(fmt.Sprint(i + 1))
			if d.Status.Phase != batchv1alpha1.ReservationGranted {
				continue
			}
			order = append(order, d.Name)
			d.Status.Phase = batchv1alpha1.ReservationReleased
			g.Expect(b.api.Status().Update(t.Context(), d)).To(Succeed())
		}
		for _, name := range b.running() {
			b.change(name, endedAs(batchv1alpha1.JobRunCompleted, true))
		}
	}
	g.Expect(order).To(Equal([]string{"1", "2", "a", "3"}))
	g.Expect(b.ledger().Spec.DirectInRow).To(BeZero(), "no run waits")
}

func TestAManagerThatHasLedForAnHourThrottlesNothing(t *testing.T) {
	g := NewWithT(t)
	b := begin(t)
	b.d.Startup = Startup{Window: time.Minute, Stagger: time.Second, BurstLimit: 5}
	g.Expect(b.d.lead(t.Context())).To(Succeed())
	b.clock.SetTime(noon.Add(time.Hour))
	for _, o := range []client.Object{aQueue(3), aRun("a"), aRun("b"), aRun("c")} {
		g.Expect(b.api.Create(t.Context(), o)).To(Succeed())
	}
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"a", "b", "c"}))
}

func TestWhatDoesNotFitAnyMoreIsToldOnceTheCacheKnows(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, studio(), aRun("x", ofType("story", "ollama")), aRun("y", ofType("story")))
	b.sync()
	old := &batchv1alpha1.JobQueue{}
	b.get("main", old)
	b.stale["main"] = old
	b.edit(func(s *batchv1alpha1.JobQueueSpec) { s.Concurrency.Resources = nil })
	b.pass()
	g.Expect(b.running()).To(Equal([]string{"y"}), "decided live")
	delete(b.stale, "main")
	b.settle()
	g.Expect(b.woken()).To(ContainElement("x"))
}
