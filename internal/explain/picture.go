// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/creator"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// picture is one queue as its dispatcher sees it, made from the snapshot by the same rules.
type picture struct {
	queue     *batchv1alpha1.JobQueue // nil if there is none
	limits    admission.Limits
	book      admission.Book
	model     *admission.Queue
	holders   []admission.Entry
	waiting   []admission.Waiting
	at        map[types.UID]int // where in waiting
	inLine    int               // how many of those that wait are in line
	durations Durations
	starts    map[types.UID]time.Time
}

// picture returns the queue of a name, which need not exist.
func (v *View) picture(name string) *picture {
	if p := v.pictures[name]; p != nil {
		return p
	}
	p := &picture{model: admission.NewQueue(), at: map[types.UID]int{}}
	v.pictures[name] = p
	limits := &batchv1alpha1.JobQueue{}
	if i := slices.IndexFunc(v.snapshot.Queues, func(q batchv1alpha1.JobQueue) bool { return q.Name == name }); i >= 0 {
		p.queue = &v.snapshot.Queues[i]
		limits = p.queue
	}
	// The start-up throttle depends on the manager, too; the queue's status tells of it.
	p.limits = admission.LimitsOf(limits)
	for i := range v.snapshot.Ledgers {
		if l := &v.snapshot.Ledgers[i]; l.Name == name {
			p.book.DirectInRow = int(l.Spec.DirectInRow)
		}
	}
	v.fill(p, name)
	p.holders = p.model.Holders()
	p.waiting = admission.Next(p.model, p.limits, p.book, v.now, p.model.Waits())
	entries := make([]admission.Entry, len(p.waiting))
	for i, w := range p.waiting {
		entries[i], p.at[w.Entry.UID] = w.Entry, i
		if w.InLine {
			p.inLine++
		}
	}
	if p.queue != nil && !p.throttled() {
		p.starts = Starts(p.limits, p.book, p.holders, v.since, entries, &p.durations, v.now)
	}
	return p
}

// fill tells the picture of everything that is in the queue.
func (v *View) fill(p *picture, name string) {
	for _, r := range v.runs {
		if run.Queue(r) != name {
			continue
		}
		p.durations.Run(r)
		if e, err := admission.RunEntry(r, v.confirmed(r), v.admissible(r)); err == nil {
			p.model.Upsert(e)
		}
	}
	for _, d := range v.reservations {
		if reservation.Queue(d) != name {
			continue
		}
		p.durations.Reservation(d)
		if e, err := admission.ReservationEntry(d); err == nil {
			p.model.Upsert(e)
		}
	}
	for i := range v.snapshot.Jobs {
		if j := &v.snapshot.Jobs[i]; jobwork.MayGetPods(j) {
			v.sign(p, name, j)
		}
	}
	for i := range v.snapshot.Pods {
		if pod := &v.snapshot.Pods[i]; jobwork.Lives(pod) {
			v.sign(p, name, pod)
		}
	}
}

// sign tells the picture of something that lives and carries the labels of a run of the queue.
func (v *View) sign(p *picture, queue string, o metav1.Object) {
	uid := types.UID(o.GetLabels()[batchv1alpha1.LabelRunUID])
	if uid == "" || o.GetLabels()[batchv1alpha1.LabelQueue] != queue {
		return
	}
	if r := v.byUID[uid]; r != nil && r.Status.Slot == batchv1alpha1.SlotFree && run.StopConfirmed(r) {
		return // a person has said that nothing of it lives
	}
	p.model.Workload(uid, types.UID(o.GetLabels()[batchv1alpha1.LabelChain]), true)
}

// confirmed reports whether nobody's record of the run is missing.
func (v *View) confirmed(r *batchv1alpha1.JobRun) bool {
	return r.Status.Phase != batchv1alpha1.JobRunQueued || creator.Ask(known{v}, r).Final()
}

// admissible reports whether the run may have a slot but for the rules of its queue.
func (v *View) admissible(r *batchv1alpha1.JobRun) bool {
	t := run.Template(r)
	return r.Status.Phase != batchv1alpha1.JobRunQueued ||
		(r.DeletionTimestamp == nil && t != nil && t.Work != nil && creator.Owned(known{v}, r))
}

// known is what the snapshot shows of creators.
type known struct{ *View }

// Run implements creator.Known.
func (k known) Run(name string) *batchv1alpha1.JobRun { return k.runs[name] }

// ScheduledJob implements creator.Known.
func (k known) ScheduledJob(name string) *batchv1alpha1.ScheduledJob { return k.schedules[name] }

// Group implements creator.Known.
func (k known) Group(name string) *batchv1alpha1.JobGroup { return k.groups[name] }

// since returns when a run or reservation got its slot, zero if that is not known, or if it is only being stopped.
func (v *View) since(uid types.UID) time.Time {
	if r := v.byUID[uid]; r != nil {
		return Since(r)
	}
	if d := v.reserved[uid]; d != nil && d.Status.Phase == batchv1alpha1.ReservationGranted {
		return timeOf(d.Status.GrantedAt)
	}
	return time.Time{}
}

// Since returns when a Running run got its slot. Zero for any other: how long work takes to be stopped nobody knows.
func Since(r *batchv1alpha1.JobRun) time.Time {
	if r.Status.Phase != batchv1alpha1.JobRunRunning {
		return time.Time{}
	}
	return timeOf(r.Status.StartedAt)
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// held returns what the queue says of why the first in line waits, nil if nothing is held.
func (p *picture) held() *metav1.Condition {
	if p.queue == nil {
		return nil
	}
	if c := meta.FindStatusCondition(p.queue.Status.Conditions, batchv1alpha1.ConditionAdmitting); c != nil && c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}

// throttled reports whether the queue says that a manager has begun to lead a moment ago and admits bit by bit.
func (p *picture) throttled() bool {
	c := p.held()
	return c != nil && c.Reason == admission.CodeStartupThrottle
}

// place returns the place of an entry in the order of service, nil if it is in none.
func (p *picture) place(uid types.UID) *Place {
	i, waits := p.at[uid]
	if !waits || !p.waiting[i].InLine {
		return nil
	}
	return &Place{Number: i + 1, Of: p.inLine}
}

// job returns the Job of a run, nil if it cannot be seen.
func (v *View) job(r *batchv1alpha1.JobRun) *batchv1.Job {
	if j := v.jobs[r.Status.JobName]; j != nil && j.Labels[batchv1alpha1.LabelRunUID] == string(r.UID) {
		return j
	}
	return nil
}

// living returns the pods of a run that live.
func (v *View) living(uid types.UID) []*corev1.Pod {
	var out []*corev1.Pod
	for i := range v.pods[uid] {
		if p := &v.pods[uid][i]; jobwork.Lives(p) {
			out = append(out, p)
		}
	}
	return out
}
