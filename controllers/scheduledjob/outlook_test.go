// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

func TestTheOutlookIsWhatTheControllerDecides(t *testing.T) {
	g := NewWithT(t)
	created := time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC)
	sj := &batchv1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hourly", UID: "sj", CreationTimestamp: metav1.NewTime(created)},
		Spec: batchv1alpha1.ScheduledJobSpec{
			Schedule: "0 * * * *", ConcurrencyPolicy: batchv1alpha1.ConcurrencyForbid, MaxQueuedRuns: 100,
			RunTemplate: &batchv1alpha1.JobRunTemplateSpec{},
		},
	}
	tick := created.Add(time.Hour)
	o := Foresee(sj, nil, nil, tick)
	g.Expect(o.Decision.Fire).To(Equal([]schedule.Tick{{Time: tick}}))
	g.Expect(o.Kind + " " + o.Name(sj.Name, tick)).To(Equal("run hourly-1795158000"))

	byHand := batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "by-hand", UID: "by-hand"},
		Spec:       batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "hourly"}},
		Status:     batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunFailed, Retry: &batchv1alpha1.RetryRecord{Name: "by-hand-r1", UID: "r1"}},
	}
	left := batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gone-r1", UID: "gone-r1"},
		Spec: batchv1alpha1.JobRunSpec{RetryOf: "gone", Attempt: 1, Chain: &batchv1alpha1.Chain{RootName: "gone", RootUID: "gone"},
			ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "hourly"}},
		Status: batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued},
	}
	o = Foresee(sj, []batchv1alpha1.JobRun{byHand, left}, nil, tick)
	g.Expect(o.Unsettled).To(Equal([]string{"by-hand", "gone-r1"}))
	g.Expect(o.Decision.Reason).To(Equal(schedule.RunsActive))
	g.Expect(o.Decision.Fire).To(Equal([]schedule.Tick{{Time: tick, Skip: true}}))
}

func TestTheOutlookOfAScheduleThatCannotBeUsedSaysWhy(t *testing.T) {
	g := NewWithT(t)
	sj := &batchv1alpha1.ScheduledJob{Spec: batchv1alpha1.ScheduledJobSpec{Schedule: "0 0 30 2 *", GroupTemplate: &batchv1alpha1.JobGroupTemplateSpec{}}}
	o := Foresee(sj, nil, nil, time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC))
	g.Expect(o.Invalid).To(MatchError(ContainSubstring("there is no such date")))
	g.Expect(o.Kind).To(Equal("group"))
	g.Expect(o.Decision.Fire).To(BeEmpty())
}
