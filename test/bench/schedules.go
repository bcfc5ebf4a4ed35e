// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Party is a process whose use of the API server is measured.
type Party interface {
	// Usage is what it has used since its start.
	Usage(ctx context.Context) (Usage, error)
	// Stop ends it.
	Stop() error
}

// Scheduler is what makes things by the clock: Reprise, or Kubernetes' CronJob controller.
type Scheduler struct {
	// Queue is the name of the work queue that its schedules go through.
	Queue string
	// New is a schedule.
	New func(namespace, name, cron string) client.Object
	// Fired reports whether the status of a schedule says that it has fired.
	Fired func(schedule client.Object) bool
	// List is a list of its schedules.
	List func() client.ObjectList
	// Products is the kind of what it makes.
	Products schema.GroupVersionKind
}

// onePod is the work of all schedules: a pod that does nothing.
func onePod() batchv1.JobTemplateSpec {
	return batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.org/work"}}},
	}}}
}

// jobRun is the template of a run that works with pods.
func jobRun() batchv1alpha1.JobRunTemplateSpec {
	return batchv1alpha1.JobRunTemplateSpec{Work: &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{Template: onePod()}}}
}

// scheduledJobs are Reprise's.
func scheduledJobs() Scheduler {
	return Scheduler{
		Queue: "scheduledjob",
		New: func(namespace, name, cron string) client.Object {
			sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			sj.Spec.Schedule = cron
			sj.Spec.RunTemplate = ptr.To(jobRun())
			return sj
		},
		Fired: func(o client.Object) bool {
			sj, ok := o.(*batchv1alpha1.ScheduledJob)
			return ok && sj.Status.LastScheduleTime != nil
		},
		List:     func() client.ObjectList { return &batchv1alpha1.ScheduledJobList{} },
		Products: batchv1alpha1.GroupVersion.WithKind("JobRun"),
	}
}

// cronJobs are Kubernetes'.
func cronJobs() Scheduler {
	return Scheduler{
		Queue: "cronjob",
		New: func(namespace, name, cron string) client.Object {
			return &batchv1.CronJob{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       batchv1.CronJobSpec{Schedule: cron, TimeZone: ptr.To("Etc/UTC"), JobTemplate: onePod()},
			}
		},
		Fired: func(o client.Object) bool {
			cj, ok := o.(*batchv1.CronJob)
			return ok && cj.Status.LastScheduleTime != nil
		},
		List:     func() client.ObjectList { return &batchv1.CronJobList{} },
		Products: batchv1.SchemeGroupVersion.WithKind("Job"),
	}
}

// dueAfter returns the first full minute that is at least so far away, and a schedule that is due then and not again for a day.
func dueAfter(now time.Time, lead time.Duration) (due time.Time, cron string) {
	due = now.UTC().Add(lead).Truncate(time.Minute).Add(time.Minute)
	return due, fmt.Sprintf("%d %d * * *", due.Minute(), due.Hour())
}

// errLate says that the machine was too slow for what was to be ready by then.
var errLate = errors.New("it was due before everything was ready: the machine is too slow, or busy")

// Schedule makes n schedules that are all due in the same second, and returns when their scheduler knows all of them, and when
// that second is.
func (b *Bench) Schedule(ctx context.Context, s Scheduler, p Party, namespace string, n int, lead time.Duration) (due time.Time, err error) {
	due, cron := dueAfter(time.Now(), lead)
	err = Parallel(ctx, n, clients, func(ctx context.Context, i int) error {
		return b.Client.Create(ctx, s.New(namespace, scheduleName(i), cron))
	})
	if err != nil {
		return due, err
	}
	if _, err := Settled(ctx, func(u Usage) bool { return u.Added[s.Queue] >= float64(n) }, p); err != nil {
		return due, err
	}
	return due, early(due)
}

// early refuses what is due already.
func early(due time.Time) error {
	if time.Now().After(due) {
		return errLate
	}
	return nil
}

func scheduleName(i int) string { return fmt.Sprintf("tick-%05d", i) }

// Unschedule deletes n schedules. What they have made stays.
func (b *Bench) Unschedule(ctx context.Context, s Scheduler, namespace string, n int) error {
	return Parallel(ctx, n, clients, func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(b.Client.Delete(ctx, s.New(namespace, scheduleName(i), ""), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
}

const (
	// stillness is how long nothing must have happened for parties to be at rest.
	stillness = 2 * time.Second
	// glance is the time between two looks at what they have used, which costs them something.
	glance = 200 * time.Millisecond
)

// Settled waits until some parties have come so far and nothing more happens, and returns what they have used together.
func Settled(ctx context.Context, far func(Usage) bool, parties ...Party) (last Usage, err error) {
	var since, looked time.Time
	err = Until(ctx, "everything has settled", func() (bool, error) {
		if time.Since(looked) < glance {
			return false, nil
		}
		looked = time.Now()
		now, err := together(ctx, parties)
		if err != nil {
			return false, err
		}
		if now.Sum() != last.Sum() || now.added() != last.added() {
			since = looked
		}
		last = now
		return far(now) && looked.Sub(since) > stillness, nil
	})
	return last, err
}

// together is what some parties have used.
func together(ctx context.Context, parties []Party) (Usage, error) {
	all := Usage{Requests: map[string]float64{}, Added: map[string]float64{}}
	for _, p := range parties {
		u, err := p.Usage(ctx)
		if err != nil {
			return Usage{}, err
		}
		for method, n := range u.Requests {
			all.Requests[method] += n
		}
		for queue, n := range u.Added {
			all.Added[queue] += n
		}
		all.CPU += u.CPU
		all.Resident += u.Resident
	}
	return all, nil
}

// added is how often something was put into any queue.
func (u Usage) added() (all float64) {
	for _, n := range u.Added {
		all += n
	}
	return all
}
