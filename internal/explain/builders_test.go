// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// at is so many seconds after noon.
func at(seconds int) *metav1.Time {
	return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
}

type change func(*batchv1alpha1.JobRun)

// aRun is a Queued run with Job work in the queue main, created at noon.
func aRun(name string, changes ...change) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: *at(0), Generation: 1,
	}}
	r.Spec.Queue = "main"
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, c := range changes {
		c(r)
	}
	return r
}

func ofType(kind string) change         { return func(r *batchv1alpha1.JobRun) { r.Spec.Type = kind } }
func priority(p int32) change           { return func(r *batchv1alpha1.JobRun) { r.Spec.Priority = &p } }
func inQueue(name string) change        { return func(r *batchv1alpha1.JobRun) { r.Spec.Queue = name } }
func notBefore(s int) change            { return func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = at(s) } }
func cancelled(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }
func calling(r *batchv1alpha1.JobRun) {
	r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://example.com/"}}
}

func claiming(resource string, n int32) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.Claims = append(r.Spec.Claims, batchv1alpha1.ResourceClaim{Name: resource, Count: n})
	}
}

// submitted is the order of submission.
func submitted(version string) change {
	return func(r *batchv1alpha1.JobRun) { r.ResourceVersion = version }
}

// running has had its slot since so many seconds after noon.
func running(since int) change {
	return func(r *batchv1alpha1.JobRun) {
		c := run.Claim{Incarnation: &batchv1alpha1.Incarnation{ID: "m", Epoch: "1.1", Pod: &batchv1alpha1.PodIdentity{Namespace: "reprise-system", Name: "manager-0"}}}
		if r.Spec.Work.Job != nil {
			c.JobName = r.Name + "-job"
		} else {
			c.Deadline = ptr.To(at(600).Time)
		}
		c.Apply(r, at(since).Time)
	}
}

func cancelling(since int) change {
	return func(r *batchv1alpha1.JobRun) {
		running(since)(r)
		cancelled(r)
		run.BeginCancel(r, at(since).Time)
	}
}

// over has ended at so many seconds after noon.
func over(phase batchv1alpha1.JobRunPhase, reason string, ended int, stopped bool) change {
	return func(r *batchv1alpha1.JobRun) {
		run.Finish(r, phase, reason, "by the work", stopped, at(ended).Time)
		retry.Conclude(r, at(ended).Time)
	}
}

// childOf makes it the first retry of a root of that name.
func childOf(root string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.RetryOf, r.Spec.Attempt = root, 1
		r.Spec.Chain = &batchv1alpha1.Chain{RootName: root, RootUID: types.UID("uid-" + root), QueuedAt: *at(0), Sequence: 1, IdempotencyKey: root}
	}
}

func retriedBy(name string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: name, UID: types.UID("uid-" + name)}
	}
}

func ownedBy(kind, name string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: ptr.To(true)}}
	}
}

func says(kind string, status metav1.ConditionStatus, reason, message string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func aReservation(name, version string, changes ...func(*batchv1alpha1.DirectReservation)) *batchv1alpha1.DirectReservation {
	d := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version, CreationTimestamp: *at(0),
	}}
	d.Spec = batchv1alpha1.DirectReservationSpec{Queue: "main", LeaseDurationSeconds: 60, WaitTimeoutSeconds: 600, HolderIdentity: "ada"}
	d.Status.Phase = batchv1alpha1.ReservationPending
	for _, c := range changes {
		c(d)
	}
	return d
}

func active(d *batchv1alpha1.DirectReservation)  { reservation.Activate(d, "1.1", at(5).Time) }
func granted(d *batchv1alpha1.DirectReservation) { active(d); reservation.Grant(d, "1.1", at(10).Time) }

// aQueue is the queue main.
func aQueue(limit int32, changes ...func(*batchv1alpha1.JobQueue)) *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "main", UID: "uid-main"}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &limit}
	for _, c := range changes {
		c(q)
	}
	return q
}

func withType(name string, limit int32) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.Concurrency.Types = append(q.Spec.Concurrency.Types, batchv1alpha1.TypeConcurrency{Name: name, Limit: &limit})
	}
}

func withResource(name string, capacity int32) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.Concurrency.Resources = append(q.Spec.Concurrency.Resources, batchv1alpha1.QueueResource{Name: name, Capacity: capacity})
	}
}

func suspended(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true }

func labelsOf(r *batchv1alpha1.JobRun) map[string]string {
	return map[string]string{
		batchv1alpha1.LabelRun: r.Name, batchv1alpha1.LabelRunUID: string(r.UID),
		batchv1alpha1.LabelChain: string(run.ChainUID(r)), batchv1alpha1.LabelQueue: "main",
	}
}

func aJob(r *batchv1alpha1.JobRun, changes ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Name + "-job", Labels: labelsOf(r)}}
	for _, c := range changes {
		c(j)
	}
	return j
}

func aPod(r *batchv1alpha1.JobRun, phase corev1.PodPhase, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: r.Name + "-pod", Labels: labelsOf(r), CreationTimestamp: *at(0)}}
	p.Spec.NodeName, p.Status.Phase = "node-3", phase
	for _, c := range changes {
		c(p)
	}
	return p
}

func terminating(p *corev1.Pod) {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = at(30), ptr.To[int64](30)
}

func waitingFor(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func unschedulable(p *corev1.Pod) {
	p.Spec.NodeName = ""
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
}

// seen is a snapshot of all those objects.
func seen(objects ...any) Snapshot {
	s := Snapshot{Namespace: "ns"}
	for _, o := range objects {
		switch o := o.(type) {
		case *batchv1alpha1.JobRun:
			s.Runs = append(s.Runs, *o)
		case *batchv1alpha1.DirectReservation:
			s.Reservations = append(s.Reservations, *o)
		case *batchv1alpha1.JobQueue:
			s.Queues = append(s.Queues, *o)
		case *batchv1alpha1.ScheduledJob:
			s.ScheduledJobs = append(s.ScheduledJobs, *o)
		case *batchv1alpha1.JobGroup:
			s.Groups = append(s.Groups, *o)
		case *batchv1.Job:
			s.Jobs = append(s.Jobs, *o)
		case *corev1.Pod:
			s.Pods = append(s.Pods, *o)
		case string:
			s.Unread = append(s.Unread, o)
		default:
			panic("what is that?")
		}
	}
	return s
}
