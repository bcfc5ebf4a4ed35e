// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/run"
	"reprise.dev/reprise/internal/schedule"
)

// standing is what the runs of a ScheduledJob mean to it.
type standing struct {
	// active are the unsettled chains that ticks have started, in their order.
	active []batchv1alpha1.ActiveRun
	// unsettled counts all unsettled chains, those of manual runs included.
	unsettled int
	// found are runs of ticks that nobody has recorded, in the order of the ticks: they were created right before a crash, or
	// for a ScheduledJob of the same name that was deleted.
	found []*batchv1alpha1.JobRun
}

// stand sorts the chains of a ScheduledJob.
func stand(t ticks, runs []batchv1alpha1.JobRun) standing {
	var s standing
	recorded := map[types.UID]batchv1alpha1.ActiveRun{}
	for _, a := range t.sj.Status.Active {
		recorded[a.UID] = a
	}
	for _, c := range history.Chains(runs) {
		if entry, named := recorded[c.UID]; named {
			s.add(c, &entry)
		} else if c.Root != nil && isTick(c.Root) {
			s.addUnnamed(t, c)
		} else {
			s.add(c, nil)
		}
	}
	sortActive(s.active)
	slices.SortFunc(s.found, func(a, b *batchv1alpha1.JobRun) int {
		return cmp.Or(a.Spec.ScheduledTime.Compare(b.Spec.ScheduledTime.Time), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// add counts a chain, which a tick has started if there is an entry for it.
//
// A chain also counts as unsettled while work of it may live: what concurrencyPolicy Forbid promises is that nothing
// overlaps, and a run that failed may take its time to stop.
func (s *standing) add(c history.Chain, entry *batchv1alpha1.ActiveRun) {
	if c.Settled() && c.Stopped() {
		return
	}
	s.unsettled++
	if entry != nil {
		s.active = append(s.active, *entry)
	}
}

// addUnnamed counts the chain of a tick's run that status does not name as active.
func (s *standing) addUnnamed(t ticks, c history.Chain) {
	switch {
	case t.unrecorded(c.Root):
		s.found = append(s.found, c.Root)
	case c.Root.Status.Phase == batchv1alpha1.JobRunQueued:
		// It is never executed: its tick is settled, so it becomes Superseded, or it goes with the one that owned it.
	default:
		s.add(c, new(activeRun(c.Root)))
	}
}

// isTick reports whether the run is one that a tick has started, and no retry.
func isTick(r *batchv1alpha1.JobRun) bool { return r.Spec.ScheduledTime != nil && run.IsRoot(r) }

func activeRun(r *batchv1alpha1.JobRun) batchv1alpha1.ActiveRun {
	return batchv1alpha1.ActiveRun{Name: r.Name, UID: r.UID, ScheduledTime: *r.Spec.ScheduledTime}
}

func sortActive(active []batchv1alpha1.ActiveRun) {
	slices.SortFunc(active, func(a, b batchv1alpha1.ActiveRun) int {
		return cmp.Or(a.ScheduledTime.Compare(b.ScheduledTime.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

// leaving reports whether the run is about to be deleted together with an earlier ScheduledJob of the same name, without
// ever having been executed. It says nothing about its tick.
func leaving(r *batchv1alpha1.JobRun, sj *batchv1alpha1.ScheduledJob) bool {
	if r.Status.Phase != batchv1alpha1.JobRunQueued {
		return false
	}
	owner := metav1.GetControllerOf(r)
	return !r.DeletionTimestamp.IsZero() || (owner != nil && owner.Kind == "ScheduledJob" && owner.UID != sj.UID)
}

// ticks tells which runs are of ticks that are still to be settled.
type ticks struct {
	sj *batchv1alpha1.ScheduledJob
	// last is what was remembered of the schedule before this pass, nil if it was never acted on; seen is what is now.
	last *schedule.Seen
	seen schedule.Seen
	// valid says that the schedule can be used.
	valid bool
	now   time.Time
}

func (t ticks) unrecorded(r *batchv1alpha1.JobRun) bool {
	tick := r.Spec.ScheduledTime.Time
	if tick.After(t.now) || leaving(r, t.sj) || !isRunName(r.Name, t.sj.Name, tick) {
		return false
	}
	return t.due(tick) || t.overtaken(r)
}

// due reports whether the tick is one that the present schedule has still to settle.
func (t ticks) due(tick time.Time) bool {
	if at := t.sj.Spec.RunAt; at != nil {
		return tick.Equal(at.Time) && !t.sj.Status.FiredRunAt.Equal(at)
	}
	return t.valid && t.sj.Spec.Schedule != "" && tick.After(t.seen.Since)
}

// overtaken reports whether the run was created for a tick of the schedule as it was before an edit, or before a suspension
// that is over, and was to be recorded when that came in between. The tick counts no more, but the run was there first.
func (t ticks) overtaken(r *batchv1alpha1.JobRun) bool {
	if t.last == nil || t.last.Rule == t.seen.Rule || r.Status.Phase != batchv1alpha1.JobRunQueued || r.Spec.ScheduledTime.Equal(t.sj.Status.FiredRunAt) {
		return false
	}
	tick := r.Spec.ScheduledTime.Time
	if !t.last.Since.IsZero() && tick.After(t.last.Since) {
		return true
	}
	once := schedule.Rule{RunAt: &tick}
	suspended := schedule.Rule{RunAt: &tick, Suspended: true}
	return t.last.Rule == once.String() || t.last.Rule == suspended.String()
}
