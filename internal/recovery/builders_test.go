// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
)

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	before = epoch.New(noon, 1)
	me     = epoch.New(noon, 2)
	after  = epoch.New(noon, 3)
)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// orphan is a Running run with Job work that manager-1, of the epoch before, has claimed.
func orphan(with ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", UID: "uid-demo"},
		Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{
			Type: "story", Work: &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}},
		}},
		Status: batchv1alpha1.JobRunStatus{
			Phase:       batchv1alpha1.JobRunRunning,
			Slot:        batchv1alpha1.SlotHeld,
			Incarnation: &batchv1alpha1.Incarnation{ID: "manager-1", Epoch: before.String()},
		},
	}
	for _, f := range with {
		f(r)
	}
	return r
}

func phase(p batchv1alpha1.JobRunPhase) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Status.Phase = p }
}

func claimedIn(e epoch.Epoch) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.Epoch = e.String() }
}

func noIncarnation(r *batchv1alpha1.JobRun) { r.Status.Incarnation = nil }
func cancelAsked(r *batchv1alpha1.JobRun)   { r.Spec.Cancel = true }
func httpWork(r *batchv1alpha1.JobRun) {
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{}}
}

var (
	neverStarted = executor.Evidence{Life: executor.NeverStarted, Stopped: true}
	working      = executor.Evidence{Life: executor.Alive}
	unknown      = executor.Evidence{Life: executor.Unknown}
)

func ended(p batchv1alpha1.JobRunPhase, reason string, stopped bool) executor.Evidence {
	return executor.Evidence{Life: executor.Ended, Stopped: stopped, Outcome: &executor.Outcome{
		Phase: p, Reason: reason, Message: "exit code 0", Result: &batchv1alpha1.WorkResult{ExitCode: ptr.To[int32](0)},
	}}
}
