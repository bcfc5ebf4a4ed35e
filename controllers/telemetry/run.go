// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/metrics"
	"reprise.dev/reprise/internal/run"
)

func jobRun() kind[*batchv1alpha1.JobRun] {
	return kind[*batchv1alpha1.JobRun]{shares: runShares, changes: runChanges}
}

// runShares is what a run adds to gauges.
func runShares(r *batchv1alpha1.JobRun) []metrics.Share {
	queue, phase := run.Queue(r), cmp.Or(r.Status.Phase, batchv1alpha1.JobRunQueued)
	shares := []metrics.Share{{Of: metrics.Runs, Value: 1, Labels: []string{r.Namespace, queue, string(phase)}}}
	if phase.InProgress() {
		shares = append(shares, metrics.Share{Of: metrics.OrphanedRuns, Value: 1, Labels: []string{r.Namespace, queue, run.Epoch(r)}})
	}
	if phase.InProgress() && stale(r) {
		shares = append(shares, metrics.Share{Of: metrics.SilentRuns, Value: 1, Labels: []string{r.Namespace, queue}})
	}
	if phase.Terminal() && r.Status.Slot == batchv1alpha1.SlotHeld {
		shares = append(shares, metrics.Share{Of: metrics.SlotsStopping, Value: 1, Labels: []string{r.Namespace, queue}})
	}
	if run.HoldsSlot(r) && overdue(r) {
		shares = append(shares, metrics.Share{Of: metrics.SlotsOverdue, Value: 1, Labels: []string{r.Namespace, queue}})
	}
	return append(shares, letterShares(r.Namespace, r.Status.Announcements)...)
}

func overdue(r *batchv1alpha1.JobRun) bool {
	c := meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStopConfirmed)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == batchv1alpha1.ReasonStopOverdue
}

func stale(r *batchv1alpha1.JobRun) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionStale)
}

// runChanges is what has happened to a run.
func runChanges(before, now *batchv1alpha1.JobRun, m moment) []Observation {
	if now == nil || restored(now) {
		return nil
	}
	if before == nil {
		before = &batchv1alpha1.JobRun{}
	}
	all := runAdmitted(before, now)
	all = append(all, runFinished(before, now)...)
	all = append(all, runRecovered(before, now, m.epoch)...)
	all = append(all, chainGoesOn(before, now)...)
	return append(all, lettersSent(now.Namespace, before.Status.Announcements, now.Status.Announcements, now.Status.FinishedAt, m.at)...)
}

// restored reports whether a run ended before it was created: it comes from a backup, and what became of it was counted then.
func restored(r *batchv1alpha1.JobRun) bool {
	return r.Status.FinishedAt != nil && r.Status.FinishedAt.Before(&r.CreationTimestamp)
}

// runAdmitted tells how long a run waited from the moment it might have been admitted.
func runAdmitted(before, now *batchv1alpha1.JobRun) []Observation {
	if now.Status.StartedAt == nil || before.Status.StartedAt != nil {
		return nil
	}
	from := now.CreationTimestamp.Time
	if notBefore := now.Spec.NotBefore; notBefore != nil && notBefore.After(from) {
		from = notBefore.Time
	}
	return []Observation{lasted(metrics.QueueWait, now.Status.StartedAt.Sub(from), now.Namespace, run.Queue(now))}
}

func runFinished(before, now *batchv1alpha1.JobRun) []Observation {
	if !now.Status.Phase.Terminal() || before.Status.Phase.Terminal() {
		return nil
	}
	queue, phase := run.Queue(now), string(now.Status.Phase)
	all := []Observation{once(metrics.RunsFinished, now.Namespace, queue, phase, now.Status.Reason)}
	if started, finished := now.Status.StartedAt, now.Status.FinishedAt; started != nil && finished != nil {
		all = append(all, lasted(metrics.RunDuration, finished.Sub(started.Time), now.Namespace, queue, phase))
	}
	return all
}

// runRecovered tells what became of a run that a manager which ended had left at work.
func runRecovered(before, now *batchv1alpha1.JobRun, own string) []Observation {
	if !before.Status.Phase.InProgress() {
		return nil
	}
	left := run.Epoch(before) != own
	var how string
	switch {
	case now.Status.Phase.InProgress():
		if left && run.Epoch(now) == own {
			how = metrics.RecoveryAdopted
		}
	case now.Status.Reason != batchv1alpha1.ReasonCrashRecovery:
		if left {
			how = metrics.RecoveryRecorded
		}
	case before.Status.Phase == batchv1alpha1.JobRunCancelling:
		how = metrics.RecoveryCancellingFailed
	default:
		how = metrics.RecoveryRunningFailed
	}
	if how == "" {
		return nil
	}
	return []Observation{once(metrics.Recoveries, now.Namespace, run.Queue(now), how)}
}

// chainGoesOn tells of a retry that was made, and of the end for good of a chain, which its root tells.
func chainGoesOn(before, now *batchv1alpha1.JobRun) []Observation {
	var all []Observation
	if made := now.Status.Retry; made != nil && (before.Status.Retry == nil || before.Status.Retry.UID != made.UID) {
		how := metrics.RetryAutomatic
		if made.Manual {
			how = metrics.RetryManual
		}
		all = append(all, once(metrics.Retries, now.Namespace, run.Queue(now), how))
	}
	if run.IsRoot(now) && failedForGood(now) && !failedForGood(before) {
		all = append(all, once(metrics.ChainsFailed, now.Namespace, run.Queue(now)))
	}
	return all
}

func failedForGood(r *batchv1alpha1.JobRun) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionFailed)
}
