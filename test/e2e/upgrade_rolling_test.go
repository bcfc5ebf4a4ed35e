// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

var _ = apart("A rolling upgrade of the manager under load, with Adopt, fails nothing and doubles nothing", func(t *testing.T) {
	i := install(t, 2, "--recovery-policy=Adopt")
	runs := i.upgradeUnderLoad(9, 6*time.Second)
	for _, name := range runs {
		r := i.eventually(name, batchv1alpha1.JobRunCompleted)
		i.Expect(r.Status.Retry).To(BeNil())
	}
	i.keepsPromises()
	for _, name := range runs {
		i.Expect(i.ofRun(name)).To(HaveLen(1), "containers of %s", name)
	}
	i.Expect(mostAtOnce(i.work())).To(Equal(slots))
})

var _ = apart("A rolling upgrade of the manager under load, with Fail, costs what is at work and no more", func(t *testing.T) {
	slow(t)
	i := install(t, 2)
	runs := i.upgradeUnderLoad(6, 15*time.Second)
	for _, name := range runs {
		i.settled(name, batchv1alpha1.ConditionComplete)
	}
	i.keepsPromises()
	failed, lost := 0, time.Duration(0)
	for _, name := range runs {
		failed += int(*i.get(i.get(name).Status.Chain.LatestName).Status.Attempt)
	}
	for _, l := range i.work() {
		if l.ExitCode != nil && *l.ExitCode != 0 {
			lost += l.Finished.Sub(l.Started)
		}
	}
	changes := len(i.seen.handovers())
	t.Logf("with Fail %d of %d runs were failed and tried again, over %d changes of manager; %s of work was lost", failed, len(runs), changes, lost.Round(time.Second))
	i.Expect(failed).To(And(BeNumerically(">", 0), BeNumerically("<=", changes*slots)))
})

// upgradeUnderLoad restarts the managers one by one, as an upgrade does, while every slot is taken and more runs wait. It returns
// the runs.
func (i *installation) upgradeUnderLoad(n int, sleep time.Duration) []string {
	i.t.Helper()
	i.queue("default", slots)
	var runs []string
	for n := range n {
		name := fmt.Sprintf("run-%d", n)
		runs = append(runs, name)
		i.create(i.jobRun(name, does("-sleep="+sleep.String()), retries(3)))
	}
	i.Eventually(func() int { return mostAtOnce(i.work()) }).Should(Equal(slots))
	began := time.Now()
	i.kubectl("rollout", "restart", "deployment/"+managerDeployment)
	i.rolledOut()
	i.Eventually(i.managers).Should(HaveLen(2), "the managers of before have ended")
	i.Eventually(i.leader).ShouldNot(BeEmpty())
	handovers := i.seen.handovers()
	i.Expect(handovers).NotTo(BeEmpty(), "the upgrade has changed the leader")
	i.t.Logf("the upgrade took %s; the leader changed %d times", time.Since(began).Round(time.Second), len(handovers))
	for _, h := range handovers {
		i.Expect(h.Released).To(BeTemporally(">", began), "the leader gives the lease up: %+v", h)
		i.leaderless("gave the lease up", h.Since(began), afterRelease)
	}
	return runs
}
