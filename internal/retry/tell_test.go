// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"reflect"
	"slices"
	"testing"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var crashed = because(batchv1alpha1.ReasonCrashRecovery)

func told(s batchv1alpha1.ChainStatus) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Status.Chain = &s }
}

func completed(r *batchv1alpha1.JobRun) {
	r.Status.Phase, r.Status.Reason = batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded
}

func list(runs ...*batchv1alpha1.JobRun) []batchv1alpha1.JobRun {
	var out []batchv1alpha1.JobRun
	for _, r := range runs {
		out = append(out, *r)
	}
	return out
}

func TestConclude(t *testing.T) {
	alone := &batchv1alpha1.ChainStatus{LatestName: "root", Attempts: 1}
	for _, c := range []struct {
		name       string
		run        *batchv1alpha1.JobRun
		forGood    bool
		conditions []string
		chain      *batchv1alpha1.ChainStatus
	}{
		{"a root completes, and its chain with it", aRun("root", completed), false, []string{"Complete"}, alone},
		{"a root fails and is to be retried", aRun("root", failed), false, []string{"Reconciling"}, alone},
		{"a root fails for good", aRun("root", failed, maxRetries(0)), true, []string{"Failed", "Stalled"}, alone},
		{
			"a root fails by a restart", aRun("root", failed, crashed), false, []string{"Reconciling"},
			&batchv1alpha1.ChainStatus{LatestName: "root", Attempts: 1, CrashRecovered: true},
		},
		{"a root is cancelled", aRun("root", phase(batchv1alpha1.JobRunCancelled)), false, []string{"Complete"}, alone},
		{"a retry completes", aRun("root-r1", completed, attempt(1, "root")), false, nil, nil},
		{"a retry fails and is to be retried", aRun("root-r1", failed, attempt(1, "root")), false, []string{"Reconciling"}, nil},
		{"the last retry fails", aRun("root-r3", failed, attempt(3, "root-r2")), true, []string{"Stalled"}, nil},
		{"a manual retry is refused", func() *batchv1alpha1.JobRun {
			r := manualRetry("m", "root")
			phase(batchv1alpha1.JobRunSkipped)(r)
			return r
		}(), false, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Conclude(c.run, noon); got != c.forGood {
				t.Errorf("failed for good: %t", got)
			}
			if got := conditionTypes(c.run); !slices.Equal(got, c.conditions) {
				t.Errorf("got %v, want %v", got, c.conditions)
			}
			if got := c.run.Status.Chain; !reflect.DeepEqual(got, c.chain) {
				t.Errorf("got %+v, want %+v", got, c.chain)
			}
		})
	}
}

