// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// retryRun is the second retry of a scheduled run, failed.
func retryRun() *batchv1alpha1.JobRun {
	r := failedRun("ops")
	r.Name = "nightly-1762052400-r2"
	r.Spec = batchv1alpha1.JobRunSpec{
		JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{
			Type: "story",
			Work: &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{
				URL:     "https://user.test/hook?token=hidden",
				Headers: []batchv1alpha1.HTTPHeader{{Name: "Authorization", Value: new("hidden")}},
			}},
		},
		RetryOf:         "nightly-1762052400-r1",
		ScheduledJobRef: &batchv1alpha1.ObjectName{Name: "nightly"},
		Attempt:         2,
		Chain:           &batchv1alpha1.Chain{RootName: "nightly-1762052400", RootUID: "uid-0", IdempotencyKey: "key-0"},
	}
	started := metav1.NewTime(finished.Add(-time.Minute))
	r.Status.StartedAt = &started
	r.Status.Reason = batchv1alpha1.ReasonWorkFailed
	r.Status.Message = "answered 500"
	return r
}

func TestAnEventTellsTheWholeEndOfARunAndNoSecretOfItsWork(t *testing.T) {
	g := NewWithT(t)
	e, err := Event(OfRun(retryRun()), eventPermanentlyFailed)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(e)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(body).To(MatchJSON(`{
		"specversion": "1.0",
		"id": "uid-1/permanently_failed",
		"type": "job.run.permanently_failed",
		"source": "/apis/batch.reprise.dev/v1alpha1/namespaces/team/jobruns/nightly-1762052400-r2",
		"subject": "nightly-1762052400-r2",
		"time": "2026-11-02T03:04:05Z",
		"datacontenttype": "application/json",
		"data": {
			"namespace": "team", "name": "nightly-1762052400-r2", "uid": "uid-1",
			"queue": "main", "type": "story", "scheduledJob": "nightly",
			"phase": "Failed", "reason": "WorkFailed", "message": "answered 500",
			"attempt": 2, "rootName": "nightly-1762052400", "retryOf": "nightly-1762052400-r1",
			"startedAt": "2026-11-02T03:03:05Z", "finishedAt": "2026-11-02T03:04:05Z",
			"idempotencyKey": "key-0"
		}
	}`))
}

func TestAnEventOfARunThatNeverStartedLeavesOutWhatIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	e, err := Event(OfRun(runIn(batchv1alpha1.JobRunSkipped)), eventSkipped)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Data()).To(MatchJSON(`{
		"namespace": "team", "name": "nightly", "uid": "uid-1", "queue": "main", "phase": "Skipped",
		"attempt": 0, "rootName": "nightly", "idempotencyKey": "uid-1"
	}`))
	g.Expect(e.Time()).To(BeZero())
}

// scheduledGroup is a group of a tick, of which one member failed and the last was never made.
func scheduledGroup() *batchv1alpha1.JobGroup {
	g := groupIn(batchv1alpha1.JobGroupFailed, "ops")
	g.Name = "release-1762052400"
	g.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "release"}
	tick, started := metav1.NewTime(finished.Add(-245*time.Second)), metav1.NewTime(finished.Add(-time.Minute))
	g.Spec.ScheduledTime = &tick
	for _, name := range []string{"build", "publish"} {
		g.Spec.Members = append(g.Spec.Members, batchv1alpha1.GroupMember{Name: name, RunTemplate: batchv1alpha1.JobRunTemplateSpec{
			Queue: "main", Work: &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "https://user.test/hook?token=hidden"}},
		}})
	}
	g.Status.StartedAt = &started
	g.Status.Reason, g.Status.Message = batchv1alpha1.ReasonMemberFailed, "member build has failed"
	g.Status.Members = []batchv1alpha1.GroupMemberStatus{
		{Name: "build", Phase: batchv1alpha1.MemberFailed, Reason: batchv1alpha1.ReasonRetriesExhausted, RunName: "release-1762052400-build", RunUID: "uid-build"},
		{Name: "publish", Phase: batchv1alpha1.MemberCancelled, Reason: batchv1alpha1.ReasonMemberFailed, Message: "member build has failed"},
	}
	return g
}

