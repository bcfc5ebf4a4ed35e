// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/memoryapi"
)

// trackingFinalizer keeps a pod until the Job controller has counted it.
const trackingFinalizer = "batch.kubernetes.io/job-tracking"

// stir has the world look at what has changed.
func (s *sim) stir(e memoryapi.Event) {
	switch o := e.Object.(type) {
	case *batchv1.Job:
		s.lookAtJob(client.ObjectKeyFromObject(o), s.jobDelay(o.Name, e.RV))
	case *corev1.Pod:
		s.lookAtPod(client.ObjectKeyFromObject(o), 0)
		if owner := metav1.GetControllerOf(o); owner != nil {
			s.lookAtJob(client.ObjectKey{Namespace: o.Namespace, Name: owner.Name}, s.jobDelay(owner.Name, e.RV))
		}
	}
	if !s.jobs["gc"] {
		s.jobs["gc"] = true
		s.after(s.chance.of("gc").nth(int(e.RV)).between(100*time.Millisecond, 20*time.Second), "gc", func() {
			s.jobs["gc"] = false
			if s.server.CollectGarbage() > 0 {
				s.changed()
			}
		})
	}
}

// jobDelay is how far the Job controller is behind.
func (s *sim) jobDelay(name string, version int64) time.Duration {
	c := s.chance.of("job controller " + name).nth(int(version))
	if s.calm.Load() || !c.hits(0.15) {
		return c.between(time.Millisecond, 50*time.Millisecond)
	}
	return c.between(50*time.Millisecond, 8*time.Second)
}

func (s *sim) lookAtJob(key client.ObjectKey, in time.Duration) {
	name := "job controller " + key.String()
	if s.jobs[name] {
		return
	}
	s.jobs[name] = true
	s.after(in, name, func() {
		s.jobs[name] = false
		s.syncJob(key)
		s.changed()
	})
}

// syncJob does what the Job controller of Kubernetes does, as far as the product relies on it.
func (s *sim) syncJob(key client.ObjectKey) {
	ctx := context.Background()
	job := &batchv1.Job{}
	if s.direct.Get(ctx, key, job) != nil {
		s.release(key, "")
		return
	}
	s.release(key, string(job.UID))
	if job.DeletionTimestamp != nil || over(job) {
		return
	}
	pods := s.podsOf(job)
	live := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return ended(&p) })
	before := fmt.Sprint(job.Status)
	s.judge(job, pods, live)
	switch {
	case ptr.Deref(job.Spec.Suspend, false):
		s.removePods(live)
		if !over(job) {
			setCondition(job, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "")
			job.Status.StartTime = nil
		}
	case decided(job):
		s.removePods(live)
	default:
		s.proceed(job, live)
	}
	job.Status.Active = int32(len(live))
	if fmt.Sprint(job.Status) != before {
		s.must(s.direct.Status().Update(ctx, job))
	}
}

// proceed has the work of a Job begin, or go on.
func (s *sim) proceed(job *batchv1.Job, live []corev1.Pod) {
	if condition(job, batchv1.JobSuspended) {
		setCondition(job, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "")
	}
	if job.Status.StartTime == nil {
		job.Status.StartTime = ptr.To(metav1.NewTime(s.now()))
		if d := job.Spec.ActiveDeadlineSeconds; d != nil {
			key := client.ObjectKeyFromObject(job)
			s.after(time.Duration(*d)*time.Second+time.Millisecond, "deadline "+key.String(), func() { s.lookAtJob(key, 0) })
		}
	}
	if len(live) == 0 && job.Status.Failed == 0 {
		s.makePod(job)
	}
}