func TestTellTheRoot(t *testing.T) {
	root := func(with ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
		return aRun("root", append([]func(*batchv1alpha1.JobRun){failed, retriedBy("root-r1", false)}, with...)...)
	}
	first := aRun("root-r1", failed, attempt(1, "root"), retriedBy("root-r2", false))
	second := aRun("root-r2", attempt(2, "root-r1"))
	last := aRun("root-r3", failed, attempt(3, "root-r2"))
	late := aRun("root-r1", attempt(1, "root"), func(r *batchv1alpha1.JobRun) { r.UID = "late" })
	forged := aRun("forged", attempt(9, "root"))

	for _, c := range []struct {
		name       string
		root       *batchv1alpha1.JobRun
		runs       []batchv1alpha1.JobRun
		conditions []string
		chain      batchv1alpha1.ChainStatus
	}{
		{
			"a retry waits", root(), list(root(), second, first),
			[]string{"Reconciling"}, batchv1alpha1.ChainStatus{LatestName: "root-r2", Attempts: 3},
		},
		{
			"a retry completed", root(), list(root(), first, aRun("root-r2", completed, attempt(2, "root-r1"))),
			[]string{"Complete"}, batchv1alpha1.ChainStatus{LatestName: "root-r2", Attempts: 3},
		},
		{
			"the last retry failed", root(), list(root(), first, aRun("root-r2", failed, attempt(2, "root-r1"), retriedBy("root-r3", false)), last),
			[]string{"Failed", "Stalled"}, batchv1alpha1.ChainStatus{LatestName: "root-r3", Attempts: 4},
		},
		{
			"the last retry was deleted", root(told(batchv1alpha1.ChainStatus{LatestName: "root-r2", Attempts: 3})), list(root(), first),
			[]string{"Failed", "Stalled"}, batchv1alpha1.ChainStatus{LatestName: "root-r2", Attempts: 3},
		},
		{
			"a retry in between was deleted", root(), list(root(), second),
			[]string{"Reconciling"}, batchv1alpha1.ChainStatus{LatestName: "root-r2", Attempts: 3},
		},
		{
			"the retry was recorded a moment ago and the cache is behind", root(), list(aRun("root", failed)),
			[]string{"Reconciling"}, batchv1alpha1.ChainStatus{LatestName: "root", Attempts: 1},
		},
		{
			"a run that came late has the number of the recorded one", root(retriedBy("other", true)), list(root(), late, aRun("other", completed, attempt(2, "root"))),
			[]string{"Complete"}, batchv1alpha1.ChainStatus{LatestName: "other", Attempts: 3},
		},
		{
			"a run that nobody recorded claims to be of the chain", root(), list(root(), first, forged, aRun("root-r2", completed, attempt(2, "root-r1"))),
			[]string{"Complete"}, batchv1alpha1.ChainStatus{LatestName: "root-r2", Attempts: 3},
		},
		{
			"a person's retry was cancelled before it was resolved", root(retriedBy("by-hand", true), numbered(4)),
			list(root(), aRun("by-hand", func(r *batchv1alpha1.JobRun) { *r = *manualRetry("by-hand", "root") }, phase(batchv1alpha1.JobRunCancelled))),
			[]string{"Complete"}, batchv1alpha1.ChainStatus{LatestName: "by-hand", Attempts: 5},
		},
		{
			"a restart failed a retry", root(), list(root(), aRun("root-r1", failed, crashed, attempt(1, "root"))),
			[]string{"Reconciling"}, batchv1alpha1.ChainStatus{LatestName: "root-r1", Attempts: 2, CrashRecovered: true},
		},
		{
			"a restart failed a retry that was deleted since", root(told(batchv1alpha1.ChainStatus{LatestName: "root-r1", Attempts: 2, CrashRecovered: true})), list(root(), second),
			[]string{"Reconciling"}, batchv1alpha1.ChainStatus{LatestName: "root-r2", Attempts: 3, CrashRecovered: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			Tell(c.root, c.runs, noon)
			if got := conditionTypes(c.root); !slices.Equal(got, c.conditions) {
				t.Errorf("got %v, want %v", got, c.conditions)
			}
			if got := *c.root.Status.Chain; got != c.chain {
				t.Errorf("got %+v, want %+v", got, c.chain)
			}
			again := c.root.DeepCopy()
			if Tell(again, c.runs, at(60)); !reflect.DeepEqual(again, c.root) {
				t.Errorf("told again: got %+v, want %+v", again.Status, c.root.Status)
			}
		})
	}
}

func TestAChainThatHasToldOfItsEndIsClosedOnceWhatToldItIsDeleted(t *testing.T) {
	chain := func(last *batchv1alpha1.JobRun) []batchv1alpha1.JobRun {
		root := aRun("root", failed, retriedBy("root-r1", false))
		first := aRun("root-r1", failed, attempt(1, "root"), retriedBy("root-r2", false))
		runs := list(root, first, last)
		Tell(&runs[0], runs, noon)
		return runs
	}
	for name, c := range map[string]struct {
		last    *batchv1alpha1.JobRun
		deleted bool
		want    bool
	}{
		"it completed, and its last retry was deleted": {aRun("root-r2", completed, attempt(2, "root-r1")), true, true},
		"it failed, and its last retry was deleted":    {aRun("root-r2", failed, maxRetries(2), attempt(2, "root-r1")), true, true},
		"it completed, and everything is there":        {aRun("root-r2", completed, attempt(2, "root-r1")), false, false},
		"it goes on, and its last retry was deleted":   {aRun("root-r2", attempt(2, "root-r1")), true, false},
		"it goes on": {aRun("root-r2", attempt(2, "root-r1")), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			runs := chain(c.last)
			if c.deleted {
				runs = runs[:2]
			}
			if got := Closed(&runs[0], runs); got != c.want {
				t.Errorf("got %t; the root tells %v", got, conditionTypes(&runs[0]))
			}
		})
	}
}

func TestTellARetryInBetween(t *testing.T) {
	root := aRun("root", failed, retriedBy("root-r1", false))
	between := func() *batchv1alpha1.JobRun {
		r := aRun("root-r1", failed, attempt(1, "root"), retriedBy("root-r2", false))
		Conclude(r, noon)
		return r
	}
	for _, c := range []struct {
		name       string
		latest     *batchv1alpha1.JobRun
		conditions []string
	}{
		{"the chain goes on", aRun("root-r2", attempt(2, "root-r1")), []string{"Reconciling"}},
		{"the chain completed", aRun("root-r2", completed, attempt(2, "root-r1")), nil},
		{"the chain failed for good", aRun("root-r2", failed, cancelAsked, attempt(2, "root-r1")), []string{"Stalled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := between()
			Tell(r, list(root, between(), c.latest), noon)
			if got := conditionTypes(r); !slices.Equal(got, c.conditions) || r.Status.Chain != nil {
				t.Errorf("got %v and %+v, want %v", got, r.Status.Chain, c.conditions)
			}
		})
	}
}
