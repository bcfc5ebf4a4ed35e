// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// tales are what the Events tell of a run, whatever is done to it: each tells of one write, once.
var tales = map[string]struct {
	run    *batchv1alpha1.JobRun
	look   executor.Evidence
	stop   executor.Evidence
	change func(*Reconciler)
	told   []string
}{
	"work that succeeds": {run: queued("a", running(mine)), look: over(batchv1alpha1.JobRunCompleted, true), told: []string{
		"a: Normal Completed Complete: Proven: by the work",
	}},
	"work that fails is retried": {run: queued("a", running(mine)), look: over(batchv1alpha1.JobRunFailed, true), told: []string{
		"a: Warning Failed Fail: Proven: by the work; retry 1 follows at 2026-11-20T12:00:10Z",
		"a: Normal RetryCreated Retry: retry 1 is run a-r1, not before 2026-11-20T12:00:10Z",
	}},
	"work that fails for good": {run: queued("a", running(mine), maxRetries(0)), look: over(batchv1alpha1.JobRunFailed, true), told: []string{
		"a: Warning Failed Fail: Proven: by the work; the chain has failed for good",
	}},
	"work that had nothing to do": {run: queued("a", running(mine)), look: over(batchv1alpha1.JobRunSkipped, true), told: []string{
		"a: Normal Skipped Skip: Proven: by the work",
	}},
	"a run that is cancelled before it began": {run: queued("a", cancelled), told: []string{
		"a: Normal Cancelled Cancel: cancelled by request; the run had not started",
	}},
	"a run that is cancelled at work": {run: queued("a", cancelled, running(mine)), look: alive, stop: unknownOver, told: []string{
		"a: Normal Cancelling Stop: cancelled by request; its work is being stopped",
		"a: Normal Cancelled Cancel: cancelled by request",
	}},
	"an orphan that is retried": {run: queued("a", running(before)), look: alive, stop: unknownOver, told: []string{
		"a: Warning Failed Fail: CrashRecovery: Scheduler crash recovery: run was Running when previous instance manager of " + before + " stopped; retry 1 follows at 2026-11-20T12:00:10Z",
		"a: Normal RetryCreated Retry: retry 1 is run a-r1, not before 2026-11-20T12:00:10Z",
	}},
	"an orphan that is adopted": {run: queued("a", running(before), recovering(batchv1alpha1.RecoveryAdopt)), look: alive, told: []string{
		"a: Normal Adopted Recover: its manager ended, and this one looks after the work, which goes on",
	}},
	"an orphan whose work had ended": {run: queued("a", running(before)), look: over(batchv1alpha1.JobRunCompleted, true), told: []string{
		"a: Normal Completed Complete: Proven: by the work",
		"a: Normal Recovered Recover: its manager ended; the outcome of the work is recorded by this one",
	}},
	"an orphan that is to be left alone": {
		run: queued("a", running(before)), look: alive, change: func(r *Reconciler) { r.Defaults.KeepOrphans = true },
		told: []string{"a: Warning Orphaned Leave: Scheduler crash recovery: run was Running when previous instance manager of " + before +
			" stopped; it is left as it is (--cleanup-stale-on-startup=false) and keeps its slot"},
	},
	"a run whose queue does not exist": {run: queued("a", in("nowhere")), told: []string{
		"a: Warning QueueNotFound Hold: JobQueue nowhere does not exist in namespace ns; the run waits for it",
	}},
	"a retry of what has not failed": {run: queued("a", retrying("b")), told: []string{
		"a: Warning RetryRefused Skip: run b is Queued; only a failed run can be retried",
	}},
}

func TestEventsTellTheStoryOfARunOnce(t *testing.T) {
	for name, c := range tales {
		t.Run(name, func(t *testing.T) {
			b := start(t, queue("main"), queued("b"), c.run.DeepCopy())
			b.work.look, b.work.stop = c.look, c.stop
			if c.change != nil {
				c.change(b.r)
			}
			for range 6 {
				b.step("a")
			}
			NewWithT(t).Expect(b.events).To(Equal(c.told))
		})
	}
}

func TestNoEventTellsOfWhatIsNotKnownToBeOnRecordAndNoneIsToldTwice(t *testing.T) {
	for name, c := range tales {
		for _, carriedOut := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				b := start(t, queue("main"), queued("b"), c.run.DeepCopy())
				b.work.look, b.work.stop = c.look, c.stop
				if c.change != nil {
					c.change(b.r)
				}
				b.failOnce(1, carriedOut)
				_, err := b.reconcile("a")
				g.Expect(err).To(MatchError(errAway))
				g.Expect(b.events).To(BeEmpty())
				for range 6 {
					b.step("a")
				}
				want := c.told
				if carriedOut {
					// The one whose write was not answered is lost, with what else was to be told of that write; nothing is told late.
					want = want[len(want)-len(b.events):]
				}
				g.Expect(append([]string{}, b.events...)).To(Equal(append([]string{}, want...)))
				g.Expect(len(b.events) < len(c.told)).To(Equal(carriedOut))
			})
		}
	}
}

func TestAnEventOnARetryNamesBoth(t *testing.T) {
	g := NewWithT(t)
	b := start(t, queue("main"), queued("a", failed(true)))
	var related client.Object
	b.r.Recorder = recorderFunc(func(_, o client.Object) { related = o })
	b.step("a")
	g.Expect(related.GetName()).To(Equal("a-r1"))
	g.Expect(related.GetUID()).To(Equal(b.run("a").Status.Retry.UID))
	g.Expect(run.Attempt(b.run("a-r1"))).To(BeEquivalentTo(1))
}

// recorderFunc is a Recorder that looks at the objects alone.
type recorderFunc func(regarding, related client.Object)

// Eventf implements events.Recorder.
func (f recorderFunc) Eventf(regarding, related runtime.Object, _, _, _, _ string, _ ...any) {
	on, _ := regarding.(client.Object)
	with, _ := related.(client.Object)
	f(on, with)
}
