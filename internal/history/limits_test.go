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
			p := ByLimits(Chains(c.runs), c.limits, noon)
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
func drawn(t *rapid.T) []batchv1alpha1.JobRun {
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
		name := fmt.Sprintf("c%d", n)
		if rapid.IntRange(0, 5).Draw(t, "root") > 0 {
			all = append(all, root(name, ended(), some()...))
		}
		for attempt := range rapid.IntRange(0, 2).Draw(t, "retries") {
			all = append(all, retryOf(name, int32(attempt+1), ended(), some()...))
		}
	}
	return all
}

func TestHistoryRemovesOnlyWhatNobodyNeedsAndKeepsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawn(t)
		limits := Limits{rapid.IntRange(0, 3).Draw(t, "completed"), rapid.IntRange(0, 3).Draw(t, "failed")}
		chains := Chains(all)
		p := ByLimits(chains, limits, noon)
		for _, c := range p.Remove {
			expectUnneeded(t, c)
			if n := newer(chains, c); n < limitOf(limits, c) {
				t.Fatalf("%s removed though only %d of its sort are newer", c.UID, n)
			}
		}
		left := slices.DeleteFunc(slices.Clone(chains), func(c Chain) bool { return slices.Contains(names(p.Remove), string(c.UID)) })
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
		for _, c := range Chains(drawn(t)) {
			p := ByTTL(c, noon)
			for _, removed := range p.Remove {
				expectUnneeded(t, removed)
			}
			if len(p.Remove) > 0 && !p.Look.IsZero() {
				t.Fatalf("removes the chain and looks again at %s", p.Look)
			}
		}
	})
}

func expectUnneeded(t *rapid.T, c Chain) {
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

// newer counts the settled chains of the same sort that ended no earlier.
func newer(chains []Chain, than Chain) int {
	n := 0
	for _, c := range chains {
		if c.UID != than.UID && c.Settled() && c.Failed() == than.Failed() && !c.SettledAt().Before(than.SettledAt()) {
			n++
		}
	}
	return n
}

func limitOf(l Limits, c Chain) int {
	if c.Failed() {
		return l.Failed
	}
	return l.Completed
}
