// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// machine is one ScheduledJob and what it has made, in memory, with managers that die at any step, caches that are behind,
// people who edit, and run and group controllers that ask the status, as the real ones do, whether something was recorded.
type machine struct {
	stock
	sj  *batchv1alpha1.ScheduledJob
	now time.Time
	// settledBefore is the last edit or resume: nothing is created for a tick up to it.
	settledBefore time.Time
	// behind says that a cache was ever behind: of managers that die with a cache that stays behind each may fill the room.
	behind bool
	// once says that the schedule was never edited or suspended, so that every tick can be accounted for.
	once bool
	// recorded are the ticks that were recorded as fired, executed what could begin.
	recorded map[int64]bool
	executed map[int64]types.UID
}

func newMachine(t *rapid.T) *machine {
	m := &machine{stock: newStock(), sj: hourly(), now: dawn, once: true, recorded: map[int64]bool{}, executed: map[int64]types.UID{}}
	m.sj.Status = batchv1alpha1.ScheduledJobStatus{}
	m.sj.Spec.Schedule = rapid.SampledFrom([]string{"* * * * *", "*/3 * * * *", "@every 90s"}).Draw(t, "schedule")
	m.sj.Spec.MissedRunPolicy = rapid.SampledFrom([]batchv1alpha1.MissedRunPolicy{"RunOnce", "RunAll", "Skip"}).Draw(t, "missed")
	m.sj.Spec.ConcurrencyPolicy = rapid.SampledFrom([]batchv1alpha1.ConcurrencyPolicy{"Allow", "Forbid", "Replace"}).Draw(t, "overlap")
	m.sj.Spec.MaxQueuedRuns = rapid.Int32Range(1, 4).Draw(t, "most")
	m.template(t)
	return m
}

func TestOneTickIsAtMostOneRunOrGroupWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"wait":     m.wait,
			"pass":     func(t *rapid.T) { m.pass(t, m.visible(t)) },
			"die":      m.die,
			"reject":   m.reject,
			"answer":   m.answer,
			"start":    m.start,
			"end":      m.end,
			"cancel":   m.cancel,
			"back off": m.backOff,
			"retry":    m.retry,
			"obey":     m.obey,
			"delete":   m.delete,
			"manual":   m.manual,
			"template": m.template,
			"edit":     m.edit,
			"resume":   m.suspend,
		})
		m.rest(t)
	})
}

func (m *machine) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
}

// visible is what the cache shows. It may lack the newest; what is on record is then read live.
func (m *machine) visible(t *rapid.T) []product {
	newest := rapid.IntRange(max(0, m.born-3), m.born).Draw(t, "newest in the cache")
	m.behind = m.behind || newest < m.born
	return m.seen(func(p product) bool { return m.births[p.uid] <= newest || !p.waits || m.named(p) })
}

func (m *machine) everything() []product { return m.seen(func(product) bool { return true }) }

func (m *machine) named(p product) bool {
	for _, a := range m.sj.Status.Active {
		if a.UID == p.uid {
			return true
		}
	}
	return false
}

func (m *machine) pass(t *rapid.T, seen []product) plan {
	p := decide(m.sj, seen, m.now)
	m.write(t, p, fired{made: m.create(t, p.decision.Fire)})
	m.halt(t, p, len(p.replaced()))
	return p
}

// die is a manager that ends after some creations, before the status, or after the status, when it has halted only some.
func (m *machine) die(t *rapid.T) {
	p := decide(m.sj, m.visible(t), m.now)
	if n := len(p.replaced()); n > 0 {
		m.write(t, p, fired{})
		m.halt(t, p, rapid.IntRange(0, n-1).Draw(t, "halted"))
		return
	}
	m.create(t, p.decision.Fire[:rapid.IntRange(0, len(p.decision.Fire)).Draw(t, "created")])
}

// reject is a pass that the API server stops at one of its creations.
func (m *machine) reject(t *rapid.T) {
	p := decide(m.sj, m.visible(t), m.now)
	if len(p.decision.Fire) == 0 {
		return
	}
	created := rapid.IntRange(0, len(p.decision.Fire)-1).Draw(t, "created")
	m.write(t, p, fired{made: m.create(t, p.decision.Fire[:created]), failure: errors.New("rejected")})
}

