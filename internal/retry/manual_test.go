// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"testing"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestManualRefusal(t *testing.T) {
	const no = batchv1alpha1.ReasonRetryRefused
	manual := manualRetry("by-hand", "root")
	for _, c := range []struct {
		name      string
		target    *batchv1alpha1.JobRun
		successor *batchv1alpha1.JobRun
		reason    string // empty: not refused
		message   string
	}{
		{
			name:   "there is no such run",
			reason: batchv1alpha1.ReasonRetryTargetNotFound, message: "there is no run root to retry",
		},
		{
			name: "a chain that failed for good", target: aRun("root", failed, maxRetries(0)),
		},
		{
			name: "a run that failed after it was asked to cancel", target: aRun("root", failed, cancelAsked),
		},
		{
			name: "the last retry failed", target: aRun("root", failed, attempt(3, "root-r2")),
		},
		{
			name:   "the run waits",
			target: aRun("root"),
			reason: no, message: "run root is Queued; only a failed run can be retried",
		},
		{
			name:   "the run is at work",
			target: aRun("root", phase(batchv1alpha1.JobRunRunning)),
			reason: no, message: "run root is Running; only a failed run can be retried",
		},
		{
			name:   "the run succeeded",
			target: aRun("root", phase(batchv1alpha1.JobRunCompleted)),
			reason: no, message: "run root is Completed; only a failed run can be retried",
		},
		{
			name:   "the automatic retry is yet to be made",
			target: aRun("root", failed),
			reason: no, message: "run root is about to be retried by root-r1; set spec.notBefore there to bring it forward",
		},
		{
			name:      "the automatic retry waits",
			target:    aRun("root", failed, retriedBy("root-r1", false)),
			successor: aRun("root-r1", attempt(1, "root")),
			reason:    no, message: "run root is to be retried by root-r1, which waits; set spec.notBefore there to bring it forward",
		},
		{
			name:      "the automatic retry is past waiting",
			target:    aRun("root", failed, retriedBy("root-r1", false)),
			successor: aRun("root-r1", attempt(1, "root"), failed),
			reason:    no, message: "run root was retried by root-r1; only the latest run of a chain can be retried",
		},
		{
			name:      "somebody else was faster",
			target:    aRun("root", failed, retriedBy("other", true)),
			successor: aRun("other", attempt(1, "root")),
			reason:    no, message: "run root was retried by other; only the latest run of a chain can be retried",
		},
		{
			name:   "the automatic retry was deleted",
			target: aRun("root", failed, retriedBy("root-r1", false)),
		},
		{
			name:      "the automatic retry was deleted and something else has its name",
			target:    aRun("root", failed, retriedBy("root-r1", false)),
			successor: aRun("root-r1", func(r *batchv1alpha1.JobRun) { r.UID = "another" }),
		},
		{
			name:      "it is on record already",
			target:    aRun("root", failed, retriedBy("by-hand", true)),
			successor: manual,
		},
		{
			name:   "it names itself",
			target: manual,
			reason: no, message: "a run cannot retry itself",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			reason, message, refused := ManualRefusal(c.target, c.successor, manual)
			if reason != c.reason || message != c.message || refused != (c.reason != "") {
				t.Errorf("got %q, %q, %t", reason, message, refused)
			}
		})
	}
}

func TestAManualRetryContinuesTheChainFromItsOwnPlace(t *testing.T) {
	target := aRun("root-r3", failed, attempt(3, "root-r2"), func(r *batchv1alpha1.JobRun) { r.Spec.Priority = ptr.To[int32](4) })
	got := ResolveManual(target, nil, manualRetry("by-hand", "root-r3"))
	if *got.Attempt != 4 || *got.Priority != 4 || got.Queue != "slow" || got.Work == nil {
		t.Errorf("got %+v", got)
	}
	c := got.Chain
	if c.RootName != "root" || c.RootUID != "uid-root" || c.IdempotencyKey != "key" {
		t.Errorf("another chain: %+v", c)
	}
	if !c.QueuedAt.Time.Equal(at(90)) || c.Sequence != 55 {
		t.Errorf("an old failure jumps the queue: %+v", c)
	}
	if !target.Spec.Chain.QueuedAt.Time.Equal(at(-60)) {
		t.Error("the target was changed")
	}
	if got := ResolveManual(tick(), nil, manualRetry("by-hand", "root")); got.ScheduledJob != "nightly" {
		t.Errorf("it comes from %q", got.ScheduledJob)
	}
}

// numbered gives the recorded retry its number.
func numbered(n int32) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Status.Retry.Attempt = &n }
}

func TestAManualRetryTakesANumberThatNoRunOfTheChainHad(t *testing.T) {
	counted := func(n int32) *batchv1alpha1.JobRun {
		return aRun("root", failed, func(r *batchv1alpha1.JobRun) { r.Status.Chain = &batchv1alpha1.ChainStatus{Attempts: n} })
	}
	for _, c := range []struct {
		name   string
		target *batchv1alpha1.JobRun
		root   *batchv1alpha1.JobRun
		want   int32
	}{
		{"of a root", aRun("root", failed), aRun("root", failed), 1},
		{"of a retry", aRun("r", failed, attempt(3, "root-r2")), counted(4), 4},
		{"of a run that has recorded it already", aRun("r", failed, attempt(3, "root-r2"), retriedBy("m", true)), counted(4), 4},
		{"of a run whose retry was deleted", aRun("r", failed, attempt(1, "root"), retriedBy("root-r2", false)), nil, 3},
		{"of a run that has recorded it with its number, whatever came since", aRun("r", failed, attempt(1, "root"), retriedBy("m", true), numbered(3)), counted(2), 3},
		{"of a run whose retry was a person's and was deleted", aRun("r", failed, attempt(1, "root"), retriedBy("other", true), numbered(3)), nil, 4},
		{"of a run after which several were deleted", aRun("r", failed, attempt(1, "root"), retriedBy("root-r2", false)), counted(6), 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := *ResolveManual(c.target, c.root, manualRetry("m", "r")).Attempt; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
