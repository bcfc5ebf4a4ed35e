// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

type change func(*batchv1alpha1.JobRun)

// queued is a run with work of its own, as the API server stores it.
func queued(changes ...change) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "nightly", UID: "uid-nightly", ResourceVersion: "41", Generation: 1, CreationTimestamp: metav1.NewTime(noon),
		},
		Spec:   batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Work: &batchv1alpha1.Work{}}},
		Status: batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued, ObservedGeneration: -1},
	}
	for _, c := range changes {
		c(r)
	}
	return r
}

func withoutWork(r *batchv1alpha1.JobRun) { r.Spec.Work = nil }

// resolved makes it a run that named another object, and was found to mean t.
func resolved(t batchv1alpha1.JobRunTemplateSpec) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.Work = nil
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: t}
	}
}

func inQueue(name string) change { return func(r *batchv1alpha1.JobRun) { r.Spec.Queue = name } }

func in(phase batchv1alpha1.JobRunPhase, slot batchv1alpha1.SlotState) change {
	return func(r *batchv1alpha1.JobRun) { r.Status.Phase, r.Status.Slot = phase, slot }
}

func version(v string) change { return func(r *batchv1alpha1.JobRun) { r.ResourceVersion = v } }

var (
	phases = []batchv1alpha1.JobRunPhase{
		batchv1alpha1.JobRunQueued, batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunCancelling, batchv1alpha1.JobRunCompleted,
		batchv1alpha1.JobRunFailed, batchv1alpha1.JobRunSkipped, batchv1alpha1.JobRunCancelled,
	}
	slots = []batchv1alpha1.SlotState{"", batchv1alpha1.SlotHeld, batchv1alpha1.SlotFree}
)

// maybe draws a number or nothing.
func maybe(t *rapid.T, label string) *int32 {
	if !rapid.Bool().Draw(t, "has "+label) {
		return nil
	}
	return ptr.To(rapid.Int32Range(1, 1000).Draw(t, label))
}

// maybeChain draws what a retry carries of its chain, or nothing.
func maybeChain(t *rapid.T, label string) *batchv1alpha1.Chain {
	if !rapid.Bool().Draw(t, "has "+label) {
		return nil
	}
	return &batchv1alpha1.Chain{
		RootName: label, RootUID: "uid-of-root", QueuedAt: metav1.NewTime(noon), IdempotencyKey: "key",
		Sequence: rapid.Int64Range(0, 1000).Draw(t, label),
	}
}