func (m *machine) create(t *rapid.T, ticks []schedule.Tick) []fire {
	var made []fire
	for _, tick := range ticks {
		o := newObject(m.sj, tick.Time, 0)
		if there, exists := m.objects[key(o)]; exists {
			o = there
		} else {
			if !tick.Time.After(m.settledBefore) {
				t.Fatalf("fires %s, which lies before an edit or resume at %s", tick.Time, m.settledBefore)
			}
			m.add(o, m.now)
		}
		made = append(made, fire{tick: tick, made: productOf(o)})
	}
	return made
}

func (m *machine) write(t *rapid.T, p plan, f fired) {
	m.checkFires(t, p, f)
	m.sj.Status = p.status(m.sj, f, m.now)
}

// checkFires: no tick is recorded twice, and where overlap is not allowed none beside anything else.
func (m *machine) checkFires(t *rapid.T, p plan, f fired) {
	alone := m.sj.Spec.ConcurrencyPolicy != batchv1alpha1.ConcurrencyAllow
	beside := len(p.standing.unsettled)
	for _, r := range p.recorded(f) {
		unix := r.tick.Time.Unix()
		if r.tick.Skip {
			continue
		}
		if m.recorded[unix] {
			t.Fatalf("tick %s was recorded twice", r.tick.Time)
		}
		m.recorded[unix] = true
		if alone && beside > 0 {
			t.Fatalf("tick %s was fired beside %d unsettled", r.tick.Time, beside)
		}
		if !r.made.over() {
			beside++
		}
	}
}

// halt asks the first n of what is replaced to end.
func (m *machine) halt(t *rapid.T, p plan, n int) {
	for _, replaced := range p.replaced()[:n] {
		if m.sj.Spec.ConcurrencyPolicy != batchv1alpha1.ConcurrencyReplace {
			t.Fatalf("cancels %s although concurrencyPolicy is %s", replaced.uid, m.sj.Spec.ConcurrencyPolicy)
		}
		for _, part := range replaced.parts {
			if next := halted(part, "replaced"); next != nil {
				m.objects[key(next)] = next
			}
		}
	}
}

// answer is the controller's view of what waits to hear whether it was recorded.
func (m *machine) answer(t *rapid.T) {
	o := m.one(t, func(o client.Object) bool { return waiting(o) && m.unconfirmed(o) })
	if o == nil {
		return
	}
	s, tick := m.sj.Status, *productOf(o).tick
	if at(tick).Equal(s.LastSkippedTime) || (s.HandledThrough != nil && !tick.After(s.HandledThrough.Time)) {
		m.finish(o, batchv1alpha1.JobRunSkipped)
	}
}

// unconfirmed reports whether a tick made the object and status does not name it.
func (m *machine) unconfirmed(o client.Object) bool {
	p := productOf(o)
	return p.tick != nil && !m.named(p)
}

func (m *machine) start(t *rapid.T) {
	o := m.one(t, func(o client.Object) bool { return waiting(o) && !asked(o) && !m.unconfirmed(o) })
	if o == nil {
		return
	}
	begin(o)
	p := productOf(o)
	if p.tick == nil {
		return
	}
	if other, twice := m.executed[p.tick.Unix()]; twice {
		t.Fatalf("tick %s is executed as %s and %s", p.tick, other, p.uid)
	}
	m.executed[p.tick.Unix()] = p.uid
}

func (m *machine) end(t *rapid.T) {
	if o := m.one(t, atWork); o != nil {
		m.finish(o, rapid.SampledFrom([]batchv1alpha1.JobRunPhase{"Completed", "Failed"}).Draw(t, "phase"))
	}
}

func (m *machine) cancel(t *rapid.T) {
	if o := m.one(t, waiting); o != nil {
		m.finish(o, batchv1alpha1.JobRunCancelled)
	}
}

// backOff is the first run of a chain that fails and is to be retried, unless it was asked to end.
func (m *machine) backOff(t *rapid.T) {
	o := m.one(t, func(o client.Object) bool { return atWork(o) && !asked(o) && productOf(o).object != nil })
	if r, ok := o.(*batchv1alpha1.JobRun); ok {
		inBackOff(r)
	}
}

func (m *machine) retry(t *rapid.T) {
	if r, ok := m.one(t, retriable).(*batchv1alpha1.JobRun); ok {
		child := retryOf(*r)
		m.add(&child, m.now)
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}
	}
}

