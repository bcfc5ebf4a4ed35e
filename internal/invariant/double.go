// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// noDoubleExecution is invariant 3: nothing returns to Queued, and the work of two runs of a chain never overlaps. It is broken
//
//   - by the records: a phase that goes back; a claim or, for a call, a process that changes; a slot that is held again; two
//     runs of a chain that hold slots at once;
//   - by the independent log: work of two runs of a chain at once; a run that was begun twice; work without a claim; and work that
//     began after its slot was seen free.
func noDoubleExecution(w *world) {
	for _, r := range w.runs.all {
		w.checked(3)
		w.forward(r)
	}
	w.oneSlotAChain()
	w.chainsDoNotMeet()
	w.begunOnce()
	w.begunByClaim()
}

var rank = map[batchv1alpha1.JobRunPhase]int{
	batchv1alpha1.JobRunQueued: 0, batchv1alpha1.JobRunRunning: 1, batchv1alpha1.JobRunCancelling: 2,
	batchv1alpha1.JobRunCompleted: 3, batchv1alpha1.JobRunFailed: 3, batchv1alpha1.JobRunSkipped: 3, batchv1alpha1.JobRunCancelled: 3,
}

// forward looks at the versions of one run. That a terminal phase changes is told by invariant 10.
func (w *world) forward(r *runLife) {
	for i := 1; i < len(r.states); i++ {
		before, now := r.states[i-1].object, r.states[i].object
		was, is := before.Status, now.Status
		say := func(format string, args ...any) {
			w.broken(3, r.subject(), fmt.Sprintf("version %d: ", r.states[i].rv)+fmt.Sprintf(format, args...))
		}
		switch {
		case rank[is.Phase] < rank[was.Phase]:
			say("it was %s and is %s", was.Phase, is.Phase)
		case was.Slot == batchv1alpha1.SlotFree && is.Slot != batchv1alpha1.SlotFree:
			say("its slot was free and is %q", is.Slot)
		case was.StartedAt != nil && !was.StartedAt.Equal(is.StartedAt):
			say("it was claimed at %s, and again at %s", was.StartedAt.UTC(), is.StartedAt)
		case was.Phase.InProgress() && is.Phase.InProgress() && isHTTP(now) && was.Incarnation != nil && !sameProcess(was.Incarnation, is.Incarnation):
			say("its call was that of %s, and is that of %v", was.Incarnation.ID, ptr.Deref(is.Incarnation, batchv1alpha1.Incarnation{}).ID)
		}
	}
}

func sameProcess(a, b *batchv1alpha1.Incarnation) bool {
	return b != nil && a.ID == b.ID && a.Epoch == b.Epoch
}

// oneSlotAChain looks at the records: no two runs of a chain hold slots at once.
func (w *world) oneSlotAChain() {
	byChain := map[string][]*holder{}
	for _, h := range w.holders() {
		if h.run != nil {
			key := h.queue.Namespace + "/" + string(rootOf(h.run.last()))
			byChain[key] = append(byChain[key], h)
		}
	}
	for _, holders := range byChain {
		slices.SortFunc(holders, func(a, b *holder) int { return cmp.Compare(a.from, b.from) })
		for i, b := range holders {
			for _, a := range holders[:i] {
				w.checked(3)
				if b.from < a.to {
					w.broken(3, b.subject, fmt.Sprintf("it was given a slot (version %d) while %s of the same chain held one (versions %d to %d)", b.from, a.subject, a.from, a.to))
				}
			}
		}
	}
}

// chainsDoNotMeet looks at the log: no two runs of a chain are at work at once, and one run not twice.
func (w *world) chainsDoNotMeet() {
	byChain := map[string][]*execution{}
	for _, e := range w.work {
		if e.chain != "" {
			byChain[e.chain] = append(byChain[e.chain], e)
		}
	}
	for _, all := range byChain {
		for i, b := range all {
			for _, a := range all[:i] {
				w.checked(3)
				if a.meets(b) && !(a.Work == Pod && b.Work == Pod && a.entity() == b.entity() && severalPods(a.run)) {
					w.overlap(a, b)
				}
			}
		}
	}
}

func (w *world) overlap(a, b *execution) {
	if w.excused(a, b, b.At) {
		w.report.HTTPWindow++
		return
	}
	w.broken(3, b.subject(), fmt.Sprintf("attempt %d of chain %s began at %s%s, while attempt %d (%s%s, %s to %s) was at work",
		b.Attempt, b.chain, clock(b.At), by(b), a.Attempt, a.subject(), by(a), clock(a.At), clock(a.certain)))
}

// begunOnce looks at the log: what one run executes is begun once, by one call or one pod.
func (w *world) begunOnce() {
	first := map[string]*execution{}
	for _, e := range w.work {
		if e.Work == Direct || (e.UID == "" && e.chain == "") || (e.Work == Pod && severalPods(e.run)) {
			continue
		}
		w.checked(3)
		key := e.entity()
		before := first[key]
		if before == nil {
			first[key] = e
			continue
		}
		if before.Execution != e.Execution {
			w.broken(3, e.subject(), fmt.Sprintf("attempt %d was begun at %s%s, and again at %s%s", e.Attempt, clock(before.At), by(before), clock(e.At), by(e)))
		}
	}
}

// severalPods reports whether the Job of the run may have several pods, or one after another, by its own template.
func severalPods(r *runLife) bool {
	if r == nil {
		return true // not known
	}
	t := template(r.last())
	if t == nil || t.Work == nil || t.Work.Job == nil {
		return true
	}
	spec := t.Work.Job.Template.Spec
	return ptr.Deref(spec.Parallelism, 1) != 1 || ptr.Deref(spec.Completions, 1) != 1 || spec.PodFailurePolicy != nil
}

// begunByClaim looks at both: work begins only under a claim, and not once its slot is free.
func (w *world) begunByClaim() {
	for _, e := range w.work {
		if e.run == nil || e.late {
			continue
		}
		w.checked(3)
		if w.Complete && e.run.when(claimed) == nil {
			w.broken(3, e.subject(), fmt.Sprintf("its work began at %s%s, and it was never claimed", clock(e.At), by(e)))
			continue
		}
		free := e.run.when(isFree)
		if free == nil || !free.at.Before(e.At) {
			continue
		}
		if w.outdated(e, e.At) {
			w.report.HTTPWindow++
			continue
		}
		w.broken(3, e.subject(), fmt.Sprintf("its work began at %s%s, after its slot was seen free at %s", clock(e.At), by(e), clock(free.at)))
	}
}

// by names the process of a call.
func by(e *execution) string {
	if e.Manager == "" {
		return ""
	}
	return " by " + e.Manager
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
