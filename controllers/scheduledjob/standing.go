// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// standing is what the products of a ScheduledJob mean to it.
type standing struct {
	// active are the unsettled ones that ticks have started, in their order.
	active []batchv1alpha1.ActiveRun
	// unsettled are all unsettled ones, those that a person started included.
	unsettled []product
	// found are those of ticks that nobody has recorded, in the order of the ticks: they were created right before a crash, or
	// for a ScheduledJob of the same name that was deleted. Of one tick the first is one that has begun, if there is any.
	found []product
}

// stand sorts the products of a ScheduledJob.
func stand(t ticks, all []product) standing {
	var s standing
	recorded := map[types.UID]batchv1alpha1.ActiveRun{}
	for _, a := range t.sj.Status.Active {
		recorded[a.UID] = a
	}
	for _, p := range all {
		if entry, named := recorded[p.uid]; named {
			s.add(p, &entry)
		} else if p.tick != nil {
			s.addUnnamed(t, p)
		} else {
			s.add(p, nil)
		}
	}
	sortActive(s.active)
	slices.SortFunc(s.found, func(a, b product) int {
		return cmp.Or(a.tick.Compare(*b.tick), compareBool(a.waits, b.waits), cmp.Compare(a.object.GetName(), b.object.GetName()), cmp.Compare(a.kind, b.kind))
	})
	return s
}

// add counts a product, which a tick has started if there is an entry for it.
//
// It also counts as unsettled while work of it may live: what concurrencyPolicy Forbid promises is that nothing overlaps, and
// a run that failed may take its time to stop.
func (s *standing) add(p product, entry *batchv1alpha1.ActiveRun) {
	if p.over() {
		return
	}
	s.unsettled = append(s.unsettled, p)
	if entry != nil {
		s.active = append(s.active, *entry)
	}
}

// addUnnamed counts what a tick has made and status does not name as active.
func (s *standing) addUnnamed(t ticks, p product) {
	switch {
	case t.unrecorded(p):
		s.found = append(s.found, p)
	case p.waits:
		// It is never executed: its tick is settled, so it becomes Superseded, or it goes with the one that owned it.
	default:
		s.add(p, new(p.entry()))
	}
}

func sortActive(active []batchv1alpha1.ActiveRun) {
	slices.SortFunc(active, func(a, b batchv1alpha1.ActiveRun) int {
		return cmp.Or(a.ScheduledTime.Compare(b.ScheduledTime.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// ticks tells which products are of ticks that are still to be settled.
type ticks struct {
	sj *batchv1alpha1.ScheduledJob
	// last is what was remembered of the schedule before this pass, nil if it was never acted on; seen is what is now.
	last *schedule.Seen
	seen schedule.Seen
	// valid says that the schedule can be used.
	valid bool
	now   time.Time
}

func (t ticks) unrecorded(p product) bool {
	if p.tick.After(t.now) || p.leaving(t.sj) || !isProductName(p.object.GetName(), t.sj.Name, *p.tick) {
		return false
	}
	return t.due(*p.tick) || t.overtaken(p)
}

// due reports whether the tick is one that the present schedule has still to settle.
func (t ticks) due(tick time.Time) bool {
	if at := t.sj.Spec.RunAt; at != nil {
		return tick.Equal(at.Time) && !t.sj.Status.FiredRunAt.Equal(at)
	}
	return t.valid && t.sj.Spec.Schedule != "" && tick.After(t.seen.Since)
}

// overtaken reports whether it was created for a tick of the schedule as it was before an edit, or before a suspension that
// is over, and was to be recorded when that came in between. The tick counts no more, but what it made was there first.
func (t ticks) overtaken(p product) bool {
	if t.last == nil || t.last.Rule == t.seen.Rule || !p.waits || at(*p.tick).Equal(t.sj.Status.FiredRunAt) {
		return false
	}
	if !t.last.Since.IsZero() && p.tick.After(t.last.Since) {
		return true
	}
	once := schedule.Rule{RunAt: p.tick}
	suspended := schedule.Rule{RunAt: p.tick, Suspended: true}
	return t.last.Rule == once.String() || t.last.Rule == suspended.String()
}
