// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/metrics"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// own is the epoch of this process, earlier that of the one before.
const own, earlier = "100.2", "100.1"

func after(seconds int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
}

type change func(*batchv1alpha1.JobRun)

// aRun is created at noon and waits in the queue main.
func aRun(changes ...change) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a", CreationTimestamp: *after(0)}}
	r.Spec.Queue = "main"
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{}}
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, c := range changes {
		c(r)
	}
	return r
}

func startedAt(seconds int, epoch string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.StartedAt, r.Status.Slot = batchv1alpha1.JobRunRunning, after(seconds), batchv1alpha1.SlotHeld
		r.Status.Incarnation = &batchv1alpha1.Incarnation{Epoch: epoch}
	}
}

func cancelling(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunCancelling }

func ended(phase batchv1alpha1.JobRunPhase, reason string, seconds int) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.Reason, r.Status.FinishedAt, r.Status.Slot = phase, reason, after(seconds), batchv1alpha1.SlotFree
	}
}

func holding(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotHeld }

func said(kind string, status metav1.ConditionStatus, reason string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	}
}

func retried(uid types.UID, manual bool) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: "a-r1", UID: uid, Manual: manual}
	}
}

var (
	completed = ended(batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, 30)
	failed    = ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, 30)
	crashed   = ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCrashRecovery, 30)
	forGood   = said(batchv1alpha1.ConditionFailed, metav1.ConditionTrue, batchv1alpha1.ReasonRetriesExhausted)
)

func finished(phase, reason string) Observation {
	return once(metrics.RunsFinished, "ns", "main", phase, reason)
}

func took(seconds float64, phase string) Observation {
	return Observation{Of: metrics.RunDuration, Value: seconds, Labels: []string{"ns", "main", phase}}
}

func waited(seconds float64) Observation {
	return Observation{Of: metrics.QueueWait, Value: seconds, Labels: []string{"ns", "main"}}
}

func recovered(how string) Observation { return once(metrics.Recoveries, "ns", "main", how) }

func TestWhatHasHappenedToARun(t *testing.T) {
	for name, c := range map[string]struct {
		before, now *batchv1alpha1.JobRun
		want        []Observation
	}{
		"one that is created has done nothing yet": {nil, aRun(), nil},
		"one that is deleted counts no more":       {aRun(startedAt(5, own)), nil, nil},
		"one that is admitted has waited since its creation": {
			aRun(), aRun(startedAt(5, own)), []Observation{waited(5)},
		},
		"back-off is no wait for a slot": {
			aRun(func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = after(4) }),
			aRun(func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = after(4) }, startedAt(5, own)),
			[]Observation{waited(1)},
		},
		"no wait is shorter than nothing": {aRun(), aRun(startedAt(-1, own)), []Observation{waited(0)}},
		"one that completes has an end and a duration": {
			aRun(startedAt(5, own)), aRun(startedAt(5, own), completed), []Observation{finished("Completed", "Succeeded"), took(25, "Completed")},
		},
		"one that never started has no duration": {
			aRun(), aRun(ended(batchv1alpha1.JobRunCancelled, batchv1alpha1.ReasonCancelled, 3)), []Observation{finished("Cancelled", "Cancelled")},
		},
		"one that was seen again only at its end has both": {
			nil, aRun(startedAt(5, own), completed), []Observation{waited(5), finished("Completed", "Succeeded"), took(25, "Completed")},
		},
		"what is written after the end is no second end": {
			aRun(startedAt(5, own), completed, holding), aRun(startedAt(5, own), completed), nil,
		},
		"a run restored from a backup ended long ago": {
			aRun(), aRun(startedAt(-100, earlier), ended(batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonWorkFailed, -50), forGood), nil,
		},
		"an orphan that fails is recovered": {
			aRun(startedAt(5, earlier)), aRun(startedAt(5, earlier), crashed),
			[]Observation{finished("Failed", "CrashRecovery"), took(25, "Failed"), recovered("running_failed")},
		},
		"an orphan that was being cancelled fails as that": {
			aRun(startedAt(5, earlier), cancelling), aRun(startedAt(5, earlier), crashed),
			[]Observation{finished("Failed", "CrashRecovery"), took(25, "Failed"), recovered("cancelling_failed")},
		},
		"a call of this very process that is lost is recovered too": {
			aRun(startedAt(5, own)), aRun(startedAt(5, own), crashed),
			[]Observation{finished("Failed", "CrashRecovery"), took(25, "Failed"), recovered("running_failed")},
		},
		"an orphan whose work had ended is recorded": {
			aRun(startedAt(5, earlier)), aRun(startedAt(5, earlier), completed),
			[]Observation{finished("Completed", "Succeeded"), took(25, "Completed"), recovered("recorded")},
		},
		"an orphan whose work is alive is adopted": {
			aRun(startedAt(5, earlier)), aRun(startedAt(5, own)), []Observation{recovered("adopted")},
		},
		"an orphan that is left alone is not recovered": {
			aRun(startedAt(5, earlier)), aRun(startedAt(5, earlier), said(batchv1alpha1.ConditionOrphaned, metav1.ConditionTrue, "Orphaned")), nil,
		},
		"a cancel is no recovery": {aRun(startedAt(5, own)), aRun(startedAt(5, own), cancelling), nil},
		"a retry that was made counts once it is on record": {
			aRun(startedAt(5, own), failed), aRun(startedAt(5, own), failed, retried("r1", false)),
			[]Observation{once(metrics.Retries, "ns", "main", "automatic")},
		},
		"a retry by hand is told apart": {
			aRun(startedAt(5, own), failed), aRun(startedAt(5, own), failed, retried("r1", true)),
			[]Observation{once(metrics.Retries, "ns", "main", "manual")},
		},
		"a retry on record is not counted again": {
			aRun(startedAt(5, own), failed, retried("r1", false)), aRun(startedAt(5, own), failed, retried("r1", false), forGood),
			[]Observation{once(metrics.ChainsFailed, "ns", "main")},
		},
		"only the root tells that a chain has failed for good": {
			aRun(func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf = "root" }, startedAt(5, own)),
			aRun(func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf = "root" }, startedAt(5, own), failed, forGood),
			[]Observation{finished("Failed", "WorkFailed"), took(25, "Failed")},
		},
		"a chain that failed for good fails once": {
			aRun(startedAt(5, own), failed, forGood), aRun(startedAt(5, own), failed, forGood, said(batchv1alpha1.ConditionStalled, metav1.ConditionTrue, "x")), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.want == nil {
				c.want = []Observation{}
			}
			got := append([]Observation{}, runChanges(c.before, c.now, moment{at: noon.Add(time.Minute), epoch: own})...)
			NewWithT(t).Expect(got).To(Equal(c.want))
		})
	}
}

