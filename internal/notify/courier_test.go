// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var errRefused = errors.New("answered 503")

// round is a courier whose deliveries the test sees begin, and ends one by one.
type round struct {
	*Courier
	t     *testing.T
	begun chan Parcel
	woken chan Name
	stop  context.CancelFunc
	open  int // begun, seen by the test, and not finished by it

	mu      sync.Mutex
	answers map[Parcel]chan error
	done    chan struct{}
}

func newRound(t *testing.T) *round {
	ctx, stop := context.WithCancel(context.Background())
	r := &round{
		t: t, stop: stop,
		begun: make(chan Parcel, 1000), woken: make(chan Name, 1000),
		answers: map[Parcel]chan error{}, done: make(chan struct{}),
	}
	r.Courier = &Courier{Carry: r.carry, Clock: clocktesting.NewFakePassiveClock(finished), Wake: func(n Name) { r.woken <- n }}
	go func() {
		defer close(r.done)
		_ = r.Start(ctx)
	}()
	t.Cleanup(func() { stop(); <-r.done })
	return r
}

func (r *round) carry(ctx context.Context, p Parcel) error {
	answer := r.answer(p)
	r.begun <- p
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *round) answer(p Parcel) chan error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers[p] == nil {
		r.answers[p] = make(chan error, 1)
	}
	return r.answers[p]
}

// next waits until one more delivery has begun.
func (r *round) next() Parcel {
	r.t.Helper()
	select {
	case p := <-r.begun:
		r.open++
		return p
	case <-time.After(10 * time.Second):
		r.t.Fatal("no delivery began")
		return Parcel{}
	}
}

// end ends a delivery and waits until its result is in. It is not on record then.
func (r *round) end(p Parcel, err error) {
	r.t.Helper()
	r.answer(p) <- err
	for name := range r.woken {
		if name == p.Of {
			return
		}
	}
}

// finish ends a delivery whose result is then on record, as far as the courier is told.
func (r *round) finish(p Parcel, err error) {
	r.t.Helper()
	r.end(p, err)
	r.finished(p)
}

// finished tells the courier that the result of a delivery that has ended is on record.
func (r *round) finished(p Parcel) {
	shown := numbered(0)
	shown.Name, shown.UID = p.Of.Name, p.UID
	r.Results(OfRun(shown))
	r.open--
}

// idle fails the test if more is under way than the test has seen begin and not finished.
func (r *round) idle() {
	r.t.Helper()
	if n := r.inFlight(); n != r.open {
		r.t.Fatalf("%d deliveries are under way, want %d", n, r.open)
	}
}

// inFlight counts the places that are taken.
func (r *round) inFlight() int {
	r.Courier.mu.Lock()
	defer r.Courier.mu.Unlock()
	return r.taken
}

func numbered(i int, receivers ...string) *batchv1alpha1.JobRun {
	r := failedRun(receivers...)
	r.Name = fmt.Sprintf("run-%d", i)
	r.UID = types.UID(fmt.Sprintf("uid-%d", i))
	return r
}

// sendAll hands over everything that the run owes.
func (r *round) sendAll(run *batchv1alpha1.JobRun) {
	for _, a := range run.Status.Announcements {
		r.Send(OfRun(run), a)
	}
}

func nameOf(run *batchv1alpha1.JobRun) Name { return NameOf(OfRun(run)) }

func TestAReceiverThatAcknowledgesGetsMorePlacesAndOneThatFailsLosesThem(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	for i := range 20 {
		r.sendAll(numbered(i, "ops"))
	}
	first := r.next()
	g.Expect(r.inFlight()).To(Equal(1))

	r.finish(first, nil)
	var open []Parcel
	for range placesOfOne {
		open = append(open, r.next())
	}
	g.Expect(r.inFlight()).To(Equal(placesOfOne))

	for i, p := range open {
		r.finish(p, errRefused)
		g.Expect(r.inFlight()).To(Equal(max(1, placesOfOne-1-i)))
	}
	g.Expect(r.next().Of.Name).To(Equal("run-9"))
	r.idle()
}

func TestAReceiverThatHangsDelaysNobodyElse(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	for i := range 50 {
		r.sendAll(numbered(i, "hanging", "fast"))
	}
	delivered := 0
	for delivered < 50 {
		if p := r.next(); p.Receiver == "fast" {
			r.finish(p, nil)
			delivered++
		}
	}
	g.Expect(r.inFlight()).To(Equal(1))
}

func TestReceiversWaitForAPlaceInTurnWhenAllPlacesAreTaken(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	var open []Parcel
	for i := range placesOfAll {
		r.sendAll(numbered(i, fmt.Sprintf("hanging-%d", i)))
		open = append(open, r.next())
	}
	for i := range 3 {
		r.sendAll(numbered(1000+i, "busy"))
	}
	r.sendAll(numbered(2000, "quiet"))
	r.idle()

	for _, want := range []string{"busy", "quiet"} {
		r.finish(open[0], errRefused)
		open = open[1:]
		g.Expect(r.next().Receiver).To(Equal(want))
		g.Expect(r.inFlight()).To(Equal(placesOfAll))
	}
	r.idle()
}