func TestAnEventTellsTheWholeEndOfAGroup(t *testing.T) {
	g := NewWithT(t)
	e, err := Event(OfGroup(scheduledGroup()), eventGroupFailed)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(e)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(body).To(MatchJSON(`{
		"specversion": "1.0",
		"id": "uid-g/failed",
		"type": "job.group.failed",
		"source": "/apis/batch.reprise.dev/v1alpha1/namespaces/team/jobgroups/release-1762052400",
		"subject": "release-1762052400",
		"time": "2026-11-02T03:04:05Z",
		"datacontenttype": "application/json",
		"data": {
			"namespace": "team", "name": "release-1762052400", "uid": "uid-g", "queue": "main",
			"scheduledJob": "release", "scheduledTime": "2026-11-02T03:00:00Z",
			"phase": "Failed", "reason": "MemberFailed", "message": "member build has failed",
			"members": [
				{"name": "build", "phase": "Failed", "reason": "RetriesExhausted", "runName": "release-1762052400-build"},
				{"name": "publish", "phase": "Cancelled", "reason": "MemberFailed"}
			],
			"startedAt": "2026-11-02T03:03:05Z", "finishedAt": "2026-11-02T03:04:05Z"
		}
	}`))
}

func TestAnEventOfAGroupThatNeverStartedLeavesOutWhatIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	e, err := Event(OfGroup(groupIn(batchv1alpha1.JobGroupSkipped)), eventGroupSkipped)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Data()).To(MatchJSON(`{
		"namespace": "team", "name": "release", "uid": "uid-g", "queue": "default", "phase": "Skipped", "members": [],
		"finishedAt": "2026-11-02T03:04:05Z"
	}`))
}

func TestTheEventOfTheLargestGroupIsOneThatEveryReceiverMustTake(t *testing.T) {
	g := NewWithT(t)
	of := scheduledGroup()
	of.Status.Message = strings.Repeat("m", 2048)
	of.Status.Members = nil
	for range 64 {
		of.Status.Members = append(of.Status.Members, batchv1alpha1.GroupMemberStatus{
			Name: strings.Repeat("n", 63), Phase: batchv1alpha1.MemberCompleted, Reason: strings.Repeat("r", 64),
			Message: strings.Repeat("m", 512), RunName: strings.Repeat("n", 63),
		})
	}
	e, err := Event(OfGroup(of), eventGroupFailed)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(e)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(body)).To(BeNumerically("<", 64<<10), "the size that the CloudEvents specification wants forwarded")
}

func TestTheEventOfAGroupIsTheSameInEveryDelivery(t *testing.T) {
	g := NewWithT(t)
	first, err := Event(OfGroup(scheduledGroup()), eventGroupFailed)
	g.Expect(err).NotTo(HaveOccurred())
	again := scheduledGroup()
	again.Status.Announcements[0].Attempts = 7
	second, err := Event(OfGroup(again), eventGroupFailed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).To(Equal(first))
}

func TestTheSameEventIsTheSameInEveryDelivery(t *testing.T) {
	g := NewWithT(t)
	first, err := Event(OfRun(retryRun()), eventFailed)
	g.Expect(err).NotTo(HaveOccurred())
	again := retryRun()
	again.Status.Announcements[0].Attempts = 7
	second, err := Event(OfRun(again), eventFailed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).To(Equal(first))

	other, err := Event(OfRun(retryRun()), eventPermanentlyFailed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.ID()).NotTo(Equal(first.ID()))
}

func TestAnInvalidEventIsAnError(t *testing.T) {
	_, err := Event(OfRun(runIn(batchv1alpha1.JobRunFailed)), "")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("type")))
}
