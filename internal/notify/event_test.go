// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"encoding/json"
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
		Attempt:         new(int32(2)),
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
	e, err := Event(retryRun(), EventPermanentlyFailed)
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
	e, err := Event(runIn(batchv1alpha1.JobRunSkipped), EventSkipped)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Data()).To(MatchJSON(`{
		"namespace": "team", "name": "nightly", "uid": "uid-1", "queue": "main", "phase": "Skipped",
		"attempt": 0, "rootName": "nightly", "idempotencyKey": "uid-1"
	}`))
	g.Expect(e.Time()).To(BeZero())
}

func TestTheSameEventIsTheSameInEveryDelivery(t *testing.T) {
	g := NewWithT(t)
	first, err := Event(retryRun(), EventFailed)
	g.Expect(err).NotTo(HaveOccurred())
	again := retryRun()
	again.Status.Announcements[0].Attempts = 7
	second, err := Event(again, EventFailed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second).To(Equal(first))

	other, err := Event(retryRun(), EventPermanentlyFailed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other.ID()).NotTo(Equal(first.ID()))
}

func TestAnInvalidEventIsAnError(t *testing.T) {
	_, err := Event(runIn(batchv1alpha1.JobRunFailed), "")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("type")))
}