func TestWhatIsInChargeIsNotSentTwiceUntilItsResultIsOnRecord(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	run := numbered(1, "ops")
	r.sendAll(run)
	p := r.next()
	g.Expect(r.Results(OfRun(run))).To(BeEmpty())
	r.sendAll(run)
	r.idle()

	r.end(p, errRefused)
	want := Attempt{Receiver: "ops", Event: eventFailed, Number: 1, At: finished, Problem: "answered 503"}
	g.Expect(r.Results(OfRun(run))).To(ConsistOf(want))
	r.sendAll(run)
	r.idle()
	g.Expect(r.Results(OfRun(run))).To(ConsistOf(want))

	run.Status.Announcements = Record(OfRun(run), r.Results(OfRun(run)))
	g.Expect(r.Results(OfRun(run))).To(BeEmpty())
	r.sendAll(run)
	r.end(r.next(), nil)
	g.Expect(r.Results(OfRun(run))).To(ConsistOf(Attempt{Receiver: "ops", Event: eventFailed, Number: 2, At: finished}))
}

func TestADeliveryTakesItsPlaceUntilItsResultIsOnRecord(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	first, second := numbered(1, "ops"), numbered(2, "ops")
	r.sendAll(first)
	r.end(r.next(), errRefused)
	r.sendAll(second)
	r.idle()

	first.Status.Announcements = Record(OfRun(first), r.Results(OfRun(first)))
	r.idle()
	r.Results(OfRun(first))
	g.Expect(r.next().Of).To(Equal(nameOf(second)))
}

func TestADeletedRunGivesItsPlaceBackWhetherItsDeliveryHasEndedOrNot(t *testing.T) {
	for name, ends := range map[string]bool{"dropped after the end": true, "dropped before the end": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := newRound(t)
			deleted, other := numbered(1, "ops"), numbered(2, "ops")
			r.sendAll(deleted)
			p := r.next()
			if ends {
				r.end(p, errRefused)
			}
			r.Drop(nameOf(deleted))
			r.sendAll(other)
			if !ends {
				g.Expect(r.inFlight()).To(Equal(1))
				r.end(p, errRefused)
			}
			g.Expect(r.next().Of).To(Equal(nameOf(other)))
			g.Expect(r.inFlight()).To(Equal(1))
			g.Expect(r.Results(OfRun(deleted))).To(BeEmpty())
		})
	}
}

func TestADeliveryThatWasNotTriedLeavesNoResultAndMayBeSentAgain(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	run := numbered(1, "ops")
	r.sendAll(run)
	r.end(r.next(), errors.Join(ErrNotTried, errRefused))
	g.Expect(r.Results(OfRun(run))).To(BeEmpty())
	r.sendAll(run)
	g.Expect(r.next().Of).To(Equal(nameOf(run)))
}

func TestADeletedRunIsNotDelivered(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	for i := range 3 {
		r.sendAll(numbered(i, "ops"))
	}
	first := r.next()
	r.Drop(nameOf(numbered(1)))
	r.finish(first, errRefused)
	g.Expect(r.next().Of.Name).To(Equal("run-2"))
	r.idle()
}

func TestADeliveryOfAnEarlierRunOfTheSameNameIsForgotten(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	earlier := numbered(1, "ops")
	r.sendAll(earlier)
	r.end(r.next(), nil)

	namesake := numbered(1, "ops")
	namesake.UID = "uid-of-another"
	g.Expect(r.Results(OfRun(namesake))).To(BeEmpty())
	r.sendAll(namesake)
	g.Expect(r.next().UID).To(Equal(namesake.UID))
	g.Expect(r.Results(OfRun(earlier))).To(BeEmpty())
}

func TestNothingBeginsBeforeTheStart(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	r.stop()
	<-r.done

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &Courier{Carry: r.carry, Wake: r.Wake, Clock: r.Clock}
	run := numbered(1, "ops")
	c.Send(OfRun(run), run.Status.Announcements[0])
	g.Expect(c.taken).To(BeZero())

	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	g.Expect(r.next().Of).To(Equal(nameOf(run)))
	stop()
	g.Expect(<-done).To(Succeed())
	g.Expect(c.Results(OfRun(run))).To(BeEmpty())
}

func TestTheEndCutsDeliveriesShortAndWaitsForThem(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	run := numbered(1, "ops")
	r.sendAll(run)
	r.next()
	r.stop()
	<-r.done
	g.Expect(r.inFlight()).To(BeZero())
	g.Expect(r.Results(OfRun(run))).To(BeEmpty())

	r.sendAll(numbered(2, "ops"))
	g.Expect(r.inFlight()).To(BeZero())
}

