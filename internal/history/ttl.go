// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// ByTTL removes a settled chain ttlSecondsAfterFinished after its end. The root's own value counts, then what it was
// resolved to; of a chain whose root was deleted, the earliest run's. A chain of a group stays while that has not ended: group
// is the one that the chain is of, nil if it is of none or the group is gone.
func ByTTL(c Chain, group *batchv1alpha1.JobGroup, now time.Time) Plan {
	if len(c.Runs) == 0 || (group != nil && !group.Status.Phase.Terminal()) {
		return Plan{}
	}
	return expire(c, ttlSeconds(c.Runs[0]), now)
}

// GroupByTTL removes a group, with its chains, ttlSecondsAfterFinished after its end.
func GroupByTTL(g Group, now time.Time) Plan {
	return expire(g, g.Object.Spec.TTLSecondsAfterFinished, now)
}

func expire(u Unit, ttl *int32, now time.Time) Plan {
	var p Plan
	if ttl != nil && u.Settled() {
		p.consider(u, u.SettledAt().Add(seconds(*ttl)), now)
	}
	return p
}

// ReservationExpiry returns when a DirectReservation is to be deleted, ttlSecondsAfterFinished after its end; false if time
// alone does not delete it.
func ReservationExpiry(dr *batchv1alpha1.DirectReservation) (time.Time, bool) {
	ttl := dr.Spec.TTLSecondsAfterFinished
	if ttl == nil || !dr.Status.Phase.Terminal() {
		return time.Time{}, false
	}
	return endedAt(dr, dr.Status.FinishedAt).Add(seconds(*ttl)), true
}

// endedAt returns when an object ended. It falls back on its creation, so that not even a damaged record is kept for ever.
func endedAt(o metav1.Object, finished *metav1.Time) time.Time {
	if finished != nil {
		return finished.Time
	}
	return o.GetCreationTimestamp().Time
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

func ttlSeconds(r *batchv1alpha1.JobRun) *int32 {
	if r.Spec.TTLSecondsAfterFinished != nil {
		return r.Spec.TTLSecondsAfterFinished
	}
	if t := run.Template(r); t != nil {
		return t.TTLSecondsAfterFinished
	}
	return nil
}
