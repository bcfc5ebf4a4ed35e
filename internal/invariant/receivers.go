// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// named is a receiver with the events that it wants to hear of; none: of all.
type named struct {
	receiver
	events []batchv1alpha1.EventType
}

func (n named) wants(event string) bool {
	return len(n.events) == 0 || slices.Contains(n.events, batchv1alpha1.EventType(event))
}

// receivers are those that the queue and the ScheduledJob of a subject, which must be older than that version and still there, have
// always named, and as they are now.
func (w *world) receivers(namespace string, s subject, since uint64) []named {
	all := lasting(w.queues.named(namespace, s.queue), since, false, func(q *batchv1alpha1.JobQueue) *batchv1alpha1.Notifications {
		return q.Spec.Notifications
	})
	if s.scheduledJob == "" {
		return all
	}
	return append(all, lasting(w.schedules.named(namespace, s.scheduledJob), since, true, func(sj *batchv1alpha1.ScheduledJob) *batchv1alpha1.Notifications {
		return sj.Spec.Notifications
	})...)
}

func lasting[T client.Object](by []*life[T], since uint64, scheduledJob bool, of func(T) *batchv1alpha1.Notifications) []named {
	var all []named
	for _, l := range by {
		if l.gone != nil || l.first().rv > since || of(l.last()) == nil {
			continue
		}
		for _, r := range of(l.last()).Receivers {
			if always(l, r, of) {
				all = append(all, named{receiver{r.Name, scheduledJob}, r.Events})
			}
		}
	}
	return all
}

// always reports whether the object named the receiver, at one address and for the same events, in all its versions.
func always[T client.Object](l *life[T], r batchv1alpha1.NotificationReceiver, of func(T) *batchv1alpha1.Notifications) bool {
	generation := int64(0)
	for _, s := range l.states {
		then := called(of(s.object), r.Name)
		if then == nil || then.URL != r.URL || !slices.Equal(then.Events, r.Events) || s.object.GetGeneration() > generation+1 {
			return false
		}
		generation = s.object.GetGeneration()
	}
	return true
}

func called(n *batchv1alpha1.Notifications, name string) *batchv1alpha1.NotificationReceiver {
	if n == nil {
		return nil
	}
	for i := range n.Receivers {
		if n.Receivers[i].Name == name {
			return &n.Receivers[i]
		}
	}
	return nil
}