// obey ends what was asked to end. It may have come to another end by itself.
func (m *machine) obey(t *rapid.T) {
	if o := m.one(t, asked); o != nil {
		m.finish(o, rapid.SampledFrom([]batchv1alpha1.JobRunPhase{"Cancelled", "Completed", "Failed"}).Draw(t, "phase"))
	}
}

// delete is a person who deletes what was recorded, or history.
func (m *machine) delete(t *rapid.T) {
	o := m.one(t, func(o client.Object) bool {
		tick := productOf(o).tick
		return tick == nil || m.recorded[tick.Unix()]
	})
	if o != nil {
		m.remove(o)
	}
}

func (m *machine) manual(*rapid.T) {
	r := manual(fmt.Sprintf("m%d", m.born))
	m.add(&r, m.now)
}

func (m *machine) template(t *rapid.T) {
	rapid.SampledFrom([]change{runs, groups}).Draw(t, "template")(m.sj)
}

func (m *machine) edit(t *rapid.T) {
	before := m.sj.Spec.Schedule
	m.sj.Spec.Schedule = rapid.SampledFrom([]string{"* * * * *", "*/3 * * * *", "@every 90s", "* * * * 9"}).Draw(t, "schedule")
	if m.sj.Spec.Schedule != before {
		m.changed(t)
	}
}

func (m *machine) suspend(t *rapid.T) {
	m.sj.Spec.Suspend = !m.sj.Spec.Suspend
	m.changed(t)
}

// changed lets a manager see the edit at once: what one does not see is as if it had not been.
func (m *machine) changed(t *rapid.T) {
	seen := m.sj.Status.ObservedSchedule != ""
	m.once = false
	if seen && !m.sj.Spec.Suspend {
		m.settledBefore = m.now
	}
	m.pass(t, m.everything())
}

func (m *machine) check(t *rapid.T) {
	if n := len(m.sj.Status.Active); !m.behind && n > int(m.sj.Spec.MaxQueuedRuns) {
		t.Fatalf("%d are active, at most %d may be", n, m.sj.Spec.MaxQueuedRuns)
	}
	m.checkCount(t)
}

// checkCount compares what the status counts with the ticks there were.
func (m *machine) checkCount(t *rapid.T) {
	s := m.sj.Status
	if !m.once || s.HandledThrough == nil {
		return
	}
	cron, err := schedule.Parse(m.sj.Spec.Schedule, "", dawn)
	if err != nil {
		t.Fatal(err)
	}
	ticks := cron.Count(dawn, s.HandledThrough.Time)
	if counted := int64(len(m.recorded)) + s.MissedRuns + s.SkippedRuns; counted != ticks {
		t.Fatalf("of %d ticks %d were fired, %d missed and %d skipped", ticks, len(m.recorded), s.MissedRuns, s.SkippedRuns)
	}
}

// rest lets all faults end: after a pass that fires and one that sees what it fired, nothing changes any more. What was asked
// to end does so then, and what waited for that fires.
func (m *machine) rest(t *rapid.T) {
	for waits := m.settle(t); !waits.IsZero(); waits = m.settle(t) {
		if m.sj.Status.ReplacingSince == nil {
			t.Fatalf("the tick of %s waits, and status does not say so", waits)
		}
		for m.one(t, asked) != nil {
			m.obey(t)
		}
		for m.one(t, retriable) != nil {
			m.retry(t)
		}
		if p := decide(m.sj, m.everything(), m.now); p.decision.Replacing.IsZero() && len(p.decision.Fire)+len(p.taken) == 0 {
			t.Fatalf("the tick of %s has waited, and does not fire", waits)
		}
	}
}

// settle returns the tick that goes on waiting.
func (m *machine) settle(t *rapid.T) time.Time {
	m.pass(t, m.everything())
	m.pass(t, m.everything())
	before := m.sj.DeepCopy()
	p := m.pass(t, m.everything())
	if len(p.decision.Fire) > 0 {
		t.Fatalf("at rest it fires %v", shown(p.decision.Fire))
	}
	if !equality.Semantic.DeepEqual(before.Status, m.sj.Status) {
		t.Fatalf("at rest the status changes\nfrom %+v\nto   %+v", before.Status, m.sj.Status)
	}
	return p.decision.Replacing
}
