// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	creators "reprise.dev/reprise/internal/creator"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

var log = logf.Log.WithName("jobqueue")

// Wrote takes a run as the API server answered it to our own write: own writes count at once.
func (d *Dispatcher) Wrote(r *batchv1alpha1.JobRun) { d.observeRun(r) }

// Confirm takes it that the creator of the run names it, or is gone and no longer objects.
func (d *Dispatcher) Confirm(r *batchv1alpha1.JobRun) { d.upsert(r, confirmedAlready) }

func (d *Dispatcher) observeRun(r *batchv1alpha1.JobRun) { d.upsert(r, d.confirmed) }

// confirmedAlready is for runs whose creator has been asked.
func confirmedAlready(*batchv1alpha1.JobRun) bool { return true }

// upsert puts a version of a run into the picture of its queue. A run that is yet to be resolved is in no queue.
//
// What is known of the run's creator is asked under the lock of the queue, and after the run was noted as one that waits for
// it: what the creator says meanwhile is either seen here, or finds the note and looks again.
func (d *Dispatcher) upsert(r *batchv1alpha1.JobRun, confirmed func(*batchv1alpha1.JobRun) bool) bool {
	name := run.Queue(r)
	if name == "" {
		return true
	}
	key := types.NamespacedName{Namespace: r.Namespace, Name: name}
	q := d.open(key)
	q.mu.Lock()
	waits := awaiting{name: client.ObjectKeyFromObject(r), creator: creatorOf(r)}
	d.unready.note(r.UID, waits, r.Status.Phase == batchv1alpha1.JobRunQueued)
	said, admissible := confirmed(r), d.admissible(r)
	e, err := admission.RunEntry(r, said, admissible)
	if err != nil {
		q.mu.Unlock()
		log.Error(err, "run left out of its queue", "namespace", r.Namespace, "run", r.Name)
		return false
	}
	wanted := q.model.Wants(r.UID)
	counts := q.model.Upsert(e)
	d.unready.note(r.UID, waits, counts && !(said && admissible))
	if counts {
		q.name(r.UID, r.Name, wanted, e.Waiting)
		q.past.run(r)
	}
	if counts && r.Status.Slot == batchv1alpha1.SlotFree {
		q.sign(r.UID, e.ChainUID, own, false)
		d.started.drop(r.UID)
		if run.StopConfirmed(r) {
			q.confirm(r.UID, e.ChainUID)
		}
	}
	q.mu.Unlock()
	d.confirmRetry(r)
	d.wakes.wake(key)
	return counts
}

// observeRunGone takes a run out of the picture. Work of it that may live keeps its slot until it is known to have ended.
func (d *Dispatcher) observeRunGone(r *batchv1alpha1.JobRun) {
	d.unready.forget(r.UID)
	q := d.queueOf(r.UID, types.NamespacedName{Namespace: r.Namespace, Name: run.Queue(r)})
	if q == nil {
		return
	}
	q.mu.Lock()
	q.model.Delete(r.UID)
	delete(q.untold, r.UID)
	q.past.note(r.UID, time.Time{})
	lives := (len(q.works[r.UID]) > 0 && !q.confirmed[r.UID]) || run.HoldsSlot(r)
	if lives {
		q.sign(r.UID, run.ChainUID(r), own, true)
		q.abandoned[r.UID] = abandoned{run: r}
	}
	if len(q.works[r.UID]) == 0 {
		delete(q.confirmed, r.UID)
	}
	q.mu.Unlock()
	if ex := d.Work.For(r); ex != nil && !lives {
		ex.Forget(r.UID)
	}
	d.wakes.wake(q.key)
}

// confirmed reports whether the run has no creator, or its creator's status names its UID.
func (d *Dispatcher) confirmed(r *batchv1alpha1.JobRun) bool {
	return creators.Names(cached{d.Client, r.Namespace}, r)
}

// admissible reports whether the run is there to stay, has work, and the owner that its metadata records exists. Without that the run
// comes from a backup.
func (d *Dispatcher) admissible(r *batchv1alpha1.JobRun) bool {
	switch {
	case r.Status.Phase != batchv1alpha1.JobRunQueued:
		return true
	case r.DeletionTimestamp != nil || d.Work.For(r) == nil:
		return false
	default:
		return creators.Owned(cached{d.Client, r.Namespace}, r)
	}
}

// creatorOf returns the ScheduledJob or JobGroup that made the run or owns it, zero if there is none.
func creatorOf(r *batchv1alpha1.JobRun) creator {
	owner := metav1.GetControllerOf(r)
	switch {
	case owner != nil && (owner.Kind == creators.KindScheduledJob || owner.Kind == creators.KindJobGroup):
		return creator{r.Namespace, owner.Kind, owner.Name}
	case r.Spec.ScheduledTime != nil:
		return creator{r.Namespace, creators.KindScheduledJob, r.Spec.ScheduledJobRef.Name}
	case r.Spec.GroupRef != nil:
		return creator{r.Namespace, creators.KindJobGroup, r.Spec.GroupRef.Name}
	default:
		return creator{}
	}
}