// judge writes how the Job stands: first that it is decided, and once no pod lives that it is over.
func (s *sim) judge(job *batchv1.Job, pods, live []corev1.Pod) {
	for _, p := range pods {
		if decided(job) {
			break
		}
		switch p.Status.Phase {
		case corev1.PodSucceeded:
			setCondition(job, batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "")
			job.Status.Succeeded = 1
		case corev1.PodFailed:
			setCondition(job, batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
			job.Status.Failed = 1
		default:
		}
	}
	if !decided(job) && s.late(job) {
		setCondition(job, batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	}
	if decided(job) && len(live) == 0 {
		s.finishJob(job)
	}
}

// finishJob writes that a Job is over, for the reason that it is decided.
func (s *sim) finishJob(job *batchv1.Job) {
	end, target := batchv1.JobComplete, batchv1.JobSuccessCriteriaMet
	if condition(job, batchv1.JobFailureTarget) {
		end, target = batchv1.JobFailed, batchv1.JobFailureTarget
	}
	for _, c := range job.Status.Conditions {
		if c.Type == target {
			if end == batchv1.JobComplete {
				job.Status.CompletionTime = ptr.To(metav1.NewTime(s.now()))
			}
			if job.Status.StartTime == nil {
				job.Status.StartTime = ptr.To(metav1.NewTime(s.now()))
			}
			setCondition(job, end, corev1.ConditionTrue, c.Reason, c.Message)
			return
		}
	}
}

// decided reports whether it is known how a Job ends.
func decided(job *batchv1.Job) bool {
	return condition(job, batchv1.JobFailureTarget) || condition(job, batchv1.JobSuccessCriteriaMet)
}

// late reports whether a Job has gone on for longer than it may.
func (s *sim) late(job *batchv1.Job) bool {
	d := job.Spec.ActiveDeadlineSeconds
	return d != nil && job.Status.StartTime != nil && !ptr.Deref(job.Spec.Suspend, false) && s.now().Sub(job.Status.StartTime.Time) >= time.Duration(*d)*time.Second
}

// makePod makes the one pod of a Job.
func (s *sim) makePod(job *batchv1.Job) {
	n := s.calls["pods of "+string(job.UID)]
	s.calls["pods of "+string(job.UID)]++
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = job.Namespace, fmt.Sprintf("%s-%d", job.Name, n)
	pod.Finalizers = []string{trackingFinalizer}
	if job.Spec.ActiveDeadlineSeconds == nil || !s.chance.of("node for "+pod.Name).hits(0.2) {
		pod.Spec.NodeName = "node" // there is no scheduler: a pod is bound at once, or never
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	if err := s.direct.Create(context.Background(), pod); err != nil {
		s.trace("the Job controller cannot make %s: %v", pod.Name, err)
	}
}

func (s *sim) removePods(pods []corev1.Pod) {
	for i := range pods {
		if pods[i].DeletionTimestamp == nil {
			s.must(s.direct.Delete(context.Background(), &pods[i]))
		}
	}
}

// release lets go of pods that have ended, and of those whose Job is gone.
func (s *sim) release(key client.ObjectKey, job string) {
	ctx := context.Background()
	pods := &corev1.PodList{}
	_ = s.direct.List(ctx, pods, client.InNamespace(key.Namespace))
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		if owner == nil || owner.Name != key.Name || !slices.Contains(p.Finalizers, trackingFinalizer) {
			continue
		}
		if orphan := string(owner.UID) != job; orphan || (ended(p) && p.DeletionTimestamp != nil && s.counted(p)) {
			p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == trackingFinalizer })
			s.must(s.direct.Update(ctx, p))
		}
	}
}

// counted reports whether the Job's status shows the end of the pod.
func (s *sim) counted(p *corev1.Pod) bool {
	job := &batchv1.Job{}
	if s.direct.Get(context.Background(), client.ObjectKey{Namespace: p.Namespace, Name: metav1.GetControllerOf(p).Name}, job) != nil {
		return true
	}
	return job.Status.Failed+job.Status.Succeeded > 0
}

func (s *sim) podsOf(job *batchv1.Job) []corev1.Pod {
	pods := &corev1.PodList{}
	_ = s.direct.List(context.Background(), pods, client.InNamespace(job.Namespace))
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, job) })
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func over(job *batchv1.Job) bool {
	return condition(job, batchv1.JobComplete) || condition(job, batchv1.JobFailed)
}

func condition(job *batchv1.Job, t batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

func setCondition(job *batchv1.Job, t batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == t {
			if c.Status != status {
				c.Status, c.Reason, c.Message = status, reason, message
			}
			return
		}
	}
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: t, Status: status, Reason: reason, Message: message})
}
