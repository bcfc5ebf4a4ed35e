// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// ByTTL removes a settled chain ttlSecondsAfterFinished after its end. The root's own value counts, then what it was
// resolved to; of a chain whose root was deleted, the earliest run's.
func ByTTL(c Chain, now time.Time) Plan {
	var p Plan
	if len(c.Runs) == 0 || !c.Settled() {
		return p
	}
	if ttl := ttlSeconds(c.Runs[0]); ttl != nil {
		p.consider(c, c.SettledAt().Add(time.Duration(*ttl)*time.Second), now)
	}
	return p
}

func ttlSeconds(r *batchv1alpha1.JobRun) *int32 {
	if r.Spec.TTLSecondsAfterFinished != nil {
		return r.Spec.TTLSecondsAfterFinished
	}
	if t := run.Template(r); t != nil {
		return t.TTLSecondsAfterFinished
	}
	return nil
}
