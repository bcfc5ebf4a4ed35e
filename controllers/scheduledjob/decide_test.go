// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

func TestWhatIsUnsettledAndWhatIsFound(t *testing.T) {
	seven, eight := clockTime("07:00:00"), clockTime("08:00:00")
	for name, c := range map[string]struct {
		sj        *batchv1alpha1.ScheduledJob
		runs      []batchv1alpha1.JobRun
		active    []string // ticks
		unsettled int
		found     []string // runs
	}{
		"a recorded run that waits":                  {hourly(named(ticked(seven))), all(ticked(seven)), []string{"07:00:00"}, 1, nil},
		"a recorded run in back-off":                 {hourly(named(ticked(seven))), all(ticked(seven, inBackOff), retryOf(ticked(seven))), []string{"07:00:00"}, 1, nil},
		"a recorded run that has settled":            {hourly(named(ticked(seven))), all(ticked(seven, completed)), nil, 0, nil},
		"a settled run whose work may still live":    {hourly(named(ticked(seven))), all(ticked(seven, ended(batchv1alpha1.JobRunFailed), holding)), []string{"07:00:00"}, 1, nil},
		"a recorded run that a person deleted":       {hourly(named(ticked(seven))), nil, nil, 0, nil},
		"a deleted run whose retry waits":            {hourly(named(ticked(seven))), all(retryOf(ticked(seven))), []string{"07:00:00"}, 1, nil},
		"a manual run":                               {hourly(), all(manual("m")), nil, 1, nil},
		"a manual run that has settled":              {hourly(), all(manual("m", completed)), nil, 0, nil},
		"a chain that a person opened again":         {hourly(), all(ticked(seven, inBackOff), retryOf(ticked(seven))), nil, 0, []string{"sj-1777618800"}},
		"a run that nobody has recorded":             {hourly(), all(ticked(seven)), nil, 0, []string{"sj-1777618800"}},
		"a run that was cancelled unrecorded":        {hourly(), all(ticked(seven, ended(batchv1alpha1.JobRunCancelled))), nil, 0, []string{"sj-1777618800"}},
		"found ones in the order of ticks":           {hourly(), all(ticked(eight), ticked(seven)), nil, 0, []string{"sj-1777618800", "sj-1777622400"}},
		"a run of a tick that is settled":            {hourly(), all(ticked(clockTime("06:00:00"))), nil, 0, nil},
		"a run of a tick that has not come":          {hourly(), all(ticked(clockTime("11:00:00"))), nil, 0, nil},
		"a run of that tick under a name of its own": {hourly(), all(ticked(seven, called("mine"))), nil, 0, nil},
		"a run that had to take another name":        {hourly(), all(ticked(seven, called("sj-1777618800-2"))), nil, 0, []string{"sj-1777618800-2"}},
		"a waiting run of an earlier namesake":       {hourly(), all(ticked(seven, of("other"))), nil, 0, nil},
		"a running one of an earlier namesake":       {hourly(), all(ticked(seven, of("other"), running)), nil, 0, []string{"sj-1777618800"}},
		"one that the earlier namesake left":         {hourly(), all(ticked(seven, withoutOwner)), nil, 0, []string{"sj-1777618800"}},
		"an older one of a namesake, at work":        {hourly(), all(ticked(clockTime("05:00:00"), withoutOwner, running)), []string{"05:00:00"}, 1, nil},
		"the run of a one-time schedule":             {hourly(runAt(seven)), all(ticked(seven)), nil, 0, []string{"sj-1777618800"}},
		"one of a time that it no longer has":        {hourly(runAt(eight)), all(ticked(seven)), nil, 0, nil},
		"a run that an edit overtook": {
			hourly(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "30 * * * *" }), all(ticked(seven)), nil, 0, []string{"sj-1777618800"},
		},
		"a run that a resume overtook": {
			hourly(func(sj *batchv1alpha1.ScheduledJob) { sj.Status.ObservedSchedule += ", suspended" }), all(ticked(seven)), nil, 0, []string{"sj-1777618800"},
		},
		"a one-time run that an edit overtook": {
			hourly(runAt(eight), func(sj *batchv1alpha1.ScheduledJob) { sj.Status.ObservedSchedule = "at 2026-05-01T07:00:00Z" }), all(ticked(seven)), nil, 0, []string{"sj-1777618800"},
		},
		"a one-time run that was fired before the edit": {
			hourly(runAt(eight), func(sj *batchv1alpha1.ScheduledJob) {
				sj.Status.ObservedSchedule, sj.Status.FiredRunAt = "at 2026-05-01T07:00:00Z", at(seven)
			}), all(ticked(seven)), nil, 0, nil,
		},
		"nothing is due while the schedule is invalid": {
			hourly(func(sj *batchv1alpha1.ScheduledJob) {
				sj.Spec.Schedule = "0 * * * 9"
				sj.Status.ObservedSchedule = "0 * * * 9 in UTC"
			}), all(ticked(seven)), nil, 0, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := decide(c.sj, products(c.runs, nil), clockTime("10:30:00")).standing
			g.Expect(namesOf(s.active)).To(Equal(c.active))
			g.Expect(s.unsettled).To(HaveLen(c.unsettled))
			var found []string
			for _, p := range s.found {
				found = append(found, p.object.GetName())
			}
			g.Expect(found).To(Equal(c.found))
		})
	}
}

