// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/run"
)

// creatorPatience is when a run whose creator has not recorded it yet is looked at again, should an event be missed.
const creatorPatience = 30 * time.Second

// queued deals with what can befall a run that waits. Most runs need nothing: their queue admits them.
func (s *scope) queued(ctx context.Context) (ctrl.Result, error) {
	if halt := run.Halted(s.run); halt != nil {
		return ctrl.Result{}, s.giveUp(ctx, halt)
	}
	reason, message, err := s.missingOwner(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if reason != "" {
		return s.hold(ctx, reason, message)
	}
	if run.Template(s.run) == nil {
		return s.resolve(ctx)
	}
	if run.Template(s.run).Work == nil {
		return ctrl.Result{}, s.skip(ctx, batchv1alpha1.ReasonInvalidWork, noWork)
	}
	if result, done, err := s.creator(ctx); done || err != nil {
		return result, err
	}
	queue, err := s.queue(ctx)
	if queue == nil || err != nil {
		return s.missingQueue(ctx, err)
	}
	if why, fits := s.fits(queue); !fits {
		_, err := s.hold(ctx, why.Code, why.Message+"; the run waits for the queue to change")
		return ctrl.Result{}, err // the dispatcher tells when it has
	}
	return ctrl.Result{}, s.unhold(ctx)
}

// giveUp ends a run that has not started.
func (s *scope) giveUp(ctx context.Context, halt *batchv1alpha1.Halt) error {
	if err := s.join(ctx); err != nil {
		return err
	}
	return s.finish(ctx, end{phase: halt.Phase, reason: halt.Reason, message: halt.Message + "; the run had not started", stopped: true})
}

// hold makes the reason of a wait visible; nothing goes on without a person.
func (s *scope) hold(ctx context.Context, reason, message string) (ctrl.Result, error) {
	if !run.Hold(s.run.DeepCopy(), reason, message, s.now) {
		return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, nil
	}
	err := s.write(ctx, func(r *batchv1alpha1.JobRun) { run.Hold(r, reason, message, s.now) })
	if err == nil {
		s.event(corev1.EventTypeWarning, reason, "Hold", message)
	}
	return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, err
}

func (s *scope) unhold(ctx context.Context) error {
	if !run.Held(s.run) {
		return nil
	}
	return s.write(ctx, func(r *batchv1alpha1.JobRun) { run.Unhold(r) })
}

// missingOwner says why a run whose recorded owner does not exist is held: it comes from a backup that was restored without
// its owner, and perhaps without its status, so it may have run already.
func (s *scope) missingOwner(ctx context.Context) (reason, message string, err error) {
	owner := metav1.GetControllerOf(s.run)
	if owner == nil {
		return "", "", nil
	}
	there, err := s.owns(ctx, owner)
	if there || err != nil {
		return "", "", err
	}
	return batchv1alpha1.ReasonOwnerNotFound, fmt.Sprintf("its owner, %s %s with UID %s, does not exist; if this run comes from a backup, "+
		"create a new run in its place, or remove metadata.ownerReferences to let this one run", owner.Kind, owner.Name, owner.UID), nil
}

// owns reports whether an owner of a kind of ours exists. What the cache has not, or has of a namesake, is read live. Of other
// kinds nothing is known.
func (s *scope) owns(ctx context.Context, owner *metav1.OwnerReference) (bool, error) {
	fresh := map[string]func() client.Object{
		"ScheduledJob": func() client.Object { return &batchv1alpha1.ScheduledJob{} },
		"JobGroup":     func() client.Object { return &batchv1alpha1.JobGroup{} },
	}[owner.Kind]
	if fresh == nil {
		return true, nil
	}
	for _, from := range []client.Reader{s.Client, s.Live} {
		there := fresh()
		err := from.Get(ctx, s.key(owner.Name), there)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && there.GetUID() == owner.UID {
			return true, nil
		}
	}
	return false, nil
}

// scheduledJob returns a ScheduledJob, nil if there is none.
func (s *scope) scheduledJob(ctx context.Context, name string) (*batchv1alpha1.ScheduledJob, error) {
	sj := &batchv1alpha1.ScheduledJob{}
	if there, err := s.read(ctx, name, sj); !there || err != nil {
		return nil, err
	}
	return sj, nil
}

// read reads an object from the cache or, where that has none, live. It reports false if there is none.
func (s *scope) read(ctx context.Context, name string, into client.Object) (bool, error) {
	err := s.Client.Get(ctx, s.key(name), into)
	if apierrors.IsNotFound(err) {
		err = s.Live.Get(ctx, s.key(name), into)
	}
	return err == nil, client.IgnoreNotFound(err)
}

// fits reports whether the queue can ever admit the run as it is, and if not, why.
func (s *scope) fits(queue *batchv1alpha1.JobQueue) (admission.Reason, bool) {
	t := run.Template(s.run)
	return admission.Fit(admission.LimitsOf(queue), t.Type, admission.ClaimsOf(t.Claims))
}

// missingQueue holds a run whose queue does not exist. The queue "default" does not: the dispatcher creates it.
func (s *scope) missingQueue(ctx context.Context, err error) (ctrl.Result, error) {
	name := run.Queue(s.run)
	if err != nil || name == batchv1alpha1.DefaultQueue {
		return ctrl.Result{}, err
	}
	_, err = s.hold(ctx, batchv1alpha1.ReasonQueueNotFound, fmt.Sprintf("JobQueue %s does not exist in namespace %s; the run waits for it", name, s.run.Namespace))
	return ctrl.Result{}, err // the dispatcher tells when the queue is there
}
