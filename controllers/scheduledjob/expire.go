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

// answerPatience is when a ScheduledJob whose run or group still waits for its answer is looked at again, should an event be missed.
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
	s.log.Info("deleted after its fire", "fired", s.sj.Status.LastRunName, "ttlSecondsAfterFired", *s.sj.Spec.TTLSecondsAfterFired)
	return ctrl.Result{}, nil
}

// answered reports whether what the one tick has made has learnt from the ScheduledJob what becomes of it. Once that is gone
// nothing keeps it from being executed, which must not happen to what overlap forbade.
func (s *scope) answered(ctx context.Context) (bool, error) {
	tick := s.sj.Spec.RunAt.Time
	if slices.ContainsFunc(s.sj.Status.Active, func(a batchv1alpha1.ActiveRun) bool { return a.ScheduledTime.Time.Equal(tick) }) {
		return true, nil
	}
	for _, kind := range kinds() {
		if waits, err := s.waits(ctx, kind, tick); waits || err != nil {
			return false, err
		}
	}
	return true, nil
}

// waits reports whether there is a product of that kind that the tick has made and of which nothing has begun.
func (s *scope) waits(ctx context.Context, kind client.Object, tick time.Time) (bool, error) {
	for n := range int32(collisions + 1) {
		there := blank(kind)
		err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.sj.Namespace, Name: productName(s.sj.Name, tick, n)}, there)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if made := productOf(there); made.isFireOf(s.sj, tick) {
			return made.waits, nil
		}
	}
	return false, nil
}

// propagation keeps what was made, which outlives the ScheduledJob: what was created when that was not yet to be deleted is
// owned by it and would go with it. Orphaning it needs the garbage collector, so it is asked for only then.
func (s *scope) propagation() client.PropagationPolicy {
	for _, p := range s.products {
		if slices.ContainsFunc(p.parts, func(o client.Object) bool { return metav1.IsControlledBy(o, s.sj) }) {
			return client.PropagationPolicy(metav1.DeletePropagationOrphan)
		}
	}
	return client.PropagationPolicy(metav1.DeletePropagationBackground)
}