func TestARunAndAGroupOfOneNameAreDeliveredEachForItself(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	run, group := numbered(1, "ops"), groupIn(batchv1alpha1.JobGroupFailed, "ops")
	group.Name = run.Name
	group.Spec.Members = []batchv1alpha1.GroupMember{{RunTemplate: batchv1alpha1.JobRunTemplateSpec{Queue: "main"}}}
	subjects := []Subject{OfRun(run), OfGroup(group)}
	for _, s := range subjects {
		r.Send(s, s.Announcements()[0])
	}
	first := r.next()
	g.Expect(first.Of).To(Equal(NameOf(subjects[0])))
	r.end(first, nil)
	g.Expect(r.Results(subjects[0])).To(HaveLen(1))
	g.Expect(r.Results(subjects[1])).To(BeEmpty())

	r.Drop(first.Of)
	second := r.next()
	g.Expect(second.Of).To(Equal(NameOf(subjects[1])))
	g.Expect(second.Event).To(Equal(eventGroupFailed))
	r.end(second, nil)
	g.Expect(r.Results(subjects[1])).To(ConsistOf(Attempt{Receiver: "ops", Event: eventGroupFailed, Number: 1, At: finished}))
}

func TestTheCourierKeepsNothingOfWhatIsSettled(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	for i := range 30 {
		run := numbered(i, "ops", "audit")
		r.sendAll(run)
		for range 2 {
			r.end(r.next(), nil)
		}
		run.Status.Announcements = Record(OfRun(run), r.Results(OfRun(run)))
		g.Expect(settled(run.Status.Announcements)).To(BeTrue())
		g.Expect(r.Results(OfRun(run))).To(BeEmpty())
	}
	g.Expect(r.lines).To(BeEmpty())
	g.Expect(r.parcels).To(BeEmpty())
	g.Expect(r.ready).To(BeEmpty())
}

func isOwed(p Parcel, s Subject) bool {
	_, is := p.OwedBy(s)
	return is
}

func TestAParcelIsOwedOnlyByItsOwnRunAndOnlyOnce(t *testing.T) {
	g := NewWithT(t)
	run := numbered(1, "ops")
	p := Parcel{Of: nameOf(run), UID: run.UID, Destination: Destination{Receiver: "ops"}, Event: eventFailed}
	g.Expect(isOwed(p, OfRun(run))).To(BeTrue())

	namesake := run.DeepCopy()
	namesake.UID = "uid-of-another"
	g.Expect(isOwed(p, OfRun(namesake))).To(BeFalse())

	run.Status.Announcements[0].State = batchv1alpha1.AnnouncementDelivered
	g.Expect(isOwed(p, OfRun(run))).To(BeFalse())
}

func TestAReceiverThatAsksToBeLeftAloneIsAndNobodyElse(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	clock := r.Clock.(*clocktesting.FakePassiveClock)
	for i := range 4 {
		r.sendAll(numbered(i, "ops"))
	}
	first := r.next()
	r.answer(first) <- &Failure{Text: "answered 429", After: time.Minute}
	woken := []string{(<-r.woken).Name, (<-r.woken).Name, (<-r.woken).Name, (<-r.woken).Name}
	g.Expect(woken).To(ConsistOf("run-0", "run-1", "run-2", "run-3"), "what waited is handed back")
	g.Expect(r.Results(OfRun(numbered(0, "ops")))).To(ConsistOf(
		Attempt{Receiver: "ops", Event: eventFailed, Number: 1, At: finished, Problem: "answered 429", After: time.Minute}))
	r.finished(first)

	until := finished.Add(time.Minute)
	for i := 1; i < 4; i++ {
		run := numbered(i, "ops")
		g.Expect(r.Send(OfRun(run), run.Status.Announcements[0])).To(Equal(until))
	}
	r.idle()
	other := numbered(1, "audit")
	g.Expect(r.Send(OfRun(other), other.Status.Announcements[0])).To(BeZero())
	r.finish(r.next(), nil)

	clock.SetTime(until)
	run := numbered(1, "ops")
	g.Expect(r.Send(OfRun(run), run.Status.Announcements[0])).To(BeZero())
	r.finish(r.next(), nil)
	r.idle()
}

func TestOneThatCannotBeSignedIsTold(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	run := numbered(1, "ops")
	r.sendAll(run)
	r.end(r.next(), &Failure{Text: "no key", Unsigned: true})
	g.Expect(r.Results(OfRun(run))).To(ConsistOf(Attempt{Receiver: "ops", Event: eventFailed, Number: 1, At: finished, Problem: "no key", Unsigned: true}))
}

func TestAResultKnowsOfWhichTurnItIs(t *testing.T) {
	g := NewWithT(t)
	r := newRound(t)
	run := numbered(1, "ops")
	at := metav1.NewTime(finished.Add(time.Hour))
	run.Status.Announcements[0].OwedSince = &at
	r.sendAll(run)
	r.end(r.next(), &Failure{Text: "answered 410", Gone: true})
	g.Expect(r.Results(OfRun(run))).To(ConsistOf(
		Attempt{Receiver: "ops", Event: eventFailed, Since: at.Time, Number: 1, At: finished, Problem: "answered 410", Gone: true}))
}
