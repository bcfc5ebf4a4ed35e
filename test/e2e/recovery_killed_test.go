// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var _ = apart("A manager is killed while pods run: Fail ends a pod before its retry starts, Adopt lets it go on", func(t *testing.T) {
	const dying = 6 * time.Second
	i := install(t, 1)
	i.queue("default", 3)
	i.create(
		i.jobRun("fails", does("-pause", "-on-term="+dying.String()), grace(30), retries(1), recovered(batchv1alpha1.RecoveryFail)),
		i.jobRun("succeeds", untilFinished(0), retries(1), recovered(batchv1alpha1.RecoveryAdopt)),
		i.jobRun("breaks", untilFinished(3), recovered(batchv1alpha1.RecoveryAdopt)),
	)
	old, adopted := i.atWork("fails"), i.atWork("succeeds")
	i.atWork("breaks")
	before := i.get("succeeds").Status.Incarnation
	holder := i.seen.leader().Holder

	killed := i.kill(i.leading())
	h := i.succeeded(holder)
	t.Logf("the one manager, started again in its pod, leads %s after it was killed", h.Since(killed).Round(10*time.Millisecond))

	failed := i.eventually("fails", batchv1alpha1.JobRunFailed)
	i.Expect(failed.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery))
	i.Expect(failed.Status.Message).To(ContainSubstring("Scheduler crash recovery: run was Running when previous instance"))
	retry := i.atWork("fails-r1")
	old = i.ended(old)
	i.Expect(retry.Created).To(BeTemporally(">", old.Finished), "the retry's container starts when the old one has ended")
	i.Expect(old.Finished.Sub(failed.Status.FinishedAt.Time)).To(BeNumerically(">", dying/2), "the old container went on, so there was something to wait for")
	t.Logf("Fail: the old container ended %s after the failure was recorded, the retry's started %s later",
		old.Finished.Sub(failed.Status.FinishedAt.Time).Round(time.Second), retry.Created.Sub(old.Finished).Round(time.Millisecond))
	i.cancelRun("fails-r1")

	i.Eventually(func() string { return i.get("succeeds").Status.Incarnation.ID }).Should(Equal(h.To))
	i.Expect(before.ID).To(Equal(holder))
	i.Expect(i.get("succeeds").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	i.finish("succeeds")
	i.finish("breaks")
	i.eventually("succeeds", batchv1alpha1.JobRunCompleted)
	broken := i.eventually("breaks", batchv1alpha1.JobRunFailed)
	i.Expect(broken.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	i.Expect(broken.Status.Result.ExitCode).To(HaveValue(BeEquivalentTo(3)))
	i.keepsPromises()
	i.Expect(i.ofRun("succeeds")).To(ConsistOf(HaveField("ID", adopted.ID)), "one container, before and after")
	i.Expect(i.outcomes("succeeds")).To(Equal(1), "the result is recorded once")
})

// outcomes counts how often a run came to its end.
func (i *installation) outcomes(run string) (n int) {
	var before batchv1alpha1.JobRunPhase
	for _, r := range i.seen.versionsOf(run) {
		if r.Status.Phase.Terminal() && !before.Terminal() {
			n++
		}
		before = r.Status.Phase
	}
	return n
}