// made is what a pass leaves when everything that it fires can be created.
func made(sj *batchv1alpha1.ScheduledJob, runs []batchv1alpha1.JobRun, now time.Time) (batchv1alpha1.ScheduledJobStatus, []schedule.Tick) {
	p := decide(sj, products(runs, nil), now)
	var f fired
	for _, tick := range p.decision.Fire {
		r := ticked(tick.Time)
		f.made = append(f.made, fire{tick: tick, made: productOf(&r)})
	}
	return p.status(sj, f, now), p.decision.Fire
}

func TestWithOverlapForbiddenAFoundRunIsAFireOnlyIfNothingElseIsUnsettled(t *testing.T) {
	seven, eight, nine := clockTime("07:00:00"), clockTime("08:00:00"), clockTime("09:00:00")
	before := named(ticked(seven))
	for name, c := range map[string]struct {
		sj      *batchv1alpha1.ScheduledJob
		runs    []batchv1alpha1.JobRun
		now     string
		fire    []string
		active  []string
		skipped *metav1.Time
	}{
		"it was to be Skipped beside the earlier run, and still is": {
			hourly(forbid, before), all(ticked(seven, running), ticked(eight)), "08:30:00", []string{"(08:00:00)"}, []string{"07:00:00"}, at(eight),
		},
		"it was to be Skipped, and the earlier run has settled": {
			hourly(forbid, before), all(ticked(seven, completed), ticked(eight)), "08:30:00", nil, []string{"08:00:00"}, nil,
		},
		"it was fired, and the next tick overlaps with it": {
			hourly(forbid), all(ticked(eight)), "09:30:00", []string{"(09:00:00)"}, []string{"08:00:00"}, at(nine),
		},
		"of two the older was fired and the other was to be Skipped": {
			hourly(forbid, runAll), all(ticked(eight), ticked(nine)), "09:30:00", []string{"(09:00:00)"}, []string{"08:00:00"}, at(nine),
		},
		"one that was cancelled has run, and the next tick fires": {
			hourly(forbid), all(ticked(eight, ended(batchv1alpha1.JobRunCancelled))), "09:30:00", []string{"09:00:00"}, []string{"09:00:00"}, nil,
		},
		"one that an earlier namesake left in back-off is what the next tick overlaps with": {
			hourly(forbid), all(ticked(eight, withoutOwner, inBackOff)), "09:30:00", []string{"(09:00:00)"}, []string{"08:00:00"}, at(nine),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			status, fire := made(c.sj, c.runs, clockTime(c.now))
			g.Expect(shown(fire)).To(Equal(c.fire))
			g.Expect(namesOf(status.Active)).To(Equal(c.active))
			g.Expect(status.LastSkippedTime).To(Equal(c.skipped))
		})
	}
}

