// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// Conclude completes the status of a run that is getting its outcome, in the same write: what follows for its chain. It
// reports whether the chain has failed for good with it. The run has its terminal phase and no retry.
func Conclude(r *batchv1alpha1.JobRun, now time.Time) (failedForGood bool) {
	s := Settle(r)
	s.show(r, now)
	if run.IsRoot(r) {
		count(r, member{r, run.Attempt(r)})
	}
	return s.Failed
}

// Tell brings the status of a terminal run up to date with the other runs of its chain: its conditions, and on the root
// status.chain. The runs are those that the cache has of the chain; the run itself may be newer than its copy among them.
func Tell(r *batchv1alpha1.JobRun, runs []batchv1alpha1.JobRun, now time.Time) {
	members := membersOf(r, runs)
	latest := latestOf(members)
	s := settle(latest.run, latest.number)
	if latest.run == r && unseen(r, runs) {
		s = Settlement{Reason: batchv1alpha1.ReasonRetrying, Message: "retry " + r.Status.Retry.Name + " was created"}
	}
	s.show(r, now)
	if run.IsRoot(r) {
		for _, m := range members {
			count(r, m)
		}
	}
}

// Record puts the retry of parent on record, and what that means for the chain as far as the two show it.
func Record(parent, child *batchv1alpha1.JobRun, record batchv1alpha1.RetryRecord, now time.Time) {
	parent.Status.Retry = &record
	Tell(parent, []batchv1alpha1.JobRun{*parent, *child}, now)
}

// Closed reports whether the root has told of the end of its chain, and the run that told it was deleted since: history deletes
// the latest first, and so may a person. What was told stays told.
func Closed(root *batchv1alpha1.JobRun, runs []batchv1alpha1.JobRun) bool {
	told := meta.IsStatusConditionTrue(root.Status.Conditions, batchv1alpha1.ConditionComplete) ||
		meta.IsStatusConditionTrue(root.Status.Conditions, batchv1alpha1.ConditionFailed)
	return told && Deleted(latestOf(membersOf(root, runs)).run.Status.Retry, runs)
}

// Deleted reports whether a retry is on record and none of the runs.
func Deleted(record *batchv1alpha1.RetryRecord, runs []batchv1alpha1.JobRun) bool {
	return record != nil && !slices.ContainsFunc(runs, func(r batchv1alpha1.JobRun) bool { return r.UID == record.UID })
}

// member is a run of a chain.
type member struct {
	run *batchv1alpha1.JobRun
	// number is how many runs of the chain came before it.
	number int32
}

func latestOf(members []member) member {
	return slices.MaxFunc(members, func(a, b member) int { return cmp.Compare(a.number, b.number) })
}

// membersOf returns the runs of a chain, r first: those whose parent names them, or is gone and names nobody any more. A run
// that was made late or by hand and is not recorded is no member.
func membersOf(r *batchv1alpha1.JobRun, runs []batchv1alpha1.JobRun) []member {
	byName := map[string]*batchv1alpha1.JobRun{r.Name: r}
	for i := range runs {
		if runs[i].UID != r.UID {
			byName[runs[i].Name] = &runs[i]
		}
	}
	members := []member{{r, number(r, byName[r.Spec.RetryOf])}}
	for i := range runs {
		o := byName[runs[i].Name]
		if o == r {
			continue
		}
		if parent := byName[o.Spec.RetryOf]; parent == nil || Names(parent, o) {
			members = append(members, member{o, number(o, parent)})
		}
	}
	return members
}

// Names reports whether the status of parent names r as its retry.
func Names(parent, r *batchv1alpha1.JobRun) bool {
	return parent.Status.Retry != nil && parent.Status.Retry.UID == r.UID
}

// number returns the number of a run in its chain. A retry by hand that ended before it was resolved does not know it, but its
// parent does, nil if that is gone.
func number(r, parent *batchv1alpha1.JobRun) int32 {
	if parent != nil && Names(parent, r) && parent.Status.Retry.Attempt != nil {
		return *parent.Status.Retry.Attempt
	}
	return run.Attempt(r)
}

// unseen reports whether the retry that r names is missing because the runs are older than r, rather than deleted. A retry
// is made before it is recorded, so runs that show the record would show the retry.
func unseen(r *batchv1alpha1.JobRun, runs []batchv1alpha1.JobRun) bool {
	if r.Status.Retry == nil {
		return false
	}
	for i := range runs {
		if runs[i].UID == r.UID {
			shown := runs[i].Status.Retry
			return shown == nil || shown.UID != r.Status.Retry.UID
		}
	}
	return false
}

// count adds a run of the chain to what the root tells. What was known before stays known: runs that were deleted count, and
// a crash is not forgotten.
func count(root *batchv1alpha1.JobRun, m member) {
	if root.Status.Chain == nil {
		root.Status.Chain = &batchv1alpha1.ChainStatus{LatestName: root.Name, Attempts: 1}
	}
	chain := root.Status.Chain
	if n := m.number + 1; n > chain.Attempts {
		chain.LatestName, chain.Attempts = m.run.Name, n
	}
	if m.run.Status.Reason == batchv1alpha1.ReasonCrashRecovery {
		chain.CrashRecovered = true
	}
}
