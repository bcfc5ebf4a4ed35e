// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/memoryapi"
)

// maxSteps bounds a history: one that has not settled by then never does.
const maxSteps = 200_000

// stats counts what there was in histories.
type stats struct {
	Histories, Steps, Requests, Kills, Pauses, Faults, Acts, TooLate, Window int
	Checked                                                                  map[int]int
}

func (s *stats) add(o outcome) {
	s.Histories++
	s.Steps += o.stats.Steps
	s.Requests += o.stats.Requests
	s.Kills += o.stats.Kills
	s.Pauses += o.stats.Pauses
	s.Faults += o.stats.Faults
	s.Acts += o.stats.Acts
	s.TooLate += o.stats.TooLate
	s.Window += o.report.HTTPWindow
	if s.Checked == nil {
		s.Checked = map[int]int{}
	}
	for i, n := range o.report.Checked {
		s.Checked[i] += n
	}
}

// sim is one history while it happens. It is used by the scheduler's goroutine alone, but for what says otherwise.
type sim struct {
	plan   plan
	chance chance
	scheme *runtime.Scheme
	server *memoryapi.Server
	// direct reaches the server at once: the world is not what is tested.
	direct  client.Client
	network *network
	agenda  agenda

	begin     time.Time
	processes []*process
	calm      atomic.Bool // faults are over

	events  map[schema.GroupVersionKind][]memoryapi.Event
	seen    int64
	history invariant.History

	noted noted // Events

	jobs  map[string]bool // of the world: what is on the agenda
	calls map[string]int
	fired []string // faults, as they happened
	flaws []string // of the simulation itself

	verbose bool
	lines   []string
	stats   stats
}

func (s *sim) now() time.Time { return time.Now() }

// trace notes a step of the history.
func (s *sim) trace(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf("%12.6f %s", s.now().Sub(s.begin).Seconds(), fmt.Sprintf(format, args...)))
}

// note notes what is no step: what a process logs, in whatever order. It is called from any goroutine, and only if somebody
// watches.
func (s *sim) note(format string, args ...any) {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	fmt.Printf("%12.6f %s\n", s.now().Sub(s.begin).Seconds(), fmt.Sprintf(format, args...))
}

// after puts something on the agenda.
func (s *sim) after(d time.Duration, key string, do func()) { s.agenda.add(s.now().Add(d), key, do) }

// run carries out what is on the agenda until the time is over.
func (s *sim) run(until time.Time) {
	for s.stats.Steps < maxSteps {
		synctest.Wait()
		s.mourn()
		s.admit()
		if s.utter() {
			continue
		}
		s.feed()
		now := s.now()
		t, wait := s.agenda.next(now)
		if t != nil {
			s.stats.Steps++
			t.do()
			continue
		}
		left := until.Sub(now)
		if left <= 0 {
			return
		}
		if wait < 0 || wait > left {
			wait = left
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.network.wake:
		}
		timer.Stop()
	}
}

// mourn notes the processes that have ended.
func (s *sim) mourn() {
	for _, p := range s.processes {
		if p.ended() && !p.told {
			p.told = true
			p.paused = false
			s.trace("%s ends: %s", p.id, firstLine(p.why))
			s.buried(p)
		}
	}
}

// delay is how long a message takes.
func (s *sim) delay(c chance) time.Duration {
	if s.calm.Load() || !c.hits(s.plan.Rough) {
		return c.between(50*time.Microsecond, 5*time.Millisecond)
	}
	return c.between(5*time.Millisecond, 3*time.Second)
}

// kindOf is the short name of the kind of an object or list.
func (s *sim) kindOf(o runtime.Object) string {
	gvk, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(gvk.Kind, "List")
}

// deleted notes that a person has deleted an object.
func (s *sim) deleted(uid types.UID) { s.history.Deleted = append(s.history.Deleted, uid) }

// must notes what the server refuses to the world: then the world is not simulated well.
func (s *sim) must(err error) {
	if err != nil {
		s.trace("the world is refused: %v", err)
		s.flaws = append(s.flaws, err.Error())
	}
}