func TestHowARunStands(t *testing.T) {
	of := func(g *metrics.Standing, labels ...string) metrics.Share {
		return metrics.Share{Of: g, Value: 1, Labels: append([]string{"ns"}, labels...)}
	}
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		want []metrics.Share
	}{
		"one that waits": {aRun(), []metrics.Share{of(metrics.Runs, "main", "Queued")}},
		"one without a phase waits": {
			aRun(func(r *batchv1alpha1.JobRun) { r.Status.Phase = "" }), []metrics.Share{of(metrics.Runs, "main", "Queued")},
		},
		"one that is yet to be resolved has no queue": {
			aRun(func(r *batchv1alpha1.JobRun) { r.Spec.Work = nil }), []metrics.Share{of(metrics.Runs, "", "Queued")},
		},
		"one at work may be that of another manager": {
			aRun(startedAt(5, earlier)), []metrics.Share{of(metrics.Runs, "main", "Running"), of(metrics.OrphanedRuns, "main", earlier)},
		},
		"one that is silent": {
			aRun(startedAt(5, own), said(batchv1alpha1.ConditionStale, metav1.ConditionTrue, "NoSignOfLife")),
			[]metrics.Share{of(metrics.Runs, "main", "Running"), of(metrics.OrphanedRuns, "main", own), of(metrics.SilentRuns, "main")},
		},
		"one that gives signs of life again": {
			aRun(startedAt(5, own), said(batchv1alpha1.ConditionStale, metav1.ConditionFalse, "SignOfLife")),
			[]metrics.Share{of(metrics.Runs, "main", "Running"), of(metrics.OrphanedRuns, "main", own)},
		},
		"one that has ended and whose work has not": {
			aRun(startedAt(5, own), crashed, holding), []metrics.Share{of(metrics.Runs, "main", "Failed"), of(metrics.SlotsStopping, "main")},
		},
		"one whose work should have stopped": {
			aRun(startedAt(5, own), crashed, holding, said(batchv1alpha1.ConditionStopConfirmed, metav1.ConditionFalse, batchv1alpha1.ReasonStopOverdue)),
			[]metrics.Share{of(metrics.Runs, "main", "Failed"), of(metrics.SlotsStopping, "main"), of(metrics.SlotsOverdue, "main")},
		},
		"one that was silent until its end is silent no more": {
			aRun(startedAt(5, own), said(batchv1alpha1.ConditionStale, metav1.ConditionTrue, "NoSignOfLife"), completed),
			[]metrics.Share{of(metrics.Runs, "main", "Completed")},
		},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(runShares(c.run)).To(Equal(c.want)) })
	}
}
