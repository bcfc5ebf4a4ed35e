// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

func TestDecide(t *testing.T) {
	none := func(r Reason) Decision { return Decision{Reason: r} }
	due := func(seconds int) Decision { return Decision{Due: true, NotBefore: at(seconds)} }
	for _, c := range []struct {
		name string
		run  *batchv1alpha1.JobRun
		want Decision
	}{
		{"a failed root is retried 10 s after its end", aRun("root", failed), due(15)},
		{"a failed first retry is retried after 20 s", aRun("root-r1", failed, attempt(1, "root")), due(25)},
		{"a failed second retry is retried after 40 s", aRun("root-r2", failed, attempt(2, "root-r1")), due(45)},
		{"a failed third retry is the last", aRun("root-r3", failed, attempt(3, "root-r2")), none(Exhausted)},
		{"a run failed by a restart is retried", aRun("root", failed, because(batchv1alpha1.ReasonCrashRecovery)), due(15)},
		{"a manual retry that fails uses what is left of the budget", aRun("by-hand", failed, attempt(2, "root-r1")), due(45)},
		{"a manual retry after the last that fails is left to a person", aRun("by-hand", failed, attempt(4, "root-r3")), none(Exhausted)},
		{"no retries are wanted", aRun("root", failed, maxRetries(0)), none(Disabled)},
		{"cancelling was asked for", aRun("root", failed, cancelAsked), none(CancelAsked)},
		{"the retry is on record", aRun("root", failed, retriedBy("root-r1", false)), none(Recorded)},
		{"a Queued run has not failed", aRun("root"), none(NotFailed)},
		{"a Running run has not failed", aRun("root", phase(batchv1alpha1.JobRunRunning)), none(NotFailed)},
		{"a Completed run has not failed", aRun("root", phase(batchv1alpha1.JobRunCompleted)), none(NotFailed)},
		{"a Skipped run has not failed", aRun("root", phase(batchv1alpha1.JobRunSkipped)), none(NotFailed)},
		{"a Cancelled run has not failed", aRun("root", phase(batchv1alpha1.JobRunCancelled)), none(NotFailed)},
		{"a run whose end is not on record is retried without delay", aRun("root", phase(batchv1alpha1.JobRunFailed)), Decision{Due: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Decide(c.run); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheDelayCountsInWholeSecondsSinceNoMoreIsStored(t *testing.T) {
	r := aRun("root", failed)
	r.Status.FinishedAt = ptr.To(metav1.NewTime(at(5).Add(900 * time.Millisecond)))
	if got := Decide(r).NotBefore; !got.Equal(at(15)) {
		t.Errorf("got %s", got)
	}
}

func TestAChainNeverHasMoreAutomaticRetriesThanItsBudgetHoweverPeopleRetryInBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.Int32Range(0, 5).Draw(t, "maxRetries")
		root := aRun("root", failed, maxRetries(budget))
		latest, automatic, seen := root, int32(0), map[string]bool{"root": true}
		for i := range rapid.IntRange(1, 12).Draw(t, "failures") {
			deleted := rapid.IntRange(0, 3).Draw(t, "deleted") == 0
			next := nextRun(t, latest, root, deleted)
			if next.Spec.Attempt != 0 {
				automatic++
			}
			if seen[next.Name] || run.Attempt(next) <= run.Attempt(latest) {
				t.Fatalf("%s, attempt %d, after %s, attempt %d", next.Name, run.Attempt(next), latest.Name, run.Attempt(latest))
			}
			seen[next.Name] = true
			next.UID = types.UID(rapid.StringMatching("[a-z]{9}").Draw(t, "uid")) + types.UID(rune('0'+i))
			latest.Status.Retry = &batchv1alpha1.RetryRecord{Name: next.Name, UID: next.UID}
			failed(next)
			latest = next
			Tell(root, []batchv1alpha1.JobRun{*root, *latest}, noon)
		}
		if automatic > budget {
			t.Fatalf("%d automatic retries of %d", automatic, budget)
		}
	})
}

// nextRun is the automatic retry of the latest run, or else a manual one: after the failure, or after a retry was deleted.
func nextRun(t *rapid.T, latest, root *batchv1alpha1.JobRun, deleted bool) *batchv1alpha1.JobRun {
	if Decide(latest).Due && !deleted {
		return Child(latest, root, 0)
	}
	if Decide(latest).Due {
		retriedBy(ChildName(latest, 0), false)(latest)
	}
	manual := manualRetry("by-hand-"+latest.Name, latest.Name)
	if _, message, refused := ManualRefusal(latest, nil, manual); refused {
		t.Fatalf("a manual retry is always possible: %s", message)
	}
	manual.Status.ResolvedSpec = ResolveManual(latest, root, manual)
	return manual
}
