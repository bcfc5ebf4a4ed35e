// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
)

// Runs that a user cancels, while they wait and while they are at work.

func cancelScenarios() []scenario {
	untilCancelled := func(h *history) template { return h.pods(fakekubelet.RunsUntilFinished, "0") }
	return slices.Concat(
		scenario{
			name:  "cancel-queued",
			drive: cancelQueued(func(h *history) template { return h.holds("gate") }, func(h *history) { h.log.openGate("gate") }),
			expect: func(_ *history, v view) (wrong []string) {
				for _, name := range abc {
					if chain := v.chain(name); len(chain) != 1 || chain[0].Status.Phase != batchv1alpha1.JobRunCancelled || chain[0].Status.StartedAt != nil {
						wrong = append(wrong, fmt.Sprintf("run %s, which waited, is %s", name, chain[0].Status.Phase))
					}
				}
				return wrong
			},
		}.at(1, 2),
		scenario{
			name: "cancel-http", drive: cancelRunning(func(h *history) template { return h.holds("never") }), expect: cancelled,
		}.at(1, 2),
		scenario{
			name: "cancel-job", fast: true, drive: cancelRunning(untilCancelled), expect: cancelled,
		}.at(1, 2),
	)
}

// cancelQueued cancels three runs that wait behind others.
func cancelQueued(work func(*history) template, end func(*history)) func(*history) {
	return func(h *history) {
		h.create(h.queue())
		var first []string
		for i := range h.limit {
			name := fmt.Sprint("first-", i)
			h.create(run1(name, work(h)))
			first = append(first, name)
			h.atWork(name)
		}
		h.create(three(work(h))...)
		for _, name := range abc {
			h.cancelRun(name)
		}
		h.told(abc...)
		end(h)
		h.told(first...)
	}
}

// cancelRunning cancels three runs, each once it is at work.
func cancelRunning(work func(*history) template) func(*history) {
	return func(h *history) {
		h.create(h.queue())
		h.create(three(work(h))...)
		for _, name := range abc {
			h.atWork(name)
			h.cancelChain(name)
		}
	}
}

// cancelled expects that the latest run of each chain was cancelled, or ended by a restart in the meantime. A retry that was
// made and not yet recorded when the user cancelled the run before it is superseded.
func cancelled(_ *history, v view) (wrong []string) {
	for _, name := range abc {
		chain := v.chain(name)
		last := chain[len(chain)-1]
		if last.Status.Reason == batchv1alpha1.ReasonSuperseded && len(chain) > 1 {
			last = chain[len(chain)-2]
		}
		if last.Status.Phase != batchv1alpha1.JobRunCancelled && last.Status.Reason != batchv1alpha1.ReasonCrashRecovery {
			wrong = append(wrong, fmt.Sprintf("run %s is %s %s, not cancelled", last.Name, last.Status.Phase, last.Status.Reason))
		}
	}
	return wrong
}
