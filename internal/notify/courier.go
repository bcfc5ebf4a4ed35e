// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// A delivery takes a place until its result is on record: so these bound the calls at once, and also how many a crash
// makes happen again.
const (
	// placesOfOne are the places of a receiver that acknowledged the last delivery.
	placesOfOne = 8
	// placesOfAll are the places of all receivers together.
	placesOfAll = 256
)

// ErrNotTried is what Courier.Carry returns when there was nothing to send after all: it counts as no attempt.
var ErrNotTried = errors.New("not tried")

// Parcel is one announcement on its way. What it says, and where it goes, is read when its turn comes: it may wait long.
type Parcel struct {
	// Of names the run or group, and UID tells it from a namesake.
	Of  Name
	UID types.UID
	// Destination is for whom it is, and Event what it announces.
	Destination
	Event string
}

// OwedBy returns the announcement that the parcel is, false if it is not of this run or group or no longer owed.
func (p Parcel) OwedBy(s Subject) (batchv1alpha1.Announcement, bool) {
	if s.Object().GetUID() != p.UID {
		return batchv1alpha1.Announcement{}, false
	}
	i := slices.IndexFunc(s.Announcements(), func(a batchv1alpha1.Announcement) bool {
		return owed(a) && a.Receiver == p.Receiver && a.ScheduledJob == p.ScheduledJob && a.Event == p.Event
	})
	if i < 0 {
		return batchv1alpha1.Announcement{}, false
	}
	return s.Announcements()[i], true
}

// Courier makes deliveries outside of any reconcile, and keeps their results until they are on record.
//
// Every receiver has a line of its own, and the lines are served in turn. A receiver that acknowledges is given several
// places, one that does not a single one: so one that hangs costs one place of many, and delays nobody else. One that asks
// to be left alone for a while is.
type Courier struct {
	// Carry makes one delivery, and returns soon after its context ends. nil: the receiver acknowledged.
	Carry func(context.Context, Parcel) error
	// Wake is called with the run or group after a delivery of it has ended. It must not block.
	Wake func(Name)
	// Clock dates the results.
	Clock clock.PassiveClock

	mu      sync.Mutex
	begin   func(func(context.Context)) // nil: nothing may begin
	group   sync.WaitGroup
	taken   int // places
	lines   map[Destination]*line
	quiet   map[Destination]time.Time // until when they want to be left alone
	ready   []*line                   // those with a parcel waiting and a place for it, each once
	parcels map[Name]map[Parcel]*delivery
}

type line struct {
	to           Destination
	waiting      []Parcel
	taken        int  // places
	acknowledged bool // the last delivery was
	ready        bool // the line is among the ready ones
}

func (l *line) places() int {
	if l.acknowledged {
		return placesOfOne
	}
	return 1
}

// delivery is a parcel in the charge of the courier: from Send until its result is on record.
type delivery struct {
	number int32
	since  time.Time // as in Attempt
	line   *line
	result *Attempt // nil while it waits or is under way
}

// Start lets deliveries begin, and returns when ctx has ended and nothing is under way any more. What the end of ctx cuts
// short leaves no result: it is still owed.
func (c *Courier) Start(ctx context.Context) error {
	c.mu.Lock()
	c.begin = func(delivery func(context.Context)) { c.group.Go(func() { delivery(ctx) }) }
	c.pump()
	c.mu.Unlock()

	<-ctx.Done()
	c.mu.Lock()
	c.begin = nil
	c.mu.Unlock()
	c.group.Wait()
	return nil
}

// Send takes charge of the next attempt at an announcement of the subject. It does not block. While an earlier attempt waits,
// is under way, or is not on record yet, it does nothing. While the receiver wants to be left alone it does not take charge, and
// returns until when that is; the zero time otherwise.
func (c *Courier) Send(s Subject, a batchv1alpha1.Announcement) (later time.Time) {
	p := Parcel{Of: NameOf(s), UID: s.Object().GetUID(), Destination: DestinationOf(s, a), Event: a.Event}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parcels[p.Of][p] != nil {
		return time.Time{}
	}
	if until := c.quiet[p.Destination]; until.After(c.Clock.Now()) {
		return until
	}
	l := c.line(p.Destination)
	c.keep(p, &delivery{number: a.Attempts + 1, since: askedAt(a), line: l})
	l.waiting = append(l.waiting, p)
	c.offer(l)
	c.pump()
	return time.Time{}
}

// Results returns what became of deliveries of the subject and is not on record in it. What is on record it forgets, and
// with it every delivery of an earlier one of the same name.
func (c *Courier) Results(s Subject) []Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	var results []Attempt
	for p, d := range c.parcels[NameOf(s)] {
		switch {
		case p.UID != s.Object().GetUID():
			c.forget(p)
		case d.result == nil:
		case d.result.RecordedIn(s.Announcements()):
			c.forget(p)
		default:
			results = append(results, *d.result)
		}
	}
	c.pump()
	return results
}

