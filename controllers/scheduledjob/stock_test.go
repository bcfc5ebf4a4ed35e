// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// stock is the runs and groups of a machine: an API server, and the controllers that carry them through their life.
type stock struct {
	objects map[string]client.Object
	// born counts the objects, births numbers them.
	born   int
	births map[types.UID]int
}

func newStock() stock { return stock{objects: map[string]client.Object{}, births: map[types.UID]int{}} }

// key is what an object is stored under: a run and a group may have one name.
func key(o client.Object) string { return fmt.Sprintf("%T %s", o, o.GetName()) }

func (s *stock) add(o client.Object, now time.Time) {
	s.born++
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.born)))
	o.SetCreationTimestamp(metav1.NewTime(now))
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		o.Status.Phase = batchv1alpha1.JobRunQueued
	case *batchv1alpha1.JobGroup:
		o.Status.Phase = batchv1alpha1.JobGroupPending
	}
	s.births[o.GetUID()] = s.born
	s.objects[key(o)] = o
}

// seen are copies of those objects, as products of their own, that the filter lets pass, put together as they belong.
func (s *stock) seen(shown func(product) bool) []product {
	var runs []batchv1alpha1.JobRun
	var groups []batchv1alpha1.JobGroup
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if !shown(productOf(s.objects[k])) {
			continue
		}
		switch o := s.objects[k].DeepCopyObject().(type) {
		case *batchv1alpha1.JobRun:
			runs = append(runs, *o)
		case *batchv1alpha1.JobGroup:
			groups = append(groups, *o)
		}
	}
	return products(runs, groups)
}

// one draws one of the objects of which something holds; nil if there is none.
func (s *stock) one(t *rapid.T, holds func(client.Object) bool) client.Object {
	var keys []string
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if holds(s.objects[k]) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return s.objects[rapid.SampledFrom(keys).Draw(t, "object")]
}

// stands returns the phase of an object, that of a group in the words of runs, and whether it was asked to end.
func stands(o client.Object) (phase batchv1alpha1.JobRunPhase, asked bool) {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		return o.Status.Phase, o.Status.Halt != nil
	case *batchv1alpha1.JobGroup:
		if o.Status.Phase == batchv1alpha1.JobGroupPending {
			return batchv1alpha1.JobRunQueued, o.Status.Halt != nil
		}
		return batchv1alpha1.JobRunPhase(o.Status.Phase), o.Status.Halt != nil
	default:
		return "", false
	}
}

func waiting(o client.Object) bool {
	phase, _ := stands(o)
	return phase == batchv1alpha1.JobRunQueued
}

func atWork(o client.Object) bool {
	phase, _ := stands(o)
	return phase == batchv1alpha1.JobRunRunning
}

// asked reports whether the object is still to end as it was asked to.
func asked(o client.Object) bool {
	phase, asked := stands(o)
	return asked && !phase.Terminal()
}

// retriable reports whether the object is a failed run whose retry is yet to be made.
func retriable(o client.Object) bool {
	r, ok := o.(*batchv1alpha1.JobRun)
	return ok && r.Status.Phase == batchv1alpha1.JobRunFailed && len(r.Status.Conditions) == 0 && r.Status.Retry == nil
}

func begin(o client.Object) {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		running(o)
	case *batchv1alpha1.JobGroup:
		o.Status.Phase = batchv1alpha1.JobGroupRunning
	}
}

// finish gives an object its end, and the first run of its chain the chain's.
func (s *stock) finish(o client.Object, phase batchv1alpha1.JobRunPhase) {
	switch o := o.(type) {
	case *batchv1alpha1.JobGroup:
		o.Status.Phase = batchv1alpha1.JobGroupPhase(phase)
	case *batchv1alpha1.JobRun:
		ended(phase)(o)
		s.tell(o, o.Status.Conditions)
	}
}

// remove deletes an object. With its retry a chain comes to its end.
func (s *stock) remove(o client.Object) {
	delete(s.objects, key(o))
	if r, ok := o.(*batchv1alpha1.JobRun); ok {
		s.tell(r, []metav1.Condition{{Type: batchv1alpha1.ConditionFailed, Status: metav1.ConditionTrue}})
	}
}

// tell has the first run of the chain of a retry say how that ended.
func (s *stock) tell(retry *batchv1alpha1.JobRun, conditions []metav1.Condition) {
	for _, o := range s.objects {
		if r, ok := o.(*batchv1alpha1.JobRun); ok && retry.Spec.Chain != nil && r.UID == retry.Spec.Chain.RootUID {
			r.Status.Conditions = conditions
		}
	}
}
