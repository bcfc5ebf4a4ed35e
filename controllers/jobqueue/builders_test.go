// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/run"
)

var (
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	before  = epoch.New(noon, 1).String()
	mine    = epoch.New(noon, 2).String()
	mainKey = types.NamespacedName{Namespace: "ns", Name: "main"}
)

type change func(*batchv1alpha1.JobRun)

// aRun is a run with Job work in the queue main, as the API server stores it.
func aRun(name string, changes ...change) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon), Generation: 1}}
	r.Spec.Queue = "main"
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, c := range changes {
		c(r)
	}
	return r
}

func calling(r *batchv1alpha1.JobRun) {
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{}}
}

func priority(p int32) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.Priority = &p }
}

func notBefore(t time.Time) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = &metav1.Time{Time: t} }
}

func inQueue(name string) change {
	return func(r *batchv1alpha1.JobRun) { r.Spec.Queue = name }
}

// childOf makes it the automatic retry of a root of that name.
func childOf(root string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryOf, r.Spec.Attempt = root, 1
		r.Spec.Chain = &batchv1alpha1.Chain{RootName: root, RootUID: types.UID(root), QueuedAt: metav1.NewTime(noon), Sequence: 1, IdempotencyKey: root}
	}
}

// tickOf makes it a run that a ScheduledJob has fired and owns.
func tickOf(schedule string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.ScheduledJobRef, r.Spec.ScheduledTime = &batchv1alpha1.ObjectName{Name: schedule}, &metav1.Time{Time: noon}
		r.OwnerReferences = []metav1.OwnerReference{{Kind: "ScheduledJob", Name: schedule, UID: types.UID(schedule), Controller: ptr.To(true)}}
	}
}

// claimedBy is claimed by the manager of that ID under the epoch.
func claimedBy(id, e string) change {
	return func(r *batchv1alpha1.JobRun) {
		run.Claim{Incarnation: &batchv1alpha1.Incarnation{ID: id, Epoch: e}, JobName: r.Name + "-job"}.Apply(r, noon)
	}
}

func endedAs(phase batchv1alpha1.JobRunPhase, stopped bool) change {
	return func(r *batchv1alpha1.JobRun) { run.Finish(r, phase, "Reason", "message", stopped, noon) }
}

// aQueue is the queue main.
func aQueue(limit int32) *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "main", UID: "main", Generation: 1}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &limit}
	return q
}

// aReservation is one for the queue main, as the API server stores it.
func aReservation(name string) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon), Generation: 1,
	}}
	d.Spec = batchv1alpha1.DirectReservationSpec{Queue: "main", LeaseDurationSeconds: 60, WaitTimeoutSeconds: 600}
	d.Status.Phase = batchv1alpha1.ReservationPending
	return d
}

// aSchedule is a ScheduledJob that has recorded those runs.
func aSchedule(name string, recorded ...string) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	for _, r := range recorded {
		sj.Status.Active = append(sj.Status.Active, batchv1alpha1.ActiveRun{Name: r, UID: types.UID(r)})
	}
	return sj
}

func labelsOf(r *batchv1alpha1.JobRun) map[string]string {
	return map[string]string{
		batchv1alpha1.LabelRun: r.Name, batchv1alpha1.LabelRunUID: string(r.UID),
		batchv1alpha1.LabelChain: string(run.ChainUID(r)), batchv1alpha1.LabelQueue: run.Queue(r),
	}
}

// aJob works for the run.
func aJob(r *batchv1alpha1.JobRun, changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Name + "-job", UID: types.UID(r.Name + "-job"), Labels: labelsOf(r)}}
	for _, c := range changes {
		c(j)
	}
	return j
}

// aPod works for the run.
func aPod(r *batchv1alpha1.JobRun, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Name + "-pod", UID: types.UID(r.Name + "-pod"), Labels: labelsOf(r)}}
	p.Spec.NodeName, p.Status.Phase = "node", phase
	return p
}

// missed is what a watch hands over of an object whose deletion it did not see.
func missed(o any) cache.DeletedFinalStateUnknown { return cache.DeletedFinalStateUnknown{Obj: o} }
