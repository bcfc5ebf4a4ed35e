// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// machine is one ScheduledJob and its runs in memory, with managers that die at any step, caches that are behind, people
// who edit, and a run controller that asks the status, as the real one does, whether a run was recorded.
type machine struct {
	sj   *batchv1alpha1.ScheduledJob
	runs map[string]*batchv1alpha1.JobRun
	now  time.Time
	// born counts the runs, births numbers them.
	born   int
	births map[types.UID]int
	// settledBefore is the last edit or resume: no run is created for a tick up to it.
	settledBefore time.Time
	// behind says that a cache was ever behind: of managers that die with a cache that stays behind each may fill the room.
	behind bool
	// once says that the schedule was never edited or suspended, so that every tick can be accounted for.
	once bool
	// recorded are the ticks that were recorded as fired, executed the runs that could begin.
	recorded map[int64]bool
	executed map[int64]types.UID
}

func newMachine(t *rapid.T) *machine {
	m := &machine{
		sj: hourly(), runs: map[string]*batchv1alpha1.JobRun{}, births: map[types.UID]int{}, now: dawn, once: true,
		recorded: map[int64]bool{}, executed: map[int64]types.UID{},
	}
	m.sj.Status = batchv1alpha1.ScheduledJobStatus{}
	m.sj.Spec.Schedule = rapid.SampledFrom([]string{"* * * * *", "*/3 * * * *", "@every 90s"}).Draw(t, "schedule")
	m.sj.Spec.MissedRunPolicy = rapid.SampledFrom([]batchv1alpha1.MissedRunPolicy{"RunOnce", "RunAll", "Skip"}).Draw(t, "missed")
	m.sj.Spec.ConcurrencyPolicy = rapid.SampledFrom([]batchv1alpha1.ConcurrencyPolicy{"Allow", "Forbid"}).Draw(t, "overlap")
	m.sj.Spec.MaxQueuedRuns = rapid.Int32Range(1, 4).Draw(t, "most")
	return m
}

func TestOneTickIsAtMostOneRunWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"wait":   m.wait,
			"pass":   func(t *rapid.T) { m.pass(t, m.visible(t)) },
			"die":    m.die,
			"reject": m.reject,
			"answer": m.answer,
			"start":  m.start,
			"end":    m.end,
			"cancel": m.cancel,
			"remove": m.remove,
			"manual": m.manual,
			"edit":   m.edit,
			"resume": m.suspend,
		})
		m.rest(t)
	})
}

func (m *machine) wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
}

// visible is what the cache shows of the runs. It may lack the newest ones; those on record are then read live.
func (m *machine) visible(t *rapid.T) []batchv1alpha1.JobRun {
	newest := rapid.IntRange(max(0, m.born-3), m.born).Draw(t, "newest in the cache")
	m.behind = m.behind || newest < m.born
	return slices.DeleteFunc(m.everything(), func(r batchv1alpha1.JobRun) bool {
		return m.births[r.UID] > newest && r.Status.Phase == batchv1alpha1.JobRunQueued && !m.named(&r)
	})
}

func (m *machine) everything() []batchv1alpha1.JobRun {
	var seen []batchv1alpha1.JobRun
	for _, name := range slices.Sorted(maps.Keys(m.runs)) {
		seen = append(seen, *m.runs[name].DeepCopy())
	}
	return seen
}

func (m *machine) named(r *batchv1alpha1.JobRun) bool {
	return slices.ContainsFunc(m.sj.Status.Active, func(a batchv1alpha1.ActiveRun) bool { return a.UID == r.UID })
}

func (m *machine) pass(t *rapid.T, seen []batchv1alpha1.JobRun) plan {
	p := decide(m.sj, seen, m.now)
	m.write(t, p, fired{runs: m.create(t, p.decision.Fire)})
	return p
}

// die is a manager that ends after some creations, before the status.
func (m *machine) die(t *rapid.T) {
	p := decide(m.sj, m.visible(t), m.now)
	m.create(t, p.decision.Fire[:rapid.IntRange(0, len(p.decision.Fire)).Draw(t, "created")])
}

// reject is a pass that the API server stops at one of its creations.
func (m *machine) reject(t *rapid.T) {
	p := decide(m.sj, m.visible(t), m.now)
	if len(p.decision.Fire) == 0 {
		return
	}
	created := rapid.IntRange(0, len(p.decision.Fire)-1).Draw(t, "created")
	m.write(t, p, fired{runs: m.create(t, p.decision.Fire[:created]), failure: errors.New("rejected")})
}

func (m *machine) create(t *rapid.T, ticks []schedule.Tick) []firedRun {
	var runs []firedRun
	for _, tick := range ticks {
		name := runName(m.sj.Name, tick.Time, 0)
		if _, exists := m.runs[name]; !exists {
			if !tick.Time.After(m.settledBefore) {
				t.Fatalf("fires %s, which lies before an edit or resume at %s", tick.Time, m.settledBefore)
			}
			m.add(newRun(m.sj, tick.Time, 0))
		}
		runs = append(runs, firedRun{tick: tick, run: m.runs[name].DeepCopy()})
	}
	return runs
}

