// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// noRunIsLost is invariant 1: a Queued run survives anything but its deletion. It is broken by
//
//   - a run that was deleted while it was Queued, by no person and not with an owner, unless it waited for a creator that had not
//     recorded it, and so was never to be executed;
//   - a run that ended as Cancelled or Skipped before it had started, although nobody asked for that;
//   - a run that was set aside as Superseded although its creator had recorded it.
//
// That one which could be admitted waits for ever is told by invariant 13.
func noRunIsLost(w *world) {
	byHand := map[types.UID]bool{}
	for _, uid := range w.Deleted {
		byHand[uid] = true
	}
	named := recorded(w)
	for _, r := range w.runs.all {
		w.checked(1)
		last := r.last()
		switch {
		case last.Status.Phase == batchv1alpha1.JobRunQueued:
			if r.gone != nil && w.seenGone(r) && !byHand[r.uid] && !w.ownerGone(last) && !(made(last) && named[r.uid] == 0) {
				w.broken(1, r.subject(), fmt.Sprintf("it was Queued, and was deleted by nobody who may (UID %s, version %d)", r.uid, r.gone.rv))
			}
		case last.Status.StartedAt == nil:
			w.setAside(r, named)
		}
	}
}

// seenGone reports whether the state at the deletion is known: a watch told it, rather than a list in which the run was missing.
func (w *world) seenGone(r *runLife) bool {
	n := len(r.states)
	return w.Complete || n == 1 || r.states[n-1].rv > r.states[n-2].rv
}

// setAside looks at a run that ended without having started.
func (w *world) setAside(r *runLife, named register) {
	last := r.last()
	end := r.when(terminalRun)
	if end == nil || halted(last) {
		return
	}
	phase := last.Status.Phase
	rv, known := named[r.uid]
	switch {
	case phase == batchv1alpha1.JobRunCancelled:
		w.broken(1, r.subject(), "it is Cancelled, and nobody asked for that")
	case phase != batchv1alpha1.JobRunSkipped:
	case known && rv < end.rv && last.Status.Reason == batchv1alpha1.ReasonSuperseded:
		w.broken(1, r.subject(), fmt.Sprintf("it was set aside as Superseded, although its creator had recorded its UID %s (version %d)", r.uid, rv))
	case !made(last) && last.Spec.RetryOf == "":
		w.broken(1, r.subject(), fmt.Sprintf("it was Skipped before it had started, for %s, although a person made it", last.Status.Reason))
	}
}

// register is which runs and groups their creators' status named, and in which version first.
type register map[types.UID]uint64

func (g register) note(uid types.UID, rv uint64) {
	if before, known := g[uid]; uid != "" && (!known || rv < before) {
		g[uid] = rv
	}
}

// recorded finds the runs and groups that their creators' status named.
func recorded(w *world) register {
	named := register{}
	each(w.runs, func(s state[*batchv1alpha1.JobRun]) {
		if record := s.object.Status.Retry; record != nil {
			named.note(record.UID, s.rv)
		}
	})
	each(w.schedules, func(s state[*batchv1alpha1.ScheduledJob]) {
		for _, a := range s.object.Status.Active {
			named.note(a.UID, s.rv)
		}
	})
	each(w.groups, func(s state[*batchv1alpha1.JobGroup]) {
		for _, m := range s.object.Status.Members {
			named.note(m.RunUID, s.rv)
		}
	})
	return named
}

func each[T client.Object](all *lives[T], f func(state[T])) {
	for _, l := range all.all {
		for _, s := range l.states {
			f(s)
		}
	}
}

func terminalRun(r *batchv1alpha1.JobRun) bool { return r.Status.Phase.Terminal() }