// confirmRetry tells the picture of a retry that its parent has recorded it.
func (d *Dispatcher) confirmRetry(parent *batchv1alpha1.JobRun) {
	if parent.Status.Retry == nil {
		return
	}
	name, waits := d.unready.named(parent.Status.Retry.UID)
	if !waits {
		return
	}
	r := &batchv1alpha1.JobRun{}
	if err := d.Client.Get(context.Background(), name, r); err == nil && r.UID == parent.Status.Retry.UID {
		d.upsert(r, confirmedAlready)
	}
}

func (d *Dispatcher) observeSchedule(sj *batchv1alpha1.ScheduledJob) {
	d.observeCreator(creator{sj.Namespace, creators.KindScheduledJob, sj.Name})
}

func (d *Dispatcher) observeGroup(g *batchv1alpha1.JobGroup) {
	d.observeCreator(creator{g.Namespace, creators.KindJobGroup, g.Name})
}

// observeCreator looks again at the runs that wait for their creator to record them, or to be seen.
func (d *Dispatcher) observeCreator(c creator) {
	for _, name := range d.unready.of(c) {
		r := &batchv1alpha1.JobRun{}
		if err := d.Client.Get(context.Background(), name, r); err == nil {
			d.observeRun(r)
		}
	}
}

func (d *Dispatcher) observeReservation(dr *batchv1alpha1.DirectReservation) {
	e, err := admission.ReservationEntry(dr)
	if err != nil {
		log.Error(err, "reservation left out of its queue", "namespace", dr.Namespace, "reservation", dr.Name)
		return
	}
	q := d.open(reservationKey(dr))
	q.mu.Lock()
	counts := q.model.Upsert(e)
	if counts {
		q.past.reservation(dr)
	}
	if counts && e.Waiting {
		q.reservations[dr.UID] = dr.Name
	} else {
		delete(q.reservations, dr.UID)
	}
	q.mu.Unlock()
	d.wakes.wake(q.key)
}

func (d *Dispatcher) observeReservationGone(dr *batchv1alpha1.DirectReservation) {
	q := d.open(reservationKey(dr))
	q.mu.Lock()
	q.model.Delete(dr.UID)
	q.past.note(dr.UID, time.Time{})
	delete(q.reservations, dr.UID)
	q.mu.Unlock()
	d.wakes.wake(q.key)
}

func reservationKey(dr *batchv1alpha1.DirectReservation) types.NamespacedName {
	return types.NamespacedName{Namespace: dr.Namespace, Name: reservation.Queue(dr)}
}

func (d *Dispatcher) observeJob(j *batchv1.Job) {
	d.observeWork(j, "job/"+j.Name, jobwork.MayGetPods(j), false)
}

// observeJobGone does not believe that the work is gone with its Job: pods outlive it for their grace period.
func (d *Dispatcher) observeJobGone(j *batchv1.Job) {
	d.verify(j)
	d.observeWork(j, "job/"+j.Name, false, false)
}

func (d *Dispatcher) observePod(p *corev1.Pod) {
	d.observeWork(p, "pod/"+p.Name, jobwork.Lives(p), false)
}

func (d *Dispatcher) observePodGone(p *corev1.Pod) { d.observeWork(p, "pod/"+p.Name, false, false) }

// listedJob and listedPod take what a live list shows, which may be older than what a watch has told meanwhile.
func (d *Dispatcher) listedJob(j *batchv1.Job) {
	d.observeWork(j, "job/"+j.Name, jobwork.MayGetPods(j), true)
}

func (d *Dispatcher) listedPod(p *corev1.Pod) {
	d.observeWork(p, "pod/"+p.Name, jobwork.Lives(p), true)
}

// observeWork tells the picture of a sign of life that carries the labels of a run.
func (d *Dispatcher) observeWork(o client.Object, what string, lives, listed bool) {
	uid, queueName := types.UID(o.GetLabels()[batchv1alpha1.LabelRunUID]), o.GetLabels()[batchv1alpha1.LabelQueue]
	if uid == "" || queueName == "" {
		return
	}
	q := d.open(types.NamespacedName{Namespace: o.GetNamespace(), Name: queueName})
	q.mu.Lock()
	q.sign(uid, types.UID(o.GetLabels()[batchv1alpha1.LabelChain]), what, lives && !(listed && q.ended[sign{uid, what}]))
	q.mu.Unlock()
	d.wakes.wake(q.key)
}

// verify has the work of a run looked for past the cache, if its Job is gone and so is its record.
func (d *Dispatcher) verify(j *batchv1.Job) {
	uid := types.UID(j.Labels[batchv1alpha1.LabelRunUID])
	key := types.NamespacedName{Namespace: j.Namespace, Name: j.Labels[batchv1alpha1.LabelQueue]}
	if uid == "" || d.queueOf(uid, key) != nil || !jobwork.MayGetPods(j) {
		return
	}
	r := &batchv1alpha1.JobRun{}
	r.Namespace, r.Name, r.UID = j.Namespace, j.Labels[batchv1alpha1.LabelRun], uid
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Status.JobName = j.Name
	q := d.open(key)
	q.mu.Lock()
	q.sign(uid, types.UID(j.Labels[batchv1alpha1.LabelChain]), own, true)
	q.abandoned[uid] = abandoned{run: r}
	q.mu.Unlock()
}
