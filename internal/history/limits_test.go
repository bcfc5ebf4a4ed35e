// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestTheOldestChainsBeyondTheLimitsAreRemoved(t *testing.T) {
	h := time.Hour
	for name, c := range map[string]struct {
		runs   []batchv1alpha1.JobRun
		limits Limits
		remove []string
		look   time.Duration // from noon; 0: never
	}{
		"within the limits nothing is": {runs(root("a", 3*h), root("b", 2*h, failed)), Limits{1, 1}, nil, 0},
		"the oldest of three, two are kept": {
			runs(root("b", 2*h), root("a", 3*h), root("c", h)), Limits{2, 0}, []string{"a"}, 0,
		},
		"failed ones count by themselves": {
			runs(root("a", 5*h), root("b", 4*h, failed), root("c", 3*h, failed), root("d", 2*h)), Limits{2, 1}, []string{"b"}, 0,
		},
		"Skipped and Cancelled count as completed": {
			runs(root("a", 4*h, phase(batchv1alpha1.JobRunSkipped)), root("b", 3*h, phase(batchv1alpha1.JobRunCancelled)), root("c", 2*h)),
			Limits{1, 1}, []string{"a", "b"}, 0,
		},
		"a chain with its retries is one": {
			runs(root("a", 5*h, failed), retryOf("a", 1, 4*h, failed), root("b", 3*h, failed), retryOf("b", 1, 2*h, failed)),
			Limits{0, 1}, []string{"a"}, 0,
		},
		"what is not settled does not count": {
			runs(root("a", 3*h), root("b", 2*h), root("c", h, queued)), Limits{2, 2}, nil, 0,
		},
		"one that must stay counts and keeps no other": {
			runs(root("a", 4*h, crashed), root("b", 3*h), root("c", 2*h)), Limits{1, 0}, []string{"b"}, 20 * h,
		},
		"with a limit of 0 all are removed, after a while": {
			runs(root("a", h), root("b", 2*time.Minute)), Limits{0, 0}, []string{"a"}, 8 * time.Minute,
		},
		"of those that settled in one second the earlier tick goes": {
			runs(root("sj-1700000060", h), root("sj-1700000000", h)), Limits{1, 0}, []string{"sj-1700000000"}, 0,
		},
		"a chain without its root counts by its latest run": {
			runs(retryOf("a", 2, 3*h, failed), root("b", 2*h, failed)), Limits{5, 1}, []string{"a"}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := ByLimits(Units(Chains(c.runs), nil), c.limits, noon)
			g.Expect(names(p.Remove)).To(Equal(c.remove))
			if c.look == 0 {
				g.Expect(p.Look).To(BeZero())
			} else {
				g.Expect(p.Look).To(BeTemporally("==", noon.Add(c.look)))
			}
		})
	}
}

