// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

// recurring is the spec of a schedule with the defaults of the API, changed by the options.
func recurring(t rapid.TB, expr string, options ...func(*Spec)) Spec {
	t.Helper()
	s := mustParse(t, expr, "", time.Unix(0, 0))
	spec := Spec{Cron: &s, MissedRunPolicy: RunOnce, Overlap: Allow, MaxQueued: 100}
	for _, option := range options {
		option(&spec)
	}
	return spec
}

func deadline(seconds int64) func(*Spec) {
	return func(s *Spec) { s.StartingDeadlineSeconds = &seconds }
}

func policy(p MissedRunPolicy) func(*Spec) { return func(s *Spec) { s.MissedRunPolicy = p } }

func forbid(s *Spec) { s.Overlap = Forbid }

func replace(s *Spec) { s.Overlap = Replace }

func atMost(n int) func(*Spec) { return func(s *Spec) { s.MaxQueued = n } }

// clock is a time on the day that most tests play on.
func clock(t testing.TB, text string) time.Time {
	t.Helper()
	return mustTime(t, "2026-05-01T"+text+"Z")
}

// fired shows what a decision fires as times of the day, Skipped runs in brackets.
func fired(d Decision) []string {
	var all []string
	for _, tick := range d.Fire {
		text := tick.Time.Format(time.TimeOnly)
		if tick.Skip {
			text = "(" + text + ")"
		}
		all = append(all, text)
	}
	return all
}

func TestNothingIsDueBeforeTheFirstTick(t *testing.T) {
	g := NewWithT(t)
	d := Decide(recurring(t, "0 * * * *"), State{Since: clock(t, "10:00:00")}, clock(t, "10:59:59.9"))
	g.Expect(d).To(Equal(Decision{
		HandledThrough: clock(t, "10:00:00"), Next: clock(t, "11:00:00"), Wake: clock(t, "11:00:00"),
		Reason: Waiting, Message: "waiting for 2026-05-01T11:00:00Z",
	}))
}

func TestATickFiresOnTimeAndTheNextIsShown(t *testing.T) {
	g := NewWithT(t)
	d := Decide(recurring(t, "0 * * * *"), State{Since: clock(t, "10:00:00")}, clock(t, "11:00:00"))
	g.Expect(d).To(Equal(Decision{
		Fire: []Tick{{Time: clock(t, "11:00:00")}}, HandledThrough: clock(t, "11:00:00"),
		Next: clock(t, "12:00:00"), Wake: clock(t, "12:00:00"),
		Reason: Fired, Message: "fired 1, the latest for 2026-05-01T11:00:00Z",
	}))
}

func TestASuspendedScheduleFiresNothingAndIsNotWoken(t *testing.T) {
	g := NewWithT(t)
	runAt := clock(t, "11:00:00")
	for name, spec := range map[string]Spec{
		"recurring": recurring(t, "0 * * * *", func(s *Spec) { s.Suspend = true }),
		"one-time":  {RunAt: &runAt, Suspend: true, MaxQueued: 100},
	} {
		d := Decide(spec, State{Since: clock(t, "10:00:00")}, clock(t, "13:00:00"))
		g.Expect(d.Fire).To(BeEmpty(), name)
		g.Expect(d.HandledThrough).To(Equal(clock(t, "10:00:00")), name)
		g.Expect(d.SettledRunAt).To(BeNil(), name)
		g.Expect([]time.Time{d.Next, d.Wake}).To(HaveEach(BeZero()), name)
		g.Expect(d.Reason).To(Equal(Suspended), name)
	}
}

func TestATemplateForManualRunsNeverFires(t *testing.T) {
	g := NewWithT(t)
	d := Decide(Spec{MaxQueued: 100}, State{}, clock(t, "13:00:00"))
	g.Expect(d).To(Equal(Decision{Reason: Manual, Message: d.Message}))
}

func TestAScheduleWithoutAnyFurtherTickIsDone(t *testing.T) {
	g := NewWithT(t)
	now := mustTime(t, "9999-12-31T23:59:59Z")
	d := Decide(recurring(t, "0 0 1 1 *"), State{Since: now.Add(-time.Hour)}, now)
	g.Expect(d.Reason).To(Equal(Done))
	g.Expect([]time.Time{d.Next, d.Wake}).To(HaveEach(BeZero()))
}

func TestAClockThatWasPutBackFiresNothingTwiceAndShowsNoSettledTickAsNext(t *testing.T) {
	g := NewWithT(t)
	d := Decide(recurring(t, "0 * * * *"), State{Since: clock(t, "12:00:00")}, clock(t, "10:30:00"))
	g.Expect(d.Fire).To(BeEmpty())
	g.Expect(d.HandledThrough).To(Equal(clock(t, "12:00:00")))
	g.Expect(d.Next).To(Equal(clock(t, "13:00:00")))
}

// life plays a ScheduledJob over hours: time passes, runs settle, the manager crashes at any point between creating
// runs and recording them. It is the caller that the package comment describes.
type life struct {
	t        *rapid.T
	spec     Spec
	start    time.Time
	now      time.Time
	state    State
	runs     map[int64]bool // by tick: whether the run is a Skipped one
	recorded map[int64]bool
	counted  int64 // Missed and Overlapped, added up
}

