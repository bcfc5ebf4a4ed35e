// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
)

// Runs of each kind of work: what goes well, fails and is retried, is given up, is retried by hand.

func runScenarios() []scenario {
	return slices.Concat(
		scenario{
			name: "http", pairs: true, fast: true,
			drive:  threeRuns(func(h *history) template { return h.calls(0) }),
			expect: endsAs(batchv1alpha1.ConditionComplete),
		}.at(1, 2),
		scenario{
			name: "job", pairs: true,
			drive:  threeRuns(func(h *history) template { return h.pods(fakekubelet.RunsImmediately, "0") }),
			expect: endsAs(batchv1alpha1.ConditionComplete),
		}.at(1, 2),
		scenario{
			name:  "job-adopted",
			drive: threeRuns(func(h *history) template { return h.pods("1s", "0", adopting, retried(0)) }),
			expect: func(h *history, v view) []string {
				// What was alive is taken over, and what had not begun is failed: nothing ran in vain.
				return endsAs(batchv1alpha1.ConditionComplete, batchv1alpha1.ConditionFailed)(h, v)
			},
		}.at(1, 2),
		scenario{
			name: "retry-http", pairs: true, fast: true,
			drive:  threeRuns(func(h *history) template { return h.calls(1) }),
			expect: endsAs(batchv1alpha1.ConditionComplete),
		}.at(1, 2),
		scenario{
			name: "retry-job",
			drive: func(h *history) {
				h.create(h.queue())
				h.create(three(h.pods(fakekubelet.RunsUntilFinished, ""))...)
				h.finishPods(func(attempt int32) int32 { return max(0, 1-attempt) }, abc...)
			},
			expect: endsAs(batchv1alpha1.ConditionComplete),
		}.at(1, 2),
		scenario{
			name:   "exhausted-http",
			drive:  threeRuns(func(h *history) template { return h.calls(9, retried(1)) }),
			expect: endsAs(batchv1alpha1.ConditionFailed),
		}.at(1, 2),
		scenario{
			name:   "exhausted-job",
			drive:  threeRuns(func(h *history) template { return h.pods(fakekubelet.RunsImmediately, "3", retried(1)) }),
			expect: endsAs(batchv1alpha1.ConditionFailed),
		}.at(1, 2),
		scenario{
			name: "manual-retry",
			drive: func(h *history) {
				threeRuns(func(h *history) template { return h.calls(1, retried(0)) })(h)
				for _, name := range abc {
					again := &batchv1alpha1.JobRun{ObjectMeta: called(name + "-again")}
					again.Spec.RetryOf = name
					h.create(again)
				}
				h.await("the retries by hand end", func(v view) bool {
					return !slices.ContainsFunc(abc, func(name string) bool { return !v.phase(name + "-again").Terminal() })
				})
			},
			expect: func(_ *history, v view) (wrong []string) {
				for _, name := range abc {
					// A retry by hand that a restart has failed is left to a person, like the first failure.
					want := batchv1alpha1.ConditionComplete
					if v.run(name+"-again").Status.Reason == batchv1alpha1.ReasonCrashRecovery {
						want = batchv1alpha1.ConditionFailed
					}
					if told := v.told(name); told != want || len(v.chain(name)) != 2 {
						wrong = append(wrong, fmt.Sprintf("chain %s of %d runs is %s, not %s of 2", name, len(v.chain(name)), told, want))
					}
				}
				return wrong
			},
		}.at(1, 2),
	)
}

// threeRuns has three runs of that work come to their ends.
func threeRuns(work func(*history) template) func(*history) {
	return func(h *history) {
		h.create(h.queue())
		h.create(three(work(h))...)
		h.told(abc...)
	}
}

// endsAs expects that the chains of a, b and c end in one of these ways.
func endsAs(conditions ...string) func(*history, view) []string {
	return func(_ *history, v view) (wrong []string) {
		for _, name := range abc {
			if told := v.told(name); !slices.Contains(conditions, told) {
				wrong = append(wrong, fmt.Sprintf("chain %s is %q, not one of %q", name, told, conditions))
			}
		}
		return wrong
	}
}

// finishPods ends each pod that comes to run, with the code for its attempt, until these chains have told their ends.
func (h *history) finishPods(code func(attempt int32) int32, roots ...string) {
	finished := map[string]bool{}
	for {
		var next *corev1.Pod
		h.await("a pod runs, or all chains have told their ends", func(v view) bool {
			for _, p := range every[*corev1.Pod](v) {
				if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && !finished[p.Name] {
					next = p
					return true
				}
			}
			next = nil
			return !slices.ContainsFunc(roots, func(root string) bool { return v.told(root) == "" })
		})
		if next == nil {
			return
		}
		finished[next.Name] = true
		attempt := int32(0)
		if r := h.now().run(next.Labels[batchv1alpha1.LabelRun]); r != nil && r.Spec.Attempt != 0 {
			attempt = r.Spec.Attempt
		}
		// The manager may have stopped it at this moment.
		_ = kubelet.Finish(h.ctx, client.ObjectKeyFromObject(next), code(attempt))
	}
}
