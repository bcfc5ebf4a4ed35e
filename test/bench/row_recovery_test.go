// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
)

func TestAnAbandonedRunIsFailedByTheRestartAndFreesItsSlot(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	r := &batchv1alpha1.JobRun{}
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://127.0.0.1/"}}
	r.Spec.RetryPolicy = laterRetry()

	abandon(r, (&Bench{process: "bench_ended"}).stamp(longAgo), now)
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	fail(r, now)
	g.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	g.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	g.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	g.Expect(r.Status.Message).To(ContainSubstring("bench_ended"))

	again := retry.Decide(r)
	g.Expect(again.Due).To(BeTrue())
	g.Expect(again.NotBefore).To(BeTemporally(">=", now.Add(time.Hour)), "a retry must not begin while something is measured")
}
