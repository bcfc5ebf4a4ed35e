// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// View answers questions about one snapshot. It is not safe for concurrent use.
type View struct {
	snapshot Snapshot
	now      time.Time

	runs         map[string]*batchv1alpha1.JobRun
	reservations map[string]*batchv1alpha1.DirectReservation
	reserved     map[types.UID]*batchv1alpha1.DirectReservation
	schedules    map[string]*batchv1alpha1.ScheduledJob
	groups       map[string]*batchv1alpha1.JobGroup
	byUID        map[types.UID]*batchv1alpha1.JobRun
	jobs         map[string]*batchv1.Job               // by name
	pods         map[types.UID][]corev1.Pod            // by the UID of their run
	chains       map[types.UID][]*batchv1alpha1.JobRun // by the UID of their root
	pictures     map[string]*picture                   // of the queues that were asked for
}

// New returns a view of the snapshot at a time. The snapshot must not be changed afterwards.
func New(s Snapshot, now time.Time) *View {
	v := &View{
		snapshot: s, now: now,
		runs:         byName(s.Runs, func(r *batchv1alpha1.JobRun) string { return r.Name }),
		reservations: byName(s.Reservations, func(r *batchv1alpha1.DirectReservation) string { return r.Name }),
		schedules:    byName(s.ScheduledJobs, func(sj *batchv1alpha1.ScheduledJob) string { return sj.Name }),
		groups:       byName(s.Groups, func(g *batchv1alpha1.JobGroup) string { return g.Name }),
		jobs:         byName(s.Jobs, func(j *batchv1.Job) string { return j.Name }),
		reserved:     map[types.UID]*batchv1alpha1.DirectReservation{},
		byUID:        map[types.UID]*batchv1alpha1.JobRun{},
		pods:         map[types.UID][]corev1.Pod{},
		chains:       map[types.UID][]*batchv1alpha1.JobRun{},
		pictures:     map[string]*picture{},
	}
	for _, r := range v.runs {
		v.byUID[r.UID] = r
		v.chains[run.ChainUID(r)] = append(v.chains[run.ChainUID(r)], r)
	}
	for _, d := range v.reservations {
		v.reserved[d.UID] = d
	}
	for _, p := range s.Pods {
		if uid := types.UID(p.Labels[batchv1alpha1.LabelRunUID]); uid != "" {
			v.pods[uid] = append(v.pods[uid], p)
		}
	}
	return v
}

func byName[T any](items []T, name func(*T) string) map[string]*T {
	out := make(map[string]*T, len(items))
	for i := range items {
		out[name(&items[i])] = &items[i]
	}
	return out
}

// Run explains a run. It reports false if the snapshot has none of that name.
func (v *View) Run(name string) (Answer, bool) {
	r := v.runs[name]
	if r == nil {
		return Answer{}, false
	}
	return v.run(r), true
}

// Reservation explains a reservation. It reports false if the snapshot has none of that name.
func (v *View) Reservation(name string) (Answer, bool) {
	d := v.reservations[name]
	if d == nil {
		return Answer{}, false
	}
	return v.reservation(d), true
}

// Queues returns the names of the queues that exist or that something names which is not over, sorted.
func (v *View) Queues() []string {
	names := map[string]bool{}
	for i := range v.snapshot.Queues {
		names[v.snapshot.Queues[i].Name] = true
	}
	for _, r := range v.runs {
		if name := run.Queue(r); name != "" && (!r.Status.Phase.Terminal() || run.HoldsSlot(r)) {
			names[name] = true
		}
	}
	for _, d := range v.reservations {
		if !d.Status.Phase.Terminal() {
			names[reservation.Queue(d)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Queue shows a queue: everything that holds a slot, and the first n of those that wait. It reports false if there is no such
// queue and nothing names it.
func (v *View) Queue(name string, n int) (QueueView, bool) {
	p := v.picture(name)
	if p.queue == nil && !slices.Contains(v.Queues(), name) {
		return QueueView{}, false
	}
	out := QueueView{
		Namespace: v.snapshot.Namespace, Name: name, Exists: p.queue != nil, Suspended: p.limits.Suspend,
		Slots: []Answer{}, Waiting: []Answer{}, Total: len(p.waiting),
	}
	if p.limits.Limit != admission.Unlimited {
		out.Limit = &p.limits.Limit
	}
	if c := p.held(); c != nil {
		out.Reason, out.Message = c.Reason, c.Message
	}
	for _, e := range p.holders {
		out.Slots = append(out.Slots, v.entry(p, e))
	}
	slices.SortStableFunc(out.Slots, func(a, b Answer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
	})
	for _, w := range p.waiting[:min(max(n, 0), len(p.waiting))] {
		out.Waiting = append(out.Waiting, v.entry(p, w.Entry))
	}
	return out, true
}

// entry explains whatever an entry of the picture is.
func (v *View) entry(p *picture, e admission.Entry) Answer {
	if e.Kind == admission.DirectReservation {
		return v.reservation(v.reserved[e.UID])
	}
	if r := v.byUID[e.UID]; r != nil {
		return v.run(r)
	}
	return v.leftOver(p, e)
}