func TestTheGroupsOfAScheduledJobCountBesideItsChains(t *testing.T) {
	const completed, failedGroup = batchv1alpha1.JobGroupCompleted, batchv1alpha1.JobGroupFailed
	h := time.Hour
	for name, c := range map[string]struct {
		runs   []batchv1alpha1.JobRun
		groups []Group
		limits Limits
		remove []string
		look   time.Duration // from noon; 0: never
	}{
		"the oldest group beyond the limit is removed": {
			nil, []Group{group("b", completed, 2*h), group("a", completed, 3*h)}, Limits{1, 1}, []string{"a"}, 0,
		},
		"failed ones count by themselves": {
			nil, []Group{group("a", failedGroup, 3*h), group("b", failedGroup, 2*h), group("c", completed, 4*h)}, Limits{1, 1}, []string{"a"}, 0,
		},
		"Skipped and Cancelled ones count as completed": {
			nil, []Group{group("a", batchv1alpha1.JobGroupSkipped, 4*h), group("b", batchv1alpha1.JobGroupCancelled, 3*h), group("c", completed, 2*h)},
			Limits{1, 0}, []string{"a", "b"}, 0,
		},
		"one that goes on does not count": {
			nil, []Group{group("a", completed, 3*h), group("b", batchv1alpha1.JobGroupRunning, 2*h), group("c", batchv1alpha1.JobGroupPending, h)},
			Limits{1, 1}, nil, 0,
		},
		"chains and groups are one history": {
			runs(root("a", 4*h), root("c", 2*h)), []Group{group("b", completed, 3*h), group("d", completed, h)}, Limits{2, 2}, []string{"a", "b"}, 0,
		},
		"of those that ended in one second the earlier tick goes": {
			nil, []Group{group("sj-1700000060", completed, h), group("sj-1700000000", completed, h)}, Limits{1, 1}, []string{"sj-1700000000"}, 0,
		},
		"one that must stay counts and keeps no other": {
			nil, []Group{group("a", failedGroup, 4*h, root("a-m", 4*h, failed, crashed)), group("b", failedGroup, 3*h), group("c", failedGroup, 2*h)},
			Limits{1, 1}, []string{"b"}, 20 * h,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := ByLimits(Units(Chains(c.runs), c.groups), c.limits, noon)
			g.Expect(names(p.Remove)).To(Equal(c.remove))
			if c.look == 0 {
				g.Expect(p.Look).To(BeZero())
			} else {
				g.Expect(p.Look).To(BeTemporally("==", noon.Add(c.look)))
			}
		})
	}
}

// drawn is any history of a ScheduledJob, with a time to live here and there.
func drawn(t *rapid.T, prefix string) []batchv1alpha1.JobRun {
	var all []batchv1alpha1.JobRun
	phases := []option{failed, queued, untold, phase(batchv1alpha1.JobRunCompleted), phase(batchv1alpha1.JobRunRunning), phase(batchv1alpha1.JobRunSkipped)}
	others := []option{untold, crashed, holding, owing, ttl(60), ttl(7200)}
	some := func() []option {
		return append([]option{rapid.SampledFrom(phases).Draw(t, "phase")}, rapid.SliceOfN(rapid.SampledFrom(others), 0, 2).Draw(t, "options")...)
	}
	ended := func() time.Duration {
		return time.Duration(rapid.IntRange(0, 30*60).Draw(t, "ended, minutes ago")) * time.Minute
	}
	for n := range rapid.IntRange(0, 8).Draw(t, "chains") {
		name := fmt.Sprintf("%s%d", prefix, n)
		if rapid.IntRange(0, 5).Draw(t, "root") > 0 {
			all = append(all, root(name, ended(), some()...))
		}
		for attempt := range rapid.IntRange(0, 2).Draw(t, "retries") {
			all = append(all, retryOf(name, int32(attempt+1), ended(), some()...))
		}
	}
	return all
}

// drawnGroups are any groups, with any runs of their members.
func drawnGroups(t *rapid.T) []Group {
	var groups []Group
	for n := range rapid.IntRange(0, 4).Draw(t, "groups") {
		name := fmt.Sprintf("g%d-", n)
		phase := rapid.SampledFrom([]batchv1alpha1.JobGroupPhase{
			batchv1alpha1.JobGroupRunning, batchv1alpha1.JobGroupCompleted, batchv1alpha1.JobGroupFailed, batchv1alpha1.JobGroupCancelled,
		}).Draw(t, "phase of the group")
		ended := time.Duration(rapid.IntRange(0, 30*60).Draw(t, "group ended, minutes ago")) * time.Minute
		g := group(name, phase, ended, drawn(t, name)...)
		if rapid.IntRange(0, 5).Draw(t, "owes") == 0 {
			g = owingGroup(g)
		}
		g.Object.Spec.TTLSecondsAfterFinished = rapid.SampledFrom([]*int32{nil, new(int32(0)), new(int32(7200))}).Draw(t, "ttl")
		groups = append(groups, g)
	}
	return groups
}

