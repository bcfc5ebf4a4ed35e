// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var _ = apart("Work that ends while no manager runs has its true outcome, whatever its recovery policy", func(t *testing.T) {
	i := install(t, 2)
	i.queue("default", 5)
	fail, adopt := recovered(batchv1alpha1.RecoveryFail), recovered(batchv1alpha1.RecoveryAdopt)
	i.create(
		i.jobRun("completes", untilFinished(0), fail),
		i.jobRun("fails", untilFinished(3), fail),
		i.jobRun("skips", untilFinished(4), skips(4), adopt),
		i.jobRun("stopped", untilFinished(0), fail),
		i.jobRun("adopted", untilFinished(0), adopt),
	)
	for _, run := range []string{"completes", "fails", "skips", "stopped", "adopted"} {
		i.atWork(run)
	}
	i.scale(0)
	for _, run := range []string{"completes", "fails", "skips"} {
		i.finish(run)
		i.jobIsOver(run)
		i.Expect(i.get(run).Status.Phase).To(Equal(batchv1alpha1.JobRunRunning), "nobody is there to record the end of %s", run)
	}
	i.scale(2)

	i.eventually("completes", batchv1alpha1.JobRunCompleted)
	failed := i.eventually("fails", batchv1alpha1.JobRunFailed)
	i.Expect(failed.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	i.Expect(failed.Status.Result.ExitCode).To(HaveValue(BeEquivalentTo(3)))
	i.eventually("skips", batchv1alpha1.JobRunSkipped)
	stopped := i.eventually("stopped", batchv1alpha1.JobRunFailed)
	i.Expect(stopped.Status.Reason).To(Equal(batchv1alpha1.ReasonCrashRecovery), "it was alive when the next manager came")
	i.Eventually(func() string { return i.get("adopted").Status.Incarnation.ID }).Should(Equal(i.seen.leader().Holder))
	i.finish("adopted")
	i.eventually("adopted", batchv1alpha1.JobRunCompleted)
	i.keepsPromises()
})

// jobIsOver waits until the Job controller has noted the end of a run's Job.
func (i *installation) jobIsOver(run string) {
	i.t.Helper()
	i.Eventually(func() []batchv1.JobCondition {
		job := &batchv1.Job{}
		i.Expect(i.Get(i.ctx, client.ObjectKey{Namespace: i.ns, Name: i.get(run).Status.JobName}, job)).To(Succeed())
		return job.Status.Conditions
	}).Should(ContainElement(HaveField("Type", BeElementOf(batchv1.JobComplete, batchv1.JobFailed))), "the Job of %s ends", run)
}
