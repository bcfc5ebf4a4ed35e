// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"
	"time"

	"reprise.dev/reprise/internal/faultwire"
	"reprise.dev/reprise/internal/invariant"
)

// scenario is what happens around a manager that dies. It reads like a user's day, in which nobody knows when the manager is
// dead: every wait holds for whoever leads.
type scenario struct {
	// name, short: it is part of a namespace's.
	name string
	// limit of the queue "default".
	limit int32
	// before happens under a manager that lives, which is gone when the first one that dies is started.
	before func(*history)
	// shift puts the clock of those after it ahead.
	shift time.Duration
	// door has every process serve direct access.
	door bool
	// drive is what the user does and waits for.
	drive func(*history)
	// expect says what is wrong at the end with what this scenario is about; the invariants are checked besides.
	expect func(*history, view) []string
	// pairs has a second crash enumerated, too.
	pairs bool
	// fast has the scenario be a part of every run of all tests.
	fast bool
}

// at returns the scenario once for each limit.
func (s scenario) at(limits ...int32) []scenario {
	var all []scenario
	for _, limit := range limits {
		one := s
		one.name, one.limit = fmt.Sprintf("%s-%d", s.name, limit), limit
		all = append(all, one)
	}
	return all
}

// outcome is what a history of a scenario has shown.
type outcome struct {
	// reached says that every crash happened.
	reached bool
	// writes of each process of the enumeration, those before it apart.
	writes [][]faultwire.Request
	report invariant.Report
	// problems are broken invariants and expectations, and whatever else must not be.
	problems []string
	story    string
	took     time.Duration
}

// live has a scenario happen, with these deaths one after the other.
func (s scenario) live(namespace string, crashes ...crash) (o outcome) {
	begun := time.Now()
	h, err := newHistory(namespace)
	if err != nil {
		return outcome{problems: []string{err.Error()}}
	}
	defer h.end()
	h.limit, h.withDoor = s.limit, s.door
	before := 0
	supervised := make(chan error, 1)
	err = h.attempt(func() {
		if s.before != nil {
			h.start()
			s.before(h)
			h.settle()
			h.last().kill()
			before = len(h.all())
		}
		h.shift = s.shift
		h.begin(crashes, supervised)
		s.drive(h)
		h.settle()
		o.reached = len(h.all())-before > len(crashes)
		o.writes = h.writes(before)
		if len(crashes) == 0 {
			o.problems = untold(h.now())
		}
		h.restart()
		o.report = h.check()
		o.problems = slices.Concat(o.problems, s.expect(h, h.now()), told(o.report))
	})
	if err != nil {
		o.reached, o.writes = true, h.writes(before)
		o.problems = append(o.problems, err.Error())
		o.report = h.check()
		o.problems = append(o.problems, told(o.report)...)
	}
	h.cancel()
	if err := <-supervised; err != nil && h.ctx.Err() == nil {
		o.problems = append(o.problems, err.Error())
	}
	if len(o.problems) > 0 {
		o.story = h.story()
	}
	o.took = time.Since(begun)
	return o
}

// begin has the processes started and die, each after the other, and returns when the first one is there.
func (h *history) begin(crashes []crash, supervised chan<- error) {
	n := len(h.all())
	h.mu.Lock()
	h.settled = false
	h.mu.Unlock()
	go func() { supervised <- h.attempt(func() { h.supervise(crashes) }) }()
	for len(h.all()) == n {
		h.pass(time.Millisecond)
	}
}

// writes returns those of each process after the first n.
func (h *history) writes(n int) [][]faultwire.Request {
	var all [][]faultwire.Request
	for _, p := range h.all()[n:] {
		all = append(all, p.wire.Writes())
	}
	return all
}

// told returns what the checker found as text.
func told(r invariant.Report) []string {
	var all []string
	for _, v := range r.Violations {
		all = append(all, fmt.Sprintf("invariant %d: %s: %s", v.Invariant, v.Subject, v.Message))
	}
	slices.Sort(all)
	return all
}

// scenarios are all that there are.
func scenarios() []scenario {
	return slices.Concat(runScenarios(), cancelScenarios(), scheduleScenarios(), directScenarios(), groupScenarios(), endScenarios())
}