// Drop forgets every delivery of a run or group that no longer exists. Those that wait are not made; the results of those
// under way are lost.
func (c *Courier) Drop(name Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.parcels[name] {
		c.forget(p)
	}
	c.pump()
}

// pump begins deliveries while there are places, one of each line in turn.
func (c *Courier) pump() {
	for c.begin != nil && c.taken < placesOfAll && len(c.ready) > 0 {
		l := c.ready[0]
		c.ready = c.ready[1:]
		l.ready = false
		if len(l.waiting) > 0 && l.taken < l.places() { // it may have lost either since it was offered
			c.next(l)
		}
		c.offer(l)
	}
}

func (c *Courier) next(l *line) {
	p := l.waiting[0]
	l.waiting = l.waiting[1:]
	d := c.parcels[p.Of][p]
	if d == nil { // dropped
		return
	}
	l.taken++
	c.taken++
	c.begin(func(ctx context.Context) { c.deliver(ctx, p, d) })
}

func (c *Courier) deliver(ctx context.Context, p Parcel, d *delivery) {
	err := c.Carry(ctx, p)
	at := c.Clock.Now()

	c.mu.Lock()
	dropped := c.parcels[p.Of][p] != d
	tried := err == nil || (!errors.Is(err, ErrNotTried) && ctx.Err() == nil)
	if tried {
		d.line.acknowledged = err == nil
	}
	result := attempt(p, d, at, err)
	if tried && !dropped {
		d.result = &result
		c.offer(d.line)
	} else {
		if !dropped {
			c.forget(p)
		}
		c.free(d.line)
	}
	var woken []Name
	if tried && result.After > 0 {
		woken = c.leave(d.line, at.Add(result.After))
	}
	c.pump()
	c.mu.Unlock()
	for _, name := range append(woken, p.Of) {
		c.Wake(name)
	}
}

// leave leaves a receiver alone until then: what waits for it is handed back, and who is to be woken to learn of it returned.
func (c *Courier) leave(l *line, until time.Time) (handedBack []Name) {
	maps.DeleteFunc(c.quiet, func(_ Destination, until time.Time) bool { return !until.After(c.Clock.Now()) })
	if c.quiet == nil {
		c.quiet = map[Destination]time.Time{}
	}
	c.quiet[l.to] = until
	for _, p := range l.waiting {
		if c.parcels[p.Of][p] == nil { // dropped
			continue
		}
		c.forget(p)
		handedBack = append(handedBack, p.Of)
	}
	l.waiting = nil
	c.offer(l)
	return handedBack
}

func attempt(p Parcel, d *delivery, at time.Time, err error) Attempt {
	result := Attempt{Receiver: p.Receiver, ScheduledJob: p.ScheduledJob, Event: p.Event, Since: d.since, Number: d.number, At: at}
	if err == nil {
		return result
	}
	result.Problem = err.Error()
	if failure, ok := errors.AsType[*Failure](err); ok {
		result.Gone, result.Unsigned, result.After = failure.Gone, failure.Unsigned, min(failure.After, longestDelay)
	}
	return result
}

func (c *Courier) free(l *line) {
	l.taken--
	c.taken--
	c.offer(l)
}

// offer puts the line among the ready ones if it has a parcel waiting and a place for it. A line with nothing to do is let
// go: a courier may meet many receivers in its life.
func (c *Courier) offer(l *line) {
	switch {
	case len(l.waiting) == 0:
		if l.taken == 0 {
			delete(c.lines, l.to)
		}
	case !l.ready && l.taken < l.places():
		l.ready = true
		c.ready = append(c.ready, l)
	}
}

func (c *Courier) line(to Destination) *line {
	if c.lines == nil {
		c.lines = map[Destination]*line{}
	}
	l := c.lines[to]
	if l == nil {
		l = &line{to: to}
		c.lines[to] = l
	}
	return l
}

func (c *Courier) keep(p Parcel, d *delivery) {
	if c.parcels == nil {
		c.parcels = map[Name]map[Parcel]*delivery{}
	}
	if c.parcels[p.Of] == nil {
		c.parcels[p.Of] = map[Parcel]*delivery{}
	}
	c.parcels[p.Of][p] = d
}

// forget gives the place of a delivery back if it has ended. One that is under way does so itself when it ends.
func (c *Courier) forget(p Parcel) {
	if d := c.parcels[p.Of][p]; d.result != nil {
		c.free(d.line)
	}
	delete(c.parcels[p.Of], p)
	if len(c.parcels[p.Of]) == 0 {
		delete(c.parcels, p.Of)
	}
}
