// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// oneTickOneRun is invariant 9: one tick, at most one run; a past-due one-time tick, exactly one. It is broken by
//
//   - two runs (or groups, or one of each) of the same tick that were both executed. A second one that was never executed is
//     harmless. A ScheduledJob that was deleted and made again, or whose runAt was changed and changed back, has ticks of its own;
//   - a fire on record that has left nothing, in a complete history;
//   - at the end, a one-time ScheduledJob that is past due and has not fired.
func oneTickOneRun(w *world) {
	w.firesOnce()
	for _, sj := range w.schedules.all {
		w.checked(9)
		w.leaves(sj)
		w.pastDue(sj)
	}
}

// tick is the identity of one fire.
type tick struct {
	schedule types.NamespacedName
	at       int64
}

func (w *world) firesOnce() {
	first := map[tick]string{}
	fire := func(namespace, name string, at time.Time, who string) {
		t := tick{types.NamespacedName{Namespace: namespace, Name: name}, at.Unix()}
		if w.severalSchedules(t.schedule) {
			return
		}
		w.checked(9)
		if before := first[t]; before != "" {
			w.broken(9, "ScheduledJob "+t.schedule.String(), fmt.Sprintf("its tick %s was executed twice: by %s, and by %s", at.UTC().Format(time.RFC3339), before, who))
			return
		}
		first[t] = who
	}
	for _, r := range w.runs.all {
		spec := r.last().Spec
		if spec.ScheduledTime != nil && spec.ScheduledJobRef != nil && w.executed(r) && !w.lateTick(r) {
			fire(r.namespace, spec.ScheduledJobRef.Name, spec.ScheduledTime.Time, fmt.Sprintf("run %s with UID %s", r.name, r.uid))
		}
	}
	at := w.membersExecuted()
	for _, g := range w.groups.all {
		spec := g.last().Spec
		if spec.ScheduledTime != nil && spec.ScheduledJobRef != nil && at[g.uid] {
			fire(g.namespace, spec.ScheduledJobRef.Name, spec.ScheduledTime.Time, fmt.Sprintf("group %s with UID %s", g.name, g.uid))
		}
	}
}

// lateTick reports whether a run of a tick may have been created by a late request, for a ScheduledJob that was deleted.
func (w *world) lateTick(r *runLife) bool {
	for _, sj := range w.schedules.named(r.namespace, r.last().Spec.ScheduledJobRef.Name) {
		if late(w, r, sj) {
			return true
		}
	}
	return false
}

// severalSchedules reports whether the tick may be one of several ScheduledJobs, or of one that was armed again.
func (w *world) severalSchedules(key types.NamespacedName) bool {
	named := w.schedules.named(key.Namespace, key.Name)
	if len(named) > 1 {
		return true
	}
	for _, sj := range named {
		for i := 1; i < len(sj.states); i++ {
			if !sj.states[i].object.Spec.RunAt.Equal(sj.states[i-1].object.Spec.RunAt) {
				return true
			}
		}
	}
	return false
}

// membersExecuted finds the groups of which a recorded member was executed.
func (w *world) membersExecuted() map[types.UID]bool {
	found := map[types.UID]bool{}
	for _, g := range w.groups.all {
		for _, s := range g.states {
			for _, m := range s.object.Status.Members {
				if r := w.runs.by[m.RunUID]; r != nil && w.executed(r) {
					found[g.uid] = true
				}
			}
		}
	}
	return found
}

// leaves looks for what the fires on record have made.
func (w *world) leaves(sj *scheduleLife) {
	if !w.Complete {
		return
	}
	for _, s := range sj.states {
		for _, a := range s.object.Status.Active {
			if w.runs.by[a.UID] == nil && w.groups.by[a.UID] == nil {
				w.broken(9, sj.subject(), fmt.Sprintf("version %d names %s with UID %s as fired, which never was", s.rv, a.Name, a.UID))
				return
			}
		}
		name := s.object.Status.LastRunName
		if name != "" && len(w.byName[types.NamespacedName{Namespace: sj.namespace, Name: name}]) == 0 && len(w.groups.named(sj.namespace, name)) == 0 {
			w.broken(9, sj.subject(), fmt.Sprintf("version %d names %s as fired, which never was", s.rv, name))
			return
		}
	}
}

// pastDue looks at a one-time ScheduledJob at the end.
func (w *world) pastDue(sj *scheduleLife) {
	last := sj.last()
	at := last.Spec.RunAt
	if at == nil || !w.ended() || !sj.there() || at.Add(punctual).After(w.Until) || excusedFromFiring(sj) {
		return
	}
	w.checked(9)
	if !at.Equal(last.Status.FiredRunAt) {
		w.broken(9, sj.subject(), fmt.Sprintf("it was to run at %s, and has not fired at %s", at.UTC().Format(time.RFC3339), clock(w.Until)))
		return
	}
	if w.Complete && !mayLeaveNothing(last) && !w.severalSchedules(types.NamespacedName{Namespace: sj.namespace, Name: sj.name}) && !w.hasMade(sj, at.Time) {
		w.broken(9, sj.subject(), fmt.Sprintf("it says that it has fired %s, and has made nothing", at.UTC().Format(time.RFC3339)))
	}
}

// excusedFromFiring reports whether it was suspended at any time, or says that it cannot.
func excusedFromFiring(sj *scheduleLife) bool {
	return sj.when(suspended) != nil || says(sj.last().Status.Conditions, batchv1alpha1.ConditionStalled)
}

// mayLeaveNothing reports whether a tick may be given up, as too late or for what it overlaps with.
func mayLeaveNothing(sj *batchv1alpha1.ScheduledJob) bool {
	return sj.Spec.StartingDeadlineSeconds != nil || sj.Spec.ConcurrencyPolicy == batchv1alpha1.ConcurrencyForbid
}

// punctual is how long after its time a tick may be on its way.
const punctual = 3 * time.Second

func suspended(sj *batchv1alpha1.ScheduledJob) bool { return sj.Spec.Suspend }

func (w *world) hasMade(sj *scheduleLife, at time.Time) bool {
	for _, r := range w.runs.all {
		spec := r.first().object.Spec
		if r.namespace == sj.namespace && spec.ScheduledTime != nil && spec.ScheduledTime.Time.Equal(at) && spec.ScheduledJobRef.Name == sj.name {
			return true
		}
	}
	for _, g := range w.groups.all {
		spec := g.first().object.Spec
		if g.namespace == sj.namespace && spec.ScheduledTime != nil && spec.ScheduledTime.Time.Equal(at) && spec.ScheduledJobRef.Name == sj.name {
			return true
		}
	}
	return false
}
