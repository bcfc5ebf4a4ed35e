// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// chains returns the trees of all chains of the runs, in the order of their first runs. A retry by hand that was refused, or is
// yet to be looked at, hangs from the chain of the run that it names.
func chains(runs []batchv1alpha1.JobRun, now time.Time) []Node {
	all := history.Chains(runs)
	named := map[string]int{}
	for i, c := range all {
		for _, r := range c.Runs {
			if !stray(c) {
				named[r.Name] = i
			}
		}
	}
	strays := map[int][]*batchv1alpha1.JobRun{}
	var nodes []Node
	for _, c := range all {
		if i, known := named[c.Runs[0].Spec.RetryOf]; stray(c) && known {
			strays[i] = append(strays[i], c.Runs[0])
		}
	}
	for i, c := range all {
		if _, known := named[c.Runs[0].Spec.RetryOf]; stray(c) && known {
			continue
		}
		nodes = append(nodes, chainNode(c, strays[i], now))
	}
	return nodes
}

// stray reports whether a chain is a single run that names another run and has not become part of its chain.
func stray(c history.Chain) bool {
	return len(c.Runs) == 1 && c.Root != nil && !run.IsRoot(c.Root)
}

// entry is a line of a chain with its place: its attempt, and among those of the same attempt its name.
type entry struct {
	attempt int32
	node    Node
}

// chainNode returns the tree of one chain: its first run with the retries hanging from it.
func chainNode(c history.Chain, strays []*batchv1alpha1.JobRun, now time.Time) Node {
	var entries []entry
	there := map[types.UID]bool{}
	for _, r := range c.Runs {
		there[r.UID] = true
		if r != c.Root {
			entries = append(entries, entry{run.Attempt(r), runNode(r, now)})
		}
	}
	for _, r := range c.Runs {
		entries = append(entries, next(r, there, now)...)
	}
	for _, r := range strays {
		n := runNode(r, now)
		n.Message = sentence(n.Message, "a retry of "+r.Spec.RetryOf+" by hand")
		entries = append(entries, entry{attemptAfter(c, r.Spec.RetryOf), n})
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.node.Name, b.node.Name))
	})
	root := Node{Kind: kindJobRun, Name: run.Chain(c.Runs[0]).RootName, Phase: phaseDeleted}
	if c.Root != nil {
		root = runNode(c.Root, now)
	}
	for _, e := range entries {
		root.Children = append(root.Children, e.node)
	}
	return root
}

// next returns what follows a run that is not among the runs: a retry that was deleted, or one that is yet to be made.
func next(r *batchv1alpha1.JobRun, there map[types.UID]bool, now time.Time) []entry {
	if record := r.Status.Retry; record != nil {
		if there[record.UID] {
			return nil
		}
		return []entry{{run.Attempt(r) + 1, Node{Kind: kindJobRun, Name: record.Name, Phase: phaseDeleted, Message: "the record of it is on " + r.Name}}}
	}
	d := retry.Decide(r)
	if !d.Due {
		return nil
	}
	return []entry{{run.Attempt(r) + 1, Node{
		Kind: kindJobRun, Name: retry.ChildName(r, 0), Phase: phaseDue, Time: text.Until(d.NotBefore, now), Message: "the manager makes it next",
	}}}
}

func attemptAfter(c history.Chain, name string) int32 {
	for _, r := range c.Runs {
		if r.Name == name {
			return run.Attempt(r) + 1
		}
	}
	return 0
}

// runNode returns the line of one run.
func runNode(r *batchv1alpha1.JobRun, now time.Time) Node {
	s := r.Status
	n := Node{
		Kind: kindJobRun, Name: r.Name, Phase: string(s.Phase), Reason: s.Reason, Message: s.Message,
		Since: s.StartedAt, FinishedAt: s.FinishedAt, Time: took(s.StartedAt, s.FinishedAt, now),
	}
	if s.Phase == batchv1alpha1.JobRunQueued {
		n.waits(r, now)
	}
	if s.Phase.Terminal() && run.HoldsSlot(r) {
		n.Message = sentence(n.Message, "its work is still being stopped")
	}
	n.Message = sentence(n.Message, final(r))
	return n
}

// final tells why a failed run without a retry gets none.
func final(r *batchv1alpha1.JobRun) string {
	switch retry.Decide(r).Reason {
	case retry.Exhausted:
		return fmt.Sprintf("no retry follows: all %d are used up", retry.PolicyOf(r).MaxRetries)
	case retry.Disabled:
		return "no retry follows: maxRetries is 0"
	case retry.CancelAsked:
		return "no retry follows: it was asked to end"
	default:
		return ""
	}
}

// waits tells of a run that waits since when it does, and what keeps it from its queue.
func (n *Node) waits(r *batchv1alpha1.JobRun, now time.Time) {
	queued := run.Chain(r).QueuedAt
	if !run.IsRoot(r) {
		queued = r.CreationTimestamp
	}
	n.Since, n.Time = &queued, "waits "+text.For(now.Sub(queued.Time))
	if t := r.Spec.NotBefore; t != nil && t.After(now) {
		n.Reason, n.Message = admission.CodeBackOff, "it may start "+text.Until(t.Time, now)
	}
	for _, c := range r.Status.Conditions {
		if c.Type == batchv1alpha1.ConditionStalled && c.Status == metav1.ConditionTrue {
			n.Reason, n.Message = c.Reason, c.Message
		}
	}
	if r.Spec.Cancel {
		n.Message = sentence(n.Message, "to be cancelled")
	}
}