func (m *machine) add(r *batchv1alpha1.JobRun) {
	m.born++
	r.UID = types.UID(fmt.Sprintf("uid-%d", m.born))
	r.CreationTimestamp = metav1.NewTime(m.now)
	r.Status.Phase = batchv1alpha1.JobRunQueued
	m.births[r.UID] = m.born
	m.runs[r.Name] = r
}

func (m *machine) write(t *rapid.T, p plan, f fired) {
	for _, r := range p.recorded(f) {
		unix := r.tick.Time.Unix()
		if r.tick.Skip {
			continue
		}
		if m.recorded[unix] {
			t.Fatalf("tick %s was recorded twice", r.tick.Time)
		}
		m.recorded[unix] = true
		if m.sj.Spec.ConcurrencyPolicy == batchv1alpha1.ConcurrencyForbid && p.standing.unsettled > 0 {
			t.Fatalf("tick %s was fired beside %d unsettled runs", r.tick.Time, p.standing.unsettled)
		}
	}
	m.sj.Status = p.status(m.sj, f, m.now)
}

// answer is the run controller's view of a run that waits to hear whether it was recorded.
func (m *machine) answer(t *rapid.T) {
	r := m.pick(t, func(r *batchv1alpha1.JobRun) bool {
		return isTick(r) && r.Status.Phase == batchv1alpha1.JobRunQueued && !m.named(r)
	})
	if r == nil {
		return
	}
	s := m.sj.Status
	if r.Spec.ScheduledTime.Equal(s.LastSkippedTime) || (s.HandledThrough != nil && !r.Spec.ScheduledTime.After(s.HandledThrough.Time)) {
		ended(batchv1alpha1.JobRunSkipped)(r)
	}
}

func (m *machine) start(t *rapid.T) {
	r := m.pick(t, func(r *batchv1alpha1.JobRun) bool {
		return r.Status.Phase == batchv1alpha1.JobRunQueued && (!isTick(r) || m.named(r))
	})
	if r == nil {
		return
	}
	running(r)
	if !isTick(r) {
		return
	}
	unix := r.Spec.ScheduledTime.Unix()
	if other, twice := m.executed[unix]; twice {
		t.Fatalf("tick %s is executed as %s and %s", r.Spec.ScheduledTime, other, r.UID)
	}
	m.executed[unix] = r.UID
}

func (m *machine) end(t *rapid.T) {
	if r := m.pick(t, func(r *batchv1alpha1.JobRun) bool { return r.Status.Phase == batchv1alpha1.JobRunRunning }); r != nil {
		ended(rapid.SampledFrom([]batchv1alpha1.JobRunPhase{"Completed", "Failed"}).Draw(t, "phase"))(r)
	}
}

func (m *machine) cancel(t *rapid.T) {
	if r := m.pick(t, func(r *batchv1alpha1.JobRun) bool { return r.Status.Phase == batchv1alpha1.JobRunQueued }); r != nil {
		ended(batchv1alpha1.JobRunCancelled)(r)
	}
}

// remove is a person who deletes a run that was recorded, or history.
func (m *machine) remove(t *rapid.T) {
	if r := m.pick(t, func(r *batchv1alpha1.JobRun) bool { return !isTick(r) || m.recorded[r.Spec.ScheduledTime.Unix()] }); r != nil {
		delete(m.runs, r.Name)
	}
}

func (m *machine) manual(*rapid.T) {
	r := manual(fmt.Sprintf("m%d", m.born))
	m.add(&r)
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

func (m *machine) pick(t *rapid.T, which func(*batchv1alpha1.JobRun) bool) *batchv1alpha1.JobRun {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.runs)) {
		if which(m.runs[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return m.runs[rapid.SampledFrom(names).Draw(t, "run")]
}

func (m *machine) check(t *rapid.T) {
	if n := len(m.sj.Status.Active); !m.behind && n > int(m.sj.Spec.MaxQueuedRuns) {
		t.Fatalf("%d runs are active, at most %d may be", n, m.sj.Spec.MaxQueuedRuns)
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

// rest lets all faults end: after a pass that fires and one that sees what it fired, nothing changes any more.
func (m *machine) rest(t *rapid.T) {
	m.pass(t, m.everything())
	m.pass(t, m.everything())
	before := m.sj.DeepCopy()
	if p := m.pass(t, m.everything()); len(p.decision.Fire) > 0 {
		t.Fatalf("at rest it fires %v", shown(p.decision.Fire))
	}
	if !equality.Semantic.DeepEqual(before.Status, m.sj.Status) {
		t.Fatalf("at rest the status changes\nfrom %+v\nto   %+v", before.Status, m.sj.Status)
	}
}
