// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// answerPatience is when a ScheduledJob whose run still waits for its answer is looked at again, should an event be missed.
const answerPatience = 10 * time.Second

// expiry returns when the ScheduledJob is to be deleted: ttlSecondsAfterFired after its one tick was fired, or given up as
// too late, since nothing more will come of it then either. It reports false if it is not to be, or not yet known.
func expiry(sj *batchv1alpha1.ScheduledJob) (time.Time, bool) {
	ttl, fired := sj.Spec.TTLSecondsAfterFired, sj.Status.FiredAt
	if ttl == nil || fired == nil || sj.Spec.RunAt == nil || !sj.Spec.RunAt.Equal(sj.Status.FiredRunAt) {
		return time.Time{}, false
	}
	return fired.Add(time.Duration(*ttl) * time.Second), true
}

// expire deletes the ScheduledJob when it is time. The precondition makes the version that was read the present one, so
// what is deleted has its fire on record.
func (s *scope) expire(ctx context.Context) (ctrl.Result, error) {
	if at, _ := expiry(s.sj); at.After(s.now) {
		return ctrl.Result{RequeueAfter: min(at.Sub(s.now), farthest)}, nil
	}
	if answered, err := s.answered(ctx); !answered || err != nil {
		return ctrl.Result{RequeueAfter: answerPatience}, err
	}
	err := s.Client.Delete(ctx, s.sj, client.Preconditions{UID: &s.sj.UID, ResourceVersion: &s.sj.ResourceVersion}, s.propagation())
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting ScheduledJob %s/%s, which has fired: %w", s.sj.Namespace, s.sj.Name, err)
	}
	s.log.Info("deleted after its fire", "run", s.sj.Status.LastRunName, "ttlSecondsAfterFired", *s.sj.Spec.TTLSecondsAfterFired)
	return ctrl.Result{}, nil
}

// answered reports whether the run of the one tick has learnt from the ScheduledJob what becomes of it. Once that is gone
// nothing keeps the run from being executed, which must not happen to one that overlap forbade.
func (s *scope) answered(ctx context.Context) (bool, error) {
	tick := s.sj.Spec.RunAt.Time
	if slices.ContainsFunc(s.sj.Status.Active, func(a batchv1alpha1.ActiveRun) bool { return a.ScheduledTime.Time.Equal(tick) }) {
		return true, nil
	}
	for n := range int32(collisions + 1) {
		r := &batchv1alpha1.JobRun{}
		err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.sj.Namespace, Name: runName(s.sj.Name, tick, n)}, r)
		switch {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, err
		case isRunOf(r, s.sj, tick):
			return r.Status.Phase != batchv1alpha1.JobRunQueued, nil
		}
	}
	return true, nil
}

// propagation keeps the runs, which outlive the ScheduledJob: those that were created when it was not yet to be deleted are
// owned by it and would go with it. Orphaning them needs the garbage collector, so it is asked for only then.
func (s *scope) propagation() client.PropagationPolicy {
	for i := range s.runs {
		if metav1.IsControlledBy(&s.runs[i], s.sj) {
			return client.PropagationPolicy(metav1.DeletePropagationOrphan)
		}
	}
	return client.PropagationPolicy(metav1.DeletePropagationBackground)
}
