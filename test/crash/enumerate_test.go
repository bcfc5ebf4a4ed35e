// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// tries is how often a history is begun that does not come to its deaths: when which write happens depends on time.
	tries = 6
	// atOnce is how many histories go on at once: they wait most of the time.
	atOnce = 32
)

// enumeration kills the manager at every write of every scenario that is selected.
type enumeration struct {
	selection
	t     *testing.T
	slots chan struct{}

	mu       sync.Mutex
	lists    map[string]list // of a history in which nobody dies, by scenario
	recovery map[string]list // of the process after the last death, by point
	begun    map[string]int  // how many histories of a point there were
	tested   map[string]bool // the points to which a history came
	failures int
}

func TestTheManagerMayDieAtAnyWrite(t *testing.T) {
	chosen, err := selectionFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	e := &enumeration{
		selection: chosen, t: t, slots: make(chan struct{}, atOnce),
		lists: map[string]list{}, recovery: map[string]list{}, begun: map[string]int{}, tested: map[string]bool{},
	}
	all := slices.DeleteFunc(scenarios(), func(s scenario) bool { return !e.wants(s) })
	if len(all) == 0 {
		t.Fatalf("CRASH_ONLY is %q: there is no such scenario", e.only)
	}
	p, one, err := e.exactly(all[0])
	switch {
	case err != nil:
		t.Fatal(err)
	case one:
		e.each([]point{p}, e.test)
	default:
		e.all(all)
	}
}

// all enumerates the scenarios, as far as the selection goes.
func (e *enumeration) all(all []scenario) {
	e.measure(all)
	if e.mode == "list" {
		return
	}
	singles, rest := e.singles(all)
	e.each(singles, e.test)
	e.pairs(all, rest)
}

// each does something with every point, many at once.
func (e *enumeration) each(points []point, do func(point)) {
	var wg sync.WaitGroup
	for _, p := range points {
		e.slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-e.slots }()
			do(p)
		})
	}
	wg.Wait()
}

// measure finds out what each scenario writes when nobody dies: of several histories the shortest list, since the writes at
// the end of a longer one are not always there.
func (e *enumeration) measure(all []scenario) {
	var points []point
	for _, s := range all {
		tally.begin(s.name)
		points = append(points, slices.Repeat([]point{{scenario: s}}, e.baselines())...)
	}
	e.each(points, func(p point) {
		o := p.scenario.live(e.namespace(p))
		e.judge(p, o)
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(o.problems) == 0 {
			e.lists[p.scenario.name] = shorter(e.lists[p.scenario.name], o.writes[0])
		}
	})
	for _, s := range all {
		l := e.lists[s.name]
		tally.points(s.name, len(l))
		fmt.Printf("%s: %d writes\n%s", s.name, len(l), l) // not as the test's: a failure's story would come after all of it
	}
}

// singles returns the deaths to be tested, and how many histories are left for pairs of them; -1: as many as there are.
func (e *enumeration) singles(all []scenario) (chosen []point, rest int) {
	var points []point
	for _, s := range all {
		points = append(points, both(s, e.lists[s.name])...)
	}
	if e.histories == 0 {
		return points, -1
	}
	left := e.histories - e.baselines()*len(all)
	chosen = e.some(points, left*4/5)
	tally.note("single deaths: %d of %d, chosen by CRASH_SEED=%s", len(chosen), len(points), e.seed)
	return chosen, max(0, left-len(chosen))
}

// test has one history with its deaths, again if it does not come to them.
func (e *enumeration) test(p point) {
	for range tries {
		o := p.scenario.live(e.namespace(p), p.crashes...)
		e.judge(p, o)
		if o.reached {
			e.reached(p, o)
			return
		}
		if n := len(o.writes) - 1; n < len(p.crashes) && len(o.writes[n]) > p.crashes[n].k {
			tally.wrong("%s: a manager made %d writes and did not die", p, len(o.writes[n]))
			e.t.Errorf("%s: a manager made %d writes and did not die", p, len(o.writes[n]))
		}
	}
	tally.absent(p.scenario.name)
}

// namespace returns a name that no other history has.
func (e *enumeration) namespace(p point) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun[p.String()]++
	return strings.ReplaceAll(fmt.Sprintf("%s %d", p, e.begun[p.String()]), " ", "-")
}

// reached notes that a point was tested, and what the process after its last death has written.
func (e *enumeration) reached(p point, o outcome) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.tested[p.String()] {
		e.tested[p.String()] = true
		tally.tested(p.scenario.name)
	}
	if len(o.writes) <= len(p.crashes) || len(o.problems) > 0 {
		return
	}
	e.recovery[p.String()] = shorter(e.recovery[p.String()], o.writes[len(p.crashes)])
}

// stories is how many histories that went wrong are told whole.
const stories = 10

// judge enters a history into the table.
func (e *enumeration) judge(p point, o outcome) {
	tally.history(p.scenario.name, o)
	if len(o.problems) == 0 {
		return
	}
	tally.wrong("CRASH_ONLY='%s' (%s): %s", p, o.took.Round(time.Millisecond), strings.Join(o.problems, "; "))
	e.mu.Lock()
	e.failures++
	whole := e.failures <= stories
	e.mu.Unlock()
	story := ""
	if whole {
		story = "\n" + o.story
	}
	e.t.Errorf("%s (CRASH_ONLY='%s'; %s)\n%s%s", p, p, o.took.Round(time.Millisecond), strings.Join(o.problems, "\n"), story)
}
