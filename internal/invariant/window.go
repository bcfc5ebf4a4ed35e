// SPDX-License-Identifier: Apache-2.0

package invariant

import "time"

// resumption is how long after a pause a process may take to notice that its lease is over: its timers are due at once, but a busy
// machine has to run them, and what it had begun to send still goes out.
const resumption = 2 * time.Second

// outdated reports whether the work is of the one documented kind that nothing can stop at that time: a call, or a request of
// direct access, of a process that was paused between its look at the lease and the end of its call. This is what counts:
//
//   - The process stood still for at least a lease duration. For less it keeps its lease, or another leader waits for that long
//     after the deadline of its call.
//   - The deadline of the call, the lease duration and the allowance for clocks have passed: for so long its slot is held.
//   - The time lies in the pause, or so shortly after it that the process could not yet act on what it has missed.
//
// That the two belong to different processes is for the caller to see to.
func (w *world) outdated(e *execution, at time.Time) bool {
	m := w.managers[e.Manager]
	if m == nil || e.Work == Pod || w.heldStill(e, at) {
		return false
	}
	for _, p := range m.Paused {
		to := p.To
		if to.IsZero() {
			to = later(w.Until, at)
		}
		if to.Sub(p.From) >= w.LeaseDuration && !at.Before(p.From) && !at.After(to.Add(resumption+w.Notice)) {
			return true
		}
	}
	return false
}

// clocks is what is allowed for clocks that differ, where a slot is freed by time.
const clocks = 5 * time.Second

// heldStill reports whether the time has not come at which the slot of a call is freed though its process may live.
func (w *world) heldStill(e *execution, at time.Time) bool {
	if e.Work != Call || e.run == nil {
		return false
	}
	for _, s := range e.run.states {
		if d := s.object.Status.Deadline; d != nil && at.Before(d.Add(w.LeaseDuration+clocks)) {
			return true
		}
	}
	return false
}

// excused reports whether the overlap of two, which began at that time, lies in the window.
func (w *world) excused(a, b *execution, at time.Time) bool {
	if a.Manager == b.Manager {
		return false
	}
	return w.outdated(a, at) || w.outdated(b, at)
}
