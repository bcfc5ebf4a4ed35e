// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// settles is invariant 13: with faults over, every object reaches a state that no reconcile changes, and it is the one that was
// promised. It is broken by
//
//   - a history that did not settle;
//   - a run that waits though nothing in its queue holds a slot or is before it, and nothing says that it must wait;
//   - a run that has ended, of whose work nothing lives, and that still holds its slot;
//   - the first run of a chain that is over, and does not say how it ended;
//   - a group that goes on though nothing of it does;
//   - a ScheduledJob that counts as active what is over;
//   - a queue that names as waiting what does not wait, or leaves out what does.
func settles(w *world) {
	if w.Partial {
		return
	}
	w.checked(13)
	if !w.Settled {
		w.broken(13, "history", "it did not settle")
		return
	}
	for _, r := range w.runs.all {
		if r.there() {
			w.checked(13)
			w.waits(r)
			w.frees(r)
			w.tells(r)
		}
	}
	for _, g := range w.groups.all {
		w.groupGoesOn(g)
	}
	for _, sj := range w.schedules.all {
		w.countsActive(sj)
	}
	for _, q := range w.queues.all {
		w.shows(q)
	}
}

// waits looks at a Queued run. What is asked is strict enough that no rule of admission can be in its way.
func (w *world) waits(r *runLife) {
	last := r.last()
	if last.Status.Phase != batchv1alpha1.JobRunQueued || says(last.Status.Conditions, batchv1alpha1.ConditionStalled) || w.ownerGone(last) {
		return
	}
	if halted(last) {
		w.broken(13, r.subject(), "it was asked to end, and is Queued at the end")
		return
	}
	queue := queueOf(last)
	if queue == "" || (last.Spec.NotBefore != nil && last.Spec.NotBefore.After(w.Until)) {
		return
	}
	key := types.NamespacedName{Namespace: r.namespace, Name: queue}
	if w.admits(key, needsOfRun(r)) && !w.busy(key) {
		w.broken(13, r.subject(), fmt.Sprintf("it is Queued at the end, and nothing keeps queue %s from admitting it", key))
	}
}

// admits reports whether the queue is there, and has room for these needs when it is empty.
func (w *world) admits(key types.NamespacedName, n needs) bool {
	for _, q := range w.queues.named(key.Namespace, key.Name) {
		if !q.there() || q.last().Spec.Suspend {
			continue
		}
		l := limitsOf(q.last())
		for _, m := range n.measures() {
			if l.of(m) < n.of(m) {
				return false
			}
		}
		return n.kind == "" || listed(q.last(), n.kind)
	}
	return false
}

func listed(q *batchv1alpha1.JobQueue, kind string) bool {
	if q.Spec.Concurrency == nil || len(q.Spec.Concurrency.Types) == 0 {
		return true
	}
	for _, t := range q.Spec.Concurrency.Types {
		if t.Name == kind {
			return true
		}
	}
	return false
}

// busy reports whether anything of a queue holds a slot, may have work without a record, or is a reservation that is not over.
func (w *world) busy(key types.NamespacedName) bool {
	if w.busyAt == nil {
		w.busyAt = map[types.NamespacedName]bool{}
		for _, r := range w.runs.all {
			if (r.gone == nil && holdsSlot(r.last())) || w.alive(r) {
				w.busyAt[types.NamespacedName{Namespace: r.namespace, Name: queueOf(r.last())}] = true
			}
		}
		for _, d := range w.reservations.all {
			if d.gone == nil && !d.last().Status.Phase.Terminal() {
				w.busyAt[types.NamespacedName{Namespace: d.namespace, Name: queueOfReservation(d.last())}] = true
			}
		}
	}
	return w.busyAt[key]
}

// alive reports whether work of the run may live at the end: by the log, or by a pod or Job that was seen.
func (w *world) alive(r *runLife) bool {
	if w.aliveAt == nil {
		w.aliveAt = map[types.UID]bool{}
		for _, e := range w.work {
			if e.Work != Direct && e.certain.Equal(later(w.Until, e.At)) {
				w.aliveAt[e.UID] = true
			}
		}
		living(w, w.pods, func(p *corev1.Pod) bool {
			return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
		})
		living(w, w.jobs, func(j *batchv1.Job) bool { return j.Status.Active > 0 })
	}
	return w.aliveAt[r.uid]
}

// living notes the runs for which something works that was there at the end, and lives.
func living[T client.Object](w *world, all *lives[T], lives func(T) bool) {
	for _, l := range all.all {
		if l.gone == nil && lives(l.last()) {
			w.aliveAt[types.UID(l.last().GetLabels()[batchv1alpha1.LabelRunUID])] = true
		}
	}
}

