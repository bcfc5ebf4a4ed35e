// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// noLostRetry is invariant 5: no lost retry, no second child per failure, never more than maxRetries automatic ones. It is broken
// by
//
//   - two automatic retries of one failed run that were both executed, by the records or by the log. A second one that was
//     made late, and never executed, is harmless;
//   - a failed run whose record of its retry changes;
//   - an automatic retry that was executed beyond maxRetries, or of a run that was no failure or was asked to end before it failed;
//   - at the end, a failed run that is to be retried and has no retry on record; and a recorded retry that never was.
func noLostRetry(w *world) {
	children := w.automaticRetries()
	for _, f := range w.runs.all {
		if f.when(failed) != nil {
			w.checked(5)
			w.oneChild(f, children[f.uid])
			w.oneRecord(f)
			w.retried(f)
		}
	}
	for _, r := range w.runs.all {
		w.allowed(r)
	}
}

func failed(r *batchv1alpha1.JobRun) bool { return r.Status.Phase == batchv1alpha1.JobRunFailed }

// automaticRetries finds the automatic retries of each failed run. Namesakes of a run have other chains, or attempts.
func (w *world) automaticRetries() map[types.UID][]*runLife {
	children := map[types.UID][]*runLife{}
	for _, r := range w.runs.all {
		last := r.last()
		if !automatic(last) {
			continue
		}
		if f := w.parentOf(r); f != nil {
			children[f.uid] = append(children[f.uid], r)
		}
	}
	return children
}

// parentOf returns the run that an automatic retry tries again; nil if it was not seen.
func (w *world) parentOf(r *runLife) *runLife {
	last := r.last()
	for _, f := range w.byName[types.NamespacedName{Namespace: r.namespace, Name: last.Spec.RetryOf}] {
		if p := f.last(); rootOf(p) == rootOf(last) && attemptOf(p)+1 == attemptOf(last) {
			return f
		}
	}
	return nil
}

// executed reports whether the run was claimed, or begun by the log.
func (w *world) executed(r *runLife) bool {
	if r.when(claimed) != nil {
		return true
	}
	return w.begun[r.uid]
}

func (w *world) oneChild(f *runLife, children []*runLife) {
	var before *runLife
	for _, c := range children {
		if !w.executed(c) || late(w, c, f) {
			continue
		}
		if before != nil {
			w.broken(5, f.subject(), fmt.Sprintf("it was retried twice: by %s with UID %s, and by %s with UID %s", before.name, before.uid, c.name, c.uid))
		}
		before = c
	}
}

// oneRecord looks at the record of the retry: a retry by hand may take the place of one that was deleted, nothing else.
func (w *world) oneRecord(f *runLife) {
	for i := 1; i < len(f.states); i++ {
		was, is := f.states[i-1].object.Status.Retry, f.states[i].object.Status.Retry
		switch {
		case was == nil || (is != nil && was.UID == is.UID):
		case is == nil:
			w.broken(5, f.subject(), fmt.Sprintf("version %d no longer names its retry %s with UID %s", f.states[i].rv, was.Name, was.UID))
		case !is.Manual:
			w.broken(5, f.subject(), fmt.Sprintf("version %d names the retry %s with UID %s; before it was UID %s", f.states[i].rv, is.Name, is.UID, was.UID))
		}
	}
}

// allowed looks at what an automatic retry was made for.
func (w *world) allowed(r *runLife) {
	last := r.last()
	if !automatic(last) || !w.executed(r) {
		return
	}
	w.checked(5)
	if n, most := attemptOf(last), maxRetries(last); n > most {
		w.broken(5, r.subject(), fmt.Sprintf("it is automatic retry %d, and maxRetries is %d", n, most))
	}
	f := w.parentOf(r)
	if f == nil {
		return
	}
	end := f.when(terminalRun)
	switch {
	case end == nil:
		if f.gone == nil {
			w.broken(5, r.subject(), fmt.Sprintf("it was executed, and the run %s that it retries has not ended", f.name))
		}
	case end.object.Status.Phase != batchv1alpha1.JobRunFailed:
		w.broken(5, r.subject(), fmt.Sprintf("it was executed, and the run %s that it retries is %s", f.name, end.object.Status.Phase))
	case w.Complete && halted(end.object):
		w.broken(5, r.subject(), fmt.Sprintf("it was executed, and the run %s that it retries was asked to end before it failed", f.name))
	}
}

// retried looks at the end of a failed run.
func (w *world) retried(f *runLife) {
	last := f.last()
	record := last.Status.Retry
	if record != nil {
		if w.Complete && w.runs.by[record.UID] == nil {
			w.broken(5, f.subject(), fmt.Sprintf("it records the retry %s with UID %s, which never was", record.Name, record.UID))
		}
		return
	}
	due := !halted(last) && attemptOf(last) < maxRetries(last)
	if w.ended() && due && f.there() && !w.ownerGone(last) {
		w.broken(5, f.subject(), fmt.Sprintf("it failed (attempt %d of at most %d retries), and no retry is on record", attemptOf(last), maxRetries(last)))
	}
}
