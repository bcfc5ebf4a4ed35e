// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Chain is what there is of a root run and its retries.
type Chain struct {
	// UID of the root, which names the chain.
	UID types.UID
	// Root is the first run of the chain; nil if it was deleted.
	Root *batchv1alpha1.JobRun
	// Runs are all runs of the chain that exist, in the order of their attempts.
	Runs []*batchv1alpha1.JobRun
}

// Chains sorts runs into their chains, in the order in which these first appear. It keeps pointers into runs and changes
// nothing there.
func Chains(runs []batchv1alpha1.JobRun) []Chain {
	var chains []Chain
	at := map[types.UID]int{}
	for i := range runs {
		r := &runs[i]
		uid := run.ChainUID(r)
		n, known := at[uid]
		if !known {
			n = len(chains)
			at[uid] = n
			chains = append(chains, Chain{UID: uid})
		}
		c := &chains[n]
		c.Runs = append(c.Runs, r)
		if r.UID == uid {
			c.Root = r
		}
	}
	for i := range chains {
		slices.SortStableFunc(chains[i].Runs, func(a, b *batchv1alpha1.JobRun) int {
			return cmp.Or(cmp.Compare(run.Attempt(a), run.Attempt(b)), cmp.Compare(a.Name, b.Name))
		})
	}
	return chains
}

// ID is the UID of the root.
func (c Chain) ID() types.UID { return c.UID }

// Settled reports whether the chain has come to its end: every run is terminal and the root, if it exists, says that no
// retry follows.
func (c Chain) Settled() bool {
	for _, r := range c.Runs {
		if !r.Status.Phase.Terminal() {
			return false
		}
	}
	return c.Root == nil || end(c.Root) != nil || outside(c.Root)
}

// Stopped reports whether no run of the chain holds a slot: nothing of its work lives.
func (c Chain) Stopped() bool { return !slices.ContainsFunc(c.Runs, run.HoldsSlot) }

// Failed reports whether a settled chain failed for good. Without its root the latest run tells.
func (c Chain) Failed() bool {
	if c.Root == nil {
		return c.Runs[len(c.Runs)-1].Status.Phase == batchv1alpha1.JobRunFailed
	}
	return meta.IsStatusConditionTrue(c.Root.Status.Conditions, batchv1alpha1.ConditionFailed)
}

// SettledAt returns when a settled chain came to its end.
func (c Chain) SettledAt() time.Time {
	var at time.Time
	for _, r := range c.Runs {
		at = latest(at, r.Status.FinishedAt)
	}
	if c.Root != nil {
		if told := end(c.Root); told != nil {
			at = latest(at, &told.LastTransitionTime)
		}
	}
	return at
}

// changedAt returns when anything of the chain changed last, as far as its runs tell.
func (c Chain) changedAt() time.Time {
	var at time.Time
	for _, r := range c.Runs {
		at = latest(at, &r.CreationTimestamp)
		at = latest(at, r.Status.StartedAt)
		at = latest(at, r.Status.FinishedAt)
		at = changed(at, r.Status.Conditions)
	}
	return at
}

// crashed reports whether a manager restart failed a run of the chain, be it one that was deleted since.
func (c Chain) crashed() bool {
	if c.Root != nil && c.Root.Status.Chain != nil && c.Root.Status.Chain.CrashRecovered {
		return true
	}
	return slices.ContainsFunc(c.Runs, func(r *batchv1alpha1.JobRun) bool {
		return r.Status.Reason == batchv1alpha1.ReasonCrashRecovery
	})
}

// end returns the condition by which a root tells that its chain has come to an end, nil if it has not.
func end(root *batchv1alpha1.JobRun) *metav1.Condition {
	for _, kind := range []string{batchv1alpha1.ConditionComplete, batchv1alpha1.ConditionFailed} {
		if c := meta.FindStatusCondition(root.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}

// outside reports whether the run is a retry that became part of no chain: one that was refused. It stands for itself.
func outside(r *batchv1alpha1.JobRun) bool { return !run.IsRoot(r) }

// changed returns the latest of t and the times at which the conditions changed.
func changed(t time.Time, conditions []metav1.Condition) time.Time {
	for i := range conditions {
		t = latest(t, &conditions[i].LastTransitionTime)
	}
	return t
}

func latest(t time.Time, other *metav1.Time) time.Time {
	if other != nil && other.After(t) {
		return other.Time
	}
	return t
}