func TestHistoryRemovesOnlyWhatNobodyNeedsAndKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{rapid.IntRange(0, 3).Draw(t, "completed"), rapid.IntRange(0, 3).Draw(t, "failed")}
		units := Units(Chains(drawn(t, "c")), drawnGroups(t))
		p := ByLimits(units, limits, noon)
		for _, u := range p.Remove {
			expectUnneeded(t, u)
			if n := newer(units, u); n < limitOf(limits, u) {
				t.Fatalf("%s removed though only %d of its sort are newer", u.ID(), n)
			}
		}
		left := slices.DeleteFunc(slices.Clone(units), func(u Unit) bool { return slices.Contains(names(p.Remove), string(u.ID())) })
		again := ByLimits(left, limits, noon)
		if len(again.Remove) != 0 || !again.Look.Equal(p.Look) {
			t.Fatalf("asked again, it removes %v and looks at %s, not at %s", names(again.Remove), again.Look, p.Look)
		}
		if !p.Look.IsZero() && !p.Look.After(noon) {
			t.Fatalf("looks again in the past, at %s", p.Look)
		}
	})
}

func TestTheTimeToLiveRemovesOnlyWhatNobodyNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var plans []Plan
		for _, c := range Chains(drawn(t, "c")) {
			plans = append(plans, ByTTL(c, nil, noon))
		}
		for _, g := range drawnGroups(t) {
			plans = append(plans, GroupByTTL(g, noon))
		}
		for _, p := range plans {
			for _, removed := range p.Remove {
				expectUnneeded(t, removed)
			}
			if len(p.Remove) > 0 && !p.Look.IsZero() {
				t.Fatalf("removes and looks again at %s", p.Look)
			}
		}
	})
}

func expectUnneeded(t *rapid.T, u Unit) {
	switch u := u.(type) {
	case Group:
		status := u.Object.Status
		if !status.Phase.Terminal() || len(status.Announcements) > 0 || status.FinishedAt.After(noon.Add(-10*time.Minute)) {
			t.Fatalf("removes group %s, which is %s, ended at %s, %d announcements owed", u.Object.Name, status.Phase, status.FinishedAt, len(status.Announcements))
		}
		for _, c := range u.Chains {
			expectUnneeded(t, c)
		}
	case Chain:
		expectNoRunNeeded(t, u)
	}
}

func expectNoRunNeeded(t *rapid.T, c Chain) {
	for _, r := range c.Runs {
		switch {
		case !r.Status.Phase.Terminal(), r.Status.Slot == batchv1alpha1.SlotHeld, len(r.Status.Announcements) > 0:
			t.Fatalf("removes run %s, which is %s, its slot %s, %d announcements owed", r.Name, r.Status.Phase, r.Status.Slot, len(r.Status.Announcements))
		case r.Status.FinishedAt.After(noon.Add(-10 * time.Minute)):
			t.Fatalf("removes run %s, which ended at %s", r.Name, r.Status.FinishedAt)
		case r.Status.Reason == batchv1alpha1.ReasonCrashRecovery && r.Status.FinishedAt.After(noon.Add(-24*time.Hour)):
			t.Fatalf("removes run %s, failed by a restart at %s", r.Name, r.Status.FinishedAt)
		}
	}
	if c.Root != nil && len(c.Root.Status.Conditions) == 0 {
		t.Fatalf("removes %s, whose end nobody told", c.UID)
	}
}

// newer counts the settled units of the same sort that ended no earlier.
func newer(units []Unit, than Unit) int {
	n := 0
	for _, u := range units {
		if u.ID() != than.ID() && u.Settled() && u.Failed() == than.Failed() && !u.SettledAt().Before(than.SettledAt()) {
			n++
		}
	}
	return n
}

func limitOf(l Limits, u Unit) int {
	if u.Failed() {
		return l.Failed
	}
	return l.Completed
}
