// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// afterDeath bounds how long nobody leads when a leader is gone without a word.
	afterDeath = leaseDuration + 5*time.Second
	// afterRelease bounds it when the leader has ended in good order.
	afterRelease = 2 * time.Second
	// outlasts is how long work goes on that is still alive when another manager leads.
	outlasts = afterDeath + 5*time.Second
	// slots is the limit of the queue.
	slots = 3
)

var _ = apart("Two managers, the leader is killed", func(t *testing.T) {
	i := install(t, 2)
	i.load(outlasts)
	old, holder := i.leading(), i.seen.leader().Holder
	killed := i.kill(old) // and started again in its pod: whichever is first leads
	h := i.succeeded(holder)
	i.leaderless("was killed", h.Since(killed), afterDeath)
	i.loadEnds()
})

var _ = apart("Two managers, the leader is ended in good order", func(t *testing.T) {
	i := install(t, 2)
	i.load(10 * time.Second)
	old, holder := i.leading(), i.seen.leader().Holder
	asked := time.Now()
	i.kubectl("delete", "pod", old.PodName, "--wait=false")
	h := i.succeeded(holder)
	i.Expect(h.Released).To(BeTemporally(">", asked), "the leader gives the lease up")
	t.Logf("the leader gave the lease up %s after it was asked to end", h.Released.Sub(asked).Round(time.Millisecond))
	i.leaderless("gave the lease up", h.Since(asked), afterRelease)
	i.Expect(i.ended(old).ExitCode).To(HaveValue(BeZero()))
	i.loadEnds()
})

var _ = apart("Two managers, the leader stands still until another one leads, and then goes on", func(t *testing.T) {
	i := install(t, 2)
	i.load(outlasts)
	old, holder := i.leading(), i.seen.leader().Holder
	stopped := i.signal(old, syscall.SIGSTOP)
	h := i.succeeded(holder)
	i.leaderless("stood still", h.Since(stopped), afterDeath)
	woken := i.signal(old, syscall.SIGCONT)
	old = i.ended(old)
	i.Expect(old.ExitCode).To(HaveValue(Equal(1)), "a leader that was deposed ends itself")
	t.Logf("the deposed leader ended itself %s after it went on", old.Finished.Sub(woken).Round(time.Millisecond))
	i.loadEnds()
})

var _ = apart("Two managers, the leader is cut off from the network", func(t *testing.T) {
	i := install(t, 2)
	i.load(outlasts)
	old, holder := i.leading(), i.seen.leader().Holder
	cut := time.Now()
	i.Expect(i.node.CutPod(i.ctx, old.PodUID)).To(Succeed())
	h := i.succeeded(holder)
	i.leaderless("was cut off", h.Since(cut), afterDeath)
	old = i.ended(old)
	i.Expect(old.ExitCode).To(HaveValue(Equal(1)), "a leader that cannot renew its lease ends itself")
	i.Expect(old.Finished).To(BeTemporally("<", h.Taken), "and does so before another one leads")
	t.Logf("the leader that was cut off ended itself after %s", old.Finished.Sub(cut).Round(10*time.Millisecond))
	i.Expect(i.node.RestorePod(i.ctx, old.PodUID)).To(Succeed())
	i.loadEnds()
})

// leaderless checks how long nobody led.
func (i *installation) leaderless(since string, took, bound time.Duration) {
	i.t.Helper()
	i.t.Logf("another manager led %s after the leader %s (at most %s)", took.Round(10*time.Millisecond), since, bound)
	i.Expect(took).To(BeNumerically("<=", bound))
}

// load is more than the queue can take at once: work that ends while nobody leads, and work that goes on for so long, to be adopted
// or to be stopped. It returns when every slot is taken.
func (i *installation) load(long time.Duration) {
	i.t.Helper()
	i.queue("default", slots)
	for n, sleep := range []time.Duration{long, 4 * time.Second} {
		i.create(
			i.jobRun(fmt.Sprintf("short-%d", n), does("-sleep=3s"), retries(3), recovered(batchv1alpha1.RecoveryFail)),
			i.jobRun(fmt.Sprintf("adopted-%d", n), does("-sleep="+sleep.String()), retries(3), recovered(batchv1alpha1.RecoveryAdopt)),
			i.jobRun(fmt.Sprintf("stopped-%d", n), does("-sleep="+sleep.String(), "-on-term=2s"), grace(10), retries(3), recovered(batchv1alpha1.RecoveryFail)),
		)
	}
	i.Eventually(func() int { return mostAtOnce(i.work()) }).Should(Equal(slots))
	i.atWork("adopted-0")
	i.atWork("stopped-0")
}

// work are the containers of runs.
func (i *installation) work() []life {
	return slices.DeleteFunc(i.lives(), func(l life) bool { return l.Run == "" })
}

// loadEnds waits until all of the load has come to a good end, and checks that no promise was broken meanwhile.
func (i *installation) loadEnds() {
	i.t.Helper()
	for n := range 2 {
		for _, kind := range []string{"short", "adopted", "stopped"} {
			i.settled(fmt.Sprintf("%s-%d", kind, n), batchv1alpha1.ConditionComplete)
		}
	}
	i.keepsPromises()
	i.Expect(mostAtOnce(i.work())).To(Equal(slots), "containers at once")
	for n := range 2 {
		i.Expect(i.ofRun(fmt.Sprintf("adopted-%d", n))).To(HaveLen(1), "what is adopted is not begun again")
	}
}
