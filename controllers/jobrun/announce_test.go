// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// telling has the ScheduledJob name a receiver of the same name as that of the queue.
func telling(sj *batchv1alpha1.ScheduledJob) {
	sj.Spec.Notifications = queue("main").Spec.Notifications
}

// of has the run come from the ScheduledJob.
func of(name string) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: name} }
}

// byHand has the run be a manual retry of one of the ScheduledJob's.
func byHand(r *batchv1alpha1.JobRun) {
	r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{JobRunTemplateSpec: r.Spec.JobRunTemplateSpec, ScheduledJob: "sj"}
	r.Spec = batchv1alpha1.JobRunSpec{RetryOf: "gone"}
}

func TestTheReceiversOfTheScheduledJobHearOfItsRunsAndTheirRetries(t *testing.T) {
	both := []batchv1alpha1.Announcement{
		{Receiver: "ops", Event: "job.run.cancelled", State: batchv1alpha1.AnnouncementOwed},
		{Receiver: "ops", ScheduledJob: true, Event: "job.run.cancelled", State: batchv1alpha1.AnnouncementOwed},
	}
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		want []batchv1alpha1.Announcement
	}{
		"a run of it":                      {queued("a", of("sj"), cancelled), both},
		"a manual retry of one":            {queued("a", byHand, cancelled), both},
		"a run of one that does not exist": {queued("a", of("gone"), cancelled), both[:1]},
		"a run of none":                    {queued("a", cancelled), both[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), scheduledJob(telling), c.run)
			b.stale["sj"] = nil // the cache does not show it yet: its absence there decides nothing
			b.step("a")
			g.Expect(b.run("a").Status.Announcements).To(Equal(c.want))
		})
	}
}

func TestTheReceiversOfTheScheduledJobHearOfAChainThatHasFailedForGoodLater(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), scheduledJob(telling), queued("a", of("sj"), failed(true), withRetry("a-r1", "uid-a-r1")))
	b.step("a")
	g.Expect(b.run("a").Status.Announcements).To(HaveExactElements(HaveField("ScheduledJob", false), HaveField("ScheduledJob", true)))
}