func TestAFireIsRecordedWithEverythingThatFollows(t *testing.T) {
	g := NewWithT(t)
	now := clockTime("09:00:00").Add(1500 * time.Millisecond)
	sj := hourly(func(sj *batchv1alpha1.ScheduledJob) {
		sj.Generation, sj.Spec.TimeZone = 7, "Europe/Lisbon"
		sj.Status.ObservedSchedule = "0 * * * * in Europe/Lisbon"
	})
	status, fire := made(sj, all(manual("m")), now)
	g.Expect(shown(fire)).To(Equal([]string{"09:00:00"}))
	nine := clockTime("09:00:00")
	g.Expect(status.ObservedGeneration).To(Equal(int64(7)))
	g.Expect(status.HandledThrough).To(Equal(at(nine)))
	g.Expect(status.LastScheduleTime).To(Equal(at(nine)))
	g.Expect(status.LastRunName).To(Equal("sj-1777626000"))
	g.Expect(status.NextScheduleTime).To(Equal("2026-05-01T11:00:00+01:00"))
	g.Expect(status.Active).To(Equal([]batchv1alpha1.ActiveRun{{Name: "sj-1777626000", UID: "sj-1777626000", ScheduledTime: *at(nine)}}))
	g.Expect(status.ActiveCount).To(Equal(int32(2)))
	g.Expect(status.MissedRuns).To(Equal(int64(2)))
	g.Expect(meta.IsStatusConditionTrue(status.Conditions, batchv1alpha1.ConditionReady)).To(BeTrue())
	g.Expect(meta.FindStatusCondition(status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
}

func TestAFireThatCouldNotBeCreatedStaysDueAndThoseBeforeItAreRecorded(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "jobruns"}, "sj-1", errors.New("exceeded quota"))
	for name, c := range map[string]struct {
		created int
		failure error
		through string
		active  []string
		stalled bool
	}{
		"none was created":       {0, forbidden, "06:00:00", nil, true},
		"two of three were":      {2, forbidden, "08:00:00", []string{"07:00:00", "08:00:00"}, true},
		"it may go well at once": {2, errors.New("connection refused"), "08:00:00", []string{"07:00:00", "08:00:00"}, false},
		"every name was taken":   {0, errNamesTaken, "06:00:00", nil, true},
		"all were":               {3, nil, "09:00:00", []string{"07:00:00", "08:00:00", "09:00:00"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sj, now := hourly(runAll), clockTime("09:30:00")
			p := decide(sj, products(nil, nil), now)
			f := fired{failure: c.failure}
			for _, tick := range p.decision.Fire[:c.created] {
				r := ticked(tick.Time)
				f.made = append(f.made, fire{tick: tick, made: productOf(&r)})
			}
			status := p.status(sj, f, now)
			g.Expect(status.HandledThrough).To(Equal(at(clockTime(c.through))))
			g.Expect(namesOf(status.Active)).To(Equal(c.active))
			g.Expect(status.MissedRuns).To(BeZero())
			g.Expect(status.NextScheduleTime).To(Equal("2026-05-01T10:00:00Z"))
			stalled := meta.FindStatusCondition(status.Conditions, batchv1alpha1.ConditionStalled)
			g.Expect(stalled != nil).To(Equal(c.stalled))
			if c.stalled {
				g.Expect(stalled.Reason).To(Equal("RunRejected"))
				g.Expect(stalled.Message).To(ContainSubstring(c.failure.Error()))
			}
			g.Expect(meta.IsStatusConditionTrue(status.Conditions, batchv1alpha1.ConditionReady)).To(BeTrue(), "it is accepted")
		})
	}
}

func TestAScheduleThatCannotBeUsedIsStalledAndNeverNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		change change
		words  string
	}{
		"an invalid expression": {func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "0 * * * 9" }, "above maximum"},
		"an unknown zone":       {func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TimeZone = "Mars/Olympus" }, "unknown time zone \"Mars/Olympus\""},
		"a date that is none":   {func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Schedule = "0 0 30 2 *" }, "no such date"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sj := hourly(func(sj *batchv1alpha1.ScheduledJob) {
				sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: batchv1alpha1.ReasonAccepted}}
			}, c.change)
			status, fire := made(sj, nil, clockTime("09:30:00"))
			g.Expect(fire).To(BeEmpty())
			g.Expect(status.NextScheduleTime).To(BeEmpty())
			g.Expect(status.Conditions).To(HaveLen(1))
			g.Expect(status.Conditions[0].Type).To(Equal(batchv1alpha1.ConditionStalled))
			g.Expect(status.Conditions[0].Reason).To(Equal(batchv1alpha1.ReasonInvalidSchedule))
			g.Expect(status.Conditions[0].Message).To(ContainSubstring(c.words))
			g.Expect(decide(sj, products(nil, nil), clockTime("09:30:00")).decision.Wake).To(BeZero(), "time alone changes nothing")
		})
	}
}

