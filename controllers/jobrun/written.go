// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// mostLag is how far the cache may be behind what is written: in a rush of tens of thousands of writes it is by a minute. Past that it
	// is decided upon as it is, and creators are asked live.
	mostLag = 2 * time.Minute
	// mostWritten is how many runs are remembered, the latest.
	mostWritten = 1 << 16
)

// written remembers which version of a run this process has written last. While the cache shows an older one a decision would only
// meet a conflict, and the event of the write brings the run back. That saves requests and proves nothing: of what was forgotten or
// cannot be compared the cache is believed, and the API server refuses a write to what is too old. nil remembers nothing.
type written struct{ versions *cache.LRUExpireCache }

func newWritten(c clock.PassiveClock) *written {
	return &written{cache.NewLRUExpireCacheWithClock(mostWritten, c)}
}

// note takes a run as the API server answered it to a write.
func (w *written) note(r *batchv1alpha1.JobRun) {
	if w != nil {
		w.versions.Add(r.UID, r.ResourceVersion, mostLag)
	}
}

// shown takes a run as the cache shows it: a write that is to be seen need not be remembered.
func (w *written) shown(r *batchv1alpha1.JobRun) {
	if w != nil && !w.after(r) {
		w.versions.Remove(r.UID)
	}
}

// after reports whether a write of this process came after the version at hand.
func (w *written) after(r *batchv1alpha1.JobRun) bool {
	if w == nil {
		return false
	}
	known, _ := w.versions.Get(r.UID)
	last, _ := known.(string) // none is no version, and not to be compared
	return older(r, last)
}

// older reports whether a run is known to be older than a version of it.
func older(r *batchv1alpha1.JobRun, version string) bool {
	order, err := resourceversion.CompareResourceVersion(r.ResourceVersion, version)
	return err == nil && order < 0
}
