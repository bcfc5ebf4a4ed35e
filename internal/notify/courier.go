// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"slices"
	"sync"

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
	// Queue and Receiver say for whom it is, Event what it announces.
	Queue, Receiver, Event string
}

// OwedBy reports whether the parcel is of this run or group, and still owed.
func (p Parcel) OwedBy(s Subject) bool {
	return s.Object().GetUID() == p.UID && slices.ContainsFunc(s.Announcements(), func(a batchv1alpha1.Announcement) bool {
		return owed(a) && a.Receiver == p.Receiver && a.Event == p.Event
	})
}

// Courier makes deliveries outside of any reconcile, and keeps their results until they are on record.
//
// Every receiver has a line of its own, and the lines are served in turn. A receiver that acknowledges is given several
// places, one that does not a single one: so one that hangs costs one place of many, and delays nobody else.
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
	lines   map[destination]*line
	ready   []*line // those with a parcel waiting and a place for it, each once
	parcels map[Name]map[Parcel]*delivery
}

// destination is one receiver of one queue.
type destination struct{ namespace, queue, receiver string }

type line struct {
	to           destination
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
// is under way, or is not on record yet, it does nothing.
func (c *Courier) Send(s Subject, a batchv1alpha1.Announcement) {
	p := Parcel{
		Of:       NameOf(s),
		UID:      s.Object().GetUID(),
		Queue:    s.Queue(),
		Receiver: a.Receiver,
		Event:    a.Event,
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parcels[p.Of][p] != nil {
		return
	}
	l := c.line(destination{p.Of.Namespace, p.Queue, p.Receiver})
	c.keep(p, &delivery{number: a.Attempts + 1, line: l})
	l.waiting = append(l.waiting, p)
	c.offer(l)
	c.pump()
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
		if l.taken < l.places() { // it may have lost places since it was offered
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
	if tried && !dropped {
		d.result = &Attempt{Receiver: p.Receiver, Event: p.Event, Number: d.number, At: at, Problem: text(err)}
		c.offer(d.line)
	} else {
		if !dropped {
			c.forget(p)
		}
		c.free(d.line)
	}
	c.pump()
	c.mu.Unlock()
	c.Wake(p.Of)
}

func (c *Courier) free(l *line) {
	l.taken--
	c.taken--
	c.offer(l)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
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

func (c *Courier) line(to destination) *line {
	if c.lines == nil {
		c.lines = map[destination]*line{}
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
