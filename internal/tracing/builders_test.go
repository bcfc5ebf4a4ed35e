// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	rootUID  types.UID = "5c5b6ed8-6d2a-4b0e-9c0f-6c1f3c1d4a10"
	childUID types.UID = "0e0c7a55-3f51-4e0c-8a4e-0f9d4a3b2c1d"
	rootHex            = "5c5b6ed86d2a4b0e9c0f6c1f3c1d4a10"
)

var midnight = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// after is so many seconds after midnight.
func after(seconds int) *metav1.Time {
	t := metav1.NewTime(midnight.Add(time.Duration(seconds) * time.Second))
	return &t
}

type change func(*batchv1alpha1.JobRun)

// nightly was due at midnight, made 1 s later, and waits.
func nightly(changes ...change) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly-1", UID: rootUID, CreationTimestamp: *after(1)}}
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "https://example.org"}}
	r.Spec.Type = "report"
	r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	r.Spec.ScheduledTime = after(0)
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, c := range changes {
		c(r)
	}
	return r
}

// retried is the first retry of nightly: made at 31 s, kept out until 40 s.
func retried(changes ...change) *batchv1alpha1.JobRun {
	r := nightly()
	r.Name, r.UID, r.CreationTimestamp = "nightly-1-r1", childUID, *after(31)
	r.Spec.ScheduledTime = nil
	r.Spec.RetryOf, r.Spec.Attempt, r.Spec.NotBefore = "nightly-1", 1, after(40)
	r.Spec.Chain = &batchv1alpha1.Chain{RootName: "nightly-1", RootUID: rootUID}
	for _, c := range changes {
		c(r)
	}
	return r
}

// ended has the run claimed at one second, and ended at another.
func ended(phase batchv1alpha1.JobRunPhase, reason string, started, finished int) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Phase, r.Status.Reason = phase, reason
		r.Status.StartedAt, r.Status.FinishedAt = after(started), after(finished)
	}
}

// over has the chain settled.
func over(condition, reason string, at, attempts int) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Chain = &batchv1alpha1.ChainStatus{LatestName: r.Name, Attempts: int32(attempts)}
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: *after(at),
		})
	}
}

// inMemory returns a Tracer whose spans are kept.
func inMemory(t *testing.T, p sampler) (*Tracer, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := newTracer(p, sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { tracer.Shutdown(t.Context()) })
	return tracer, exporter
}