func TestWhatIsRepairedFiresNothingOfTheTimeBefore(t *testing.T) {
	g := NewWithT(t)
	sj := hourly()
	sj.Spec.Schedule = "0 * * * 9"
	sj.Status, _ = made(sj, nil, clockTime("07:30:00"))
	sj.Spec.Schedule = "0 * * * *"
	status, fire := made(sj, nil, clockTime("10:30:00"))
	g.Expect(fire).To(BeEmpty())
	g.Expect(status.MissedRuns).To(BeZero())
	g.Expect(meta.IsStatusConditionTrue(status.Conditions, batchv1alpha1.ConditionReady)).To(BeTrue())
	g.Expect(meta.FindStatusCondition(status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
	sj.Status = status
	_, fire = made(sj, nil, clockTime("11:00:00"))
	g.Expect(shown(fire)).To(Equal([]string{"11:00:00"}))
}

func TestASkippedTickIsCountedAndASecondOneInARowOnlyMovesTheTime(t *testing.T) {
	g := NewWithT(t)
	sj := hourly(forbid, named(ticked(dawn)))
	busy := all(ticked(dawn, running))
	sj.Status, _ = made(sj, busy, clockTime("07:00:00"))
	g.Expect([]any{sj.Status.SkippedRuns, sj.Status.LastSkippedTime, namesOf(sj.Status.Active)}).To(Equal([]any{int64(1), at(clockTime("07:00:00")), []string{"06:00:00"}}))
	status, fire := made(sj, busy, clockTime("08:00:00"))
	g.Expect(fire).To(BeEmpty())
	g.Expect([]any{status.SkippedRuns, status.LastSkippedTime, status.HandledThrough}).To(Equal([]any{int64(2), at(clockTime("08:00:00")), at(clockTime("08:00:00"))}))
	sj.Status = status
	_, fire = made(sj, all(ticked(dawn, completed)), clockTime("09:00:00"))
	g.Expect(shown(fire)).To(Equal([]string{"09:00:00"}))
	sj.Status, _ = made(sj, all(ticked(dawn, completed)), clockTime("09:00:00"))
	_, fire = made(sj, all(ticked(clockTime("09:00:00"), running)), clockTime("10:00:00"))
	g.Expect(shown(fire)).To(Equal([]string{"(10:00:00)"}), "after a fire the next to overlap leaves a run again")
}

func TestSeveralTicksThatOverlapAtOnceKeepTheTimeOfTheOneThatLeavesARun(t *testing.T) {
	g := NewWithT(t)
	status, fire := made(hourly(forbid, runAll, named(ticked(dawn))), all(ticked(dawn, running)), clockTime("10:30:00"))
	g.Expect(shown(fire)).To(Equal([]string{"(07:00:00)"}))
	g.Expect(status.SkippedRuns).To(Equal(int64(4)))
	g.Expect(status.LastSkippedTime).To(Equal(at(clockTime("07:00:00"))), "the run asks by its tick")
	g.Expect(status.HandledThrough).To(Equal(at(clockTime("10:00:00"))))
}

func TestAOneTimeScheduleRemembersWhatItFiredAndWhen(t *testing.T) {
	g := NewWithT(t)
	sj := hourly(runAt(clockTime("07:00:00")))
	now := clockTime("07:00:03")
	status, fire := made(sj, nil, now)
	g.Expect(shown(fire)).To(Equal([]string{"07:00:00"}))
	g.Expect(status.FiredRunAt).To(Equal(at(clockTime("07:00:00"))))
	g.Expect(status.FiredAt).To(Equal(at(now)))
	g.Expect(status.HandledThrough).To(BeNil(), "a runAt that lies in the past when it is written still fires")
	sj.Status = status
	status, fire = made(sj, nil, now.Add(time.Hour))
	g.Expect(fire).To(BeEmpty())
	g.Expect(status.FiredAt).To(Equal(at(now)))
}

func TestWhenAScheduledJobIsToBeDeleted(t *testing.T) {
	seven := clockTime("07:00:00")
	fire := func(sj *batchv1alpha1.ScheduledJob) {
		sj.Status.FiredRunAt, sj.Status.FiredAt = at(seven), at(seven.Add(5*time.Second))
	}
	ttl := func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TTLSecondsAfterFired = ptr.To[int32](60) }
	for name, c := range map[string]struct {
		sj *batchv1alpha1.ScheduledJob
		at string
	}{
		"after it has fired":           {hourly(runAt(seven), ttl, fire), "07:01:05"},
		"not before":                   {hourly(runAt(seven), ttl), ""},
		"not without a time to live":   {hourly(runAt(seven), fire), ""},
		"not when it is to fire again": {hourly(runAt(clockTime("08:00:00")), ttl, fire), ""},
		"not when it is recurring now": {hourly(ttl, fire), ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			when, ok := expiry(c.sj)
			g.Expect(ok).To(Equal(c.at != ""))
			if ok {
				g.Expect(when).To(BeTemporally("==", clockTime(c.at)))
			}
		})
	}
}

func TestTheNameOfARunFitsAndIsAlwaysTheSame(t *testing.T) {
	g := NewWithT(t)
	tick := clockTime("07:00:00")
	longest := strings.Repeat("a", 46)
	g.Expect(productName("sj", tick, 0)).To(Equal("sj-1777618800"))
	g.Expect(productName("sj", tick, 2)).To(Equal("sj-1777618800-2"))
	g.Expect(productName(longest, tick, 0)).To(HaveLen(57))
	for n := range int32(collisions + 1) {
		g.Expect(len(productName(longest, tick, n))).To(BeNumerically("<=", 57))
	}
	g.Expect(productName(strings.Repeat("a", 43)+".bc", tick, 1)).To(Equal(strings.Repeat("a", 43)+"-1777618800-1"), "no name ends a part with a dot")
}