func (l *life) decide() Decision {
	l.state.Made = nil
	for tick := range l.runs {
		if !l.recorded[tick] {
			l.state.Made = append(l.state.Made, time.Unix(tick, 0))
		}
	}
	d := Decide(l.spec, l.state, l.now)
	l.checkReplace(d)
	for _, tick := range d.Fire {
		if !tick.Time.After(l.start) || tick.Time.After(l.now) {
			l.t.Fatalf("fires %v, which is not in (%v, %v]", tick.Time, l.start, l.now)
		}
		if _, again := l.runs[tick.Time.Unix()]; again {
			l.t.Fatalf("fires %v again", tick.Time)
		}
	}
	return d
}

// checkReplace: what is active is cancelled only under Replace and for a tick that has come, nothing fires beside it, and
// never two at once.
func (l *life) checkReplace(d Decision) {
	replaces := l.spec.Overlap == Replace
	if !d.Replacing.IsZero() && (!replaces || l.state.Active == 0 || d.Replacing.After(l.now)) {
		l.t.Fatalf("with %d active cancels them for %v", l.state.Active, d.Replacing)
	}
	if replaces && l.state.Active+len(d.Fire) > 1 && len(d.Fire) > 0 {
		l.t.Fatalf("fires %v beside %d active", d.Fire, l.state.Active)
	}
}

func (l *life) create(ticks []Tick) {
	for _, tick := range ticks {
		l.runs[tick.Time.Unix()] = tick.Skip
		if !tick.Skip {
			l.state.Active++
		}
	}
}

func (l *life) record(d Decision) {
	if d.HandledThrough.Before(l.state.Since) {
		l.t.Fatalf("goes back from %v to %v", l.state.Since, d.HandledThrough)
	}
	l.state.Since, l.state.SettledRunAt, l.state.LastSkipped = d.HandledThrough, d.SettledRunAt, d.LastSkipped
	l.state.Replacing = d.Replacing
	l.counted += d.Missed + d.Overlapped
	for tick := range l.runs {
		l.recorded[tick] = true
	}
}

func TestOverAnyLifeNoTickFiresTwiceAndEveryTickIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1_777_593_600, 0).UTC()
		expr := rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "@every 1s", "@every 45s", "0 * * * *"}).Draw(t, "schedule")
		options := []func(*Spec){
			policy(rapid.SampledFrom([]MissedRunPolicy{RunOnce, RunAll, Skip}).Draw(t, "missed-run policy")),
			atMost(rapid.SampledFrom([]int{0, 1, 3, 100, 500}).Draw(t, "maximum")),
		}
		overlap := rapid.SampledFrom([]OverlapPolicy{Allow, Forbid, Replace}).Draw(t, "overlap")
		options = append(options, func(s *Spec) { s.Overlap = overlap })
		if seconds := rapid.Int64Range(-1, 1000).Draw(t, "deadline"); seconds >= 0 {
			options = append(options, deadline(seconds))
		}
		l := &life{
			t: t, spec: recurring(t, expr, options...), start: start, now: start, state: State{Since: start},
			runs: map[int64]bool{}, recorded: map[int64]bool{},
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			l.now = l.now.Add(time.Duration(rapid.Int64Range(0, 3600*1e9).Draw(t, "pass")))
			l.state.Active -= rapid.IntRange(0, l.state.Active).Draw(t, "settle")
			d := l.decide()
			if rapid.IntRange(0, 3).Draw(t, "crash") == 0 {
				l.create(d.Fire[:rapid.IntRange(0, len(d.Fire)).Draw(t, "created")])
				continue
			}
			l.create(d.Fire)
			l.record(d)
			pending := l.spec.Cron.Count(l.state.Since, l.now)
			if total := l.spec.Cron.Count(start, l.now); int64(len(l.runs))+l.counted+pending != total {
				t.Fatalf("%d runs, %d counted and %d pending make no %d ticks", len(l.runs), l.counted, pending, total)
			}
			again := l.decide()
			if !d.Wake.Equal(l.now) && (len(again.Fire) > 0 || again.Missed+again.Overlapped > 0) {
				t.Fatalf("deciding again fires %v and counts %d", again.Fire, again.Missed+again.Overlapped)
			}
			if !again.Replacing.Equal(d.Replacing) {
				t.Fatalf("deciding again cancels for %v, not for %v", again.Replacing, d.Replacing)
			}
		}
	})
}

func TestRunAllLosesNothingHoweverOftenTheManagerCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1_777_593_600, 0).UTC()
		l := &life{
			t: t, spec: recurring(t, "* * * * *", policy(RunAll), atMost(rapid.IntRange(1, 250).Draw(t, "maximum"))),
			start: start, now: start.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "minutes")) * time.Minute),
			state: State{Since: start}, runs: map[int64]bool{}, recorded: map[int64]bool{},
		}
		for l.state.Since.Before(l.now) {
			d := l.decide()
			created := len(d.Fire)
			if created > 1 && rapid.Bool().Draw(t, "crash") {
				created = rapid.IntRange(1, created).Draw(t, "created")
				l.create(d.Fire[:created])
			} else {
				l.create(d.Fire)
				l.record(d)
			}
			l.state.Active = 0
		}
		want := unixAll(l.spec.Cron.Between(start, l.now, 1000))
		if got := slices.Sorted(maps.Keys(l.runs)); !slices.Equal(got, want) || l.counted != 0 {
			t.Fatalf("%d runs and %d counted for %d ticks", len(got), l.counted, len(want))
		}
	})
}