// frees looks at the slot of a run that has ended. Without pods in the history nobody can say that those of a Job are gone.
func (w *world) frees(r *runLife) {
	last := r.last()
	if !last.Status.Phase.Terminal() || !holdsSlot(last) || w.alive(r) {
		return
	}
	if isHTTP(last) {
		if d := last.Status.Deadline; d != nil && d.Add(w.LeaseDuration+overdue).After(w.Until) {
			return
		}
	} else if len(w.pods.all) == 0 {
		return
	}
	w.broken(13, r.subject(), fmt.Sprintf("it is %s, nothing of its work lives, and it holds its slot at the end", last.Status.Phase))
}

// tells looks at the first run of a chain.
func (w *world) tells(r *runLife) {
	last := r.last()
	if last.Spec.RetryOf != "" || !last.Status.Phase.Terminal() || w.ownerGone(last) {
		return
	}
	latest := w.latest(r)
	if latest == nil || !latest.last().Status.Phase.Terminal() {
		return
	}
	end := latest.last()
	w.checked(13)
	complete, failedForGood := says(last.Status.Conditions, batchv1alpha1.ConditionComplete), says(last.Status.Conditions, batchv1alpha1.ConditionFailed)
	if complete == failed(end) || failedForGood != failed(end) {
		w.broken(13, r.subject(), fmt.Sprintf("the last run of its chain, %s, is %s; Complete: %t, Failed: %t", latest.name, end.Status.Phase, complete, failedForGood))
	}
}

// latest returns the last run of a chain; nil if it cannot be told, since a run of it was deleted or not seen.
func (w *world) latest(r *runLife) *runLife {
	for range 1000 {
		record := r.last().Status.Retry
		if record == nil {
			return r
		}
		next := w.runs.by[record.UID]
		if next == nil || !next.there() {
			return nil
		}
		r = next
	}
	return nil
}

func (w *world) groupGoesOn(g *groupLife) {
	last := g.last()
	if !g.there() || w.ownerGone(last) {
		return
	}
	w.checked(13)
	if last.Status.Phase.Terminal() || says(last.Status.Conditions, batchv1alpha1.ConditionStalled) {
		return
	}
	for _, r := range w.runs.all {
		if isOf(r, g) && (r.gone == nil && (!r.last().Status.Phase.Terminal() || holdsSlot(r.last())) || w.alive(r)) {
			return
		}
	}
	w.broken(13, g.subject(), fmt.Sprintf("it is %s at the end, and nothing of it waits or is at work", last.Status.Phase))
}

// isOf reports whether the run is of a member of the group. A retry by hand says so only by its chain.
func isOf(r *runLife, g *groupLife) bool {
	if r.namespace != g.namespace {
		return false
	}
	if ref := r.last().Spec.GroupRef; ref != nil && ref.Name == g.name {
		return true
	}
	for _, m := range g.last().Status.Members {
		if m.RunUID == rootOf(r.last()) {
			return true
		}
	}
	return false
}

func (w *world) countsActive(sj *scheduleLife) {
	last := sj.last()
	if !sj.there() || says(last.Status.Conditions, batchv1alpha1.ConditionStalled) {
		return
	}
	w.checked(13)
	for _, a := range last.Status.Active {
		if !w.active(a.UID) {
			w.broken(13, sj.subject(), fmt.Sprintf("it counts %s with UID %s as active at the end, which is over", a.Name, a.UID))
		}
	}
}

// active reports whether a run's chain, or a group, may still go on.
func (w *world) active(uid types.UID) bool {
	if g := w.groups.by[uid]; g != nil {
		return g.gone == nil && (!g.last().Status.Phase.Terminal() || w.membersHold(g))
	}
	r := w.runs.by[uid]
	if r == nil {
		return !w.Complete
	}
	if r.gone != nil {
		return false
	}
	for _, m := range w.runs.all {
		if m.gone == nil && rootOf(m.last()) == uid && (!m.last().Status.Phase.Terminal() || holdsSlot(m.last())) {
			return true
		}
	}
	last := r.last()
	return !says(last.Status.Conditions, batchv1alpha1.ConditionComplete) && !says(last.Status.Conditions, batchv1alpha1.ConditionFailed)
}

func (w *world) membersHold(g *groupLife) bool {
	for _, m := range g.last().Status.Members {
		if r := w.runs.by[m.RunUID]; r != nil && r.gone == nil && w.active(m.RunUID) {
			return true
		}
	}
	return false
}
