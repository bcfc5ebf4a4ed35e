// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
	"reprise.dev/reprise/internal/retry"
)

// +kubebuilder:rbac:groups=batch.reprise.dev,resources=jobgroups,verbs=get;list;watch

// A creation cannot be fenced: it may land after the object it makes was made, recorded and deleted again. So a run that a
// controller creates is executed only if its creator's status names its UID (design section 6.4).

// creator asks the creator of the run about it. It reports true if the run has to wait for the answer or was set aside.
func (s *scope) creator(ctx context.Context) (ctrl.Result, bool, error) {
	switch {
	case s.run.Spec.RetryOf != "":
		return s.parent(ctx)
	case s.run.Spec.ScheduledTime != nil:
		return s.schedule(ctx)
	case s.run.Spec.GroupRef != nil:
		return s.group(ctx)
	default:
		return ctrl.Result{}, false, nil
	}
}

func (s *scope) parent(ctx context.Context) (ctrl.Result, bool, error) {
	parent, err := s.sibling(ctx, s.run.Spec.RetryOf)
	if parent != nil && !retry.Names(parent, s.run) {
		if v := creator.OfParent(parent, s.run); s.early(v) || s.rush.explains(v, request(s.run.Namespace, s.run.Spec.RetryOf)) || s.underway(v, parent) {
			return s.heed(ctx, v)
		}
		// What sets a run aside for good is not taken from a cache that may be behind.
		parent, err = s.live(ctx, s.run.Spec.RetryOf)
	}
	if err != nil {
		return ctrl.Result{}, true, err
	}
	return s.heed(ctx, creator.OfParent(parent, s.run))
}

// sibling returns a run of the namespace, from the cache or, where that has none, from a live read; nil if there is none.
func (s *scope) sibling(ctx context.Context, name string) (*batchv1alpha1.JobRun, error) {
	other := &batchv1alpha1.JobRun{}
	if there, err := s.read(ctx, name, other); !there || err != nil {
		return nil, err
	}
	return other, nil
}

// live returns a run of the namespace from a live read; nil if there is none.
func (s *scope) live(ctx context.Context, name string) (*batchv1alpha1.JobRun, error) {
	other := &batchv1alpha1.JobRun{}
	err := s.Live.Get(ctx, s.key(name), other)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return other, err
}

func (s *scope) schedule(ctx context.Context) (ctrl.Result, bool, error) {
	sj, err := s.scheduledJob(ctx, s.run.Spec.ScheduledJobRef.Name)
	if err != nil {
		return ctrl.Result{}, true, err
	}
	ask := func(sj *batchv1alpha1.ScheduledJob) creator.Verdict {
		return creator.OfTick(sj, creator.Of(s.run), s.run.Spec.ScheduledTime.Time)
	}
	verdict := ask(sj)
	if !verdict.Final() && !s.early(verdict) {
		// The cache may be behind the fire that made the run.
		live := &batchv1alpha1.ScheduledJob{} // a read into the cached one would keep what that alone has
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(sj), live); err != nil {
			return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, true, client.IgnoreNotFound(err)
		}
		verdict = ask(live)
	}
	return s.heed(ctx, verdict)
}

// group asks the JobGroup whose member the run says it is.
func (s *scope) group(ctx context.Context) (ctrl.Result, bool, error) {
	g, err := s.jobGroup(ctx, s.run.Spec.GroupRef.Name)
	if err != nil {
		return ctrl.Result{}, true, err
	}
	ask := func(g *batchv1alpha1.JobGroup) creator.Verdict {
		return creator.OfMember(g, creator.Of(s.run), s.run.Spec.GroupRef.Member)
	}
	verdict := ask(g)
	if !verdict.Final() && !s.early(verdict) {
		// The cache may be behind the record of the run.
		live := &batchv1alpha1.JobGroup{}
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(g), live); err != nil {
			return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, true, client.IgnoreNotFound(err)
		}
		verdict = ask(live)
	}
	return s.heed(ctx, verdict)
}

// early reports whether the creator may just not have come to record the run, which nearly every run is seen before: the event of
// the record brings it back. A clock that was set says nothing of its age.
func (s *scope) early(v creator.Verdict) bool {
	return v.Answer == creator.Unrecorded && s.now.Sub(s.run.CreationTimestamp.Time).Abs() < mostLag
}

// underway reports whether the cache has yet to show a write of this process to the parent, which may be the record: the event of it
// brings the retry back.
func (s *scope) underway(v creator.Verdict, parent *batchv1alpha1.JobRun) bool {
	return s.written.after(parent) && v.Answer == creator.Unrecorded
}

// heed does what the creator says. It reports true if the run has to wait, or was set aside.
func (s *scope) heed(ctx context.Context, v creator.Verdict) (ctrl.Result, bool, error) {
	switch v.Answer {
	case creator.Named, creator.Gone:
		// The queue asks the cache, which may never come to show the version that names the run.
		s.Queues.Confirm(s.run)
		return ctrl.Result{}, false, nil
	case creator.Refused:
		return ctrl.Result{}, true, s.skip(ctx, v.Reason, v.Message)
	default:
		return ctrl.Result{RequeueAfter: creatorPatience, Priority: new(0)}, true, nil
	}
}

// jobGroup returns a JobGroup from the cache or, where that has none, from a live read; nil if there is none.
func (s *scope) jobGroup(ctx context.Context, name string) (*batchv1alpha1.JobGroup, error) {
	g := &batchv1alpha1.JobGroup{}
	if there, err := s.read(ctx, name, g); !there || err != nil {
		return nil, err
	}
	return g, nil
}

func (s *scope) skip(ctx context.Context, reason, message string) error {
	return s.finish(ctx, end{phase: batchv1alpha1.JobRunSkipped, reason: reason, message: message, stopped: true})
}
