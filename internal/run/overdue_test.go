// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestStoppedWorkIsOverdueHalfAMinuteAfterItsGrace(t *testing.T) {
	g := NewWithT(t)
	due := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	g.Expect(Overdue(due, due.Add(30*time.Second-time.Nanosecond))).To(BeFalse())
	g.Expect(Overdue(due, due.Add(30*time.Second))).To(BeTrue())
	g.Expect(Overdue(time.Time{}, due)).To(BeFalse(), "it was given no time by which to end")
}

func TestAFreeSlotIsNotOverdueAndAPersonsWordStays(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, free := range map[string]func(*batchv1alpha1.JobRun){
		"freed after the end": Free,
		"freed with the end": func(r *batchv1alpha1.JobRun) {
			Finish(r, batchv1alpha1.JobRunCancelled, "CancelRequested", "", true, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := &batchv1alpha1.JobRun{}
			g.Expect(StopOverdue(r, "pod a on node n", now)).To(BeTrue())
			g.Expect(StopOverdue(r, "pod a on node n", now.Add(time.Minute))).To(BeFalse(), "it is said once")
			free(r)
			g.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStopConfirmed)).To(BeNil())

			StopOverdue(r, "pod a on node n", now)
			r.Status.Conditions[0].Reason = batchv1alpha1.ReasonUIDMismatch
			free(r)
			g.Expect(r.Status.Conditions).To(HaveLen(1), "what else was said stays")
		})
	}
}
