// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"reprise.dev/reprise/internal/admission"
)

// mostHolders is how many slots may be in use for an estimate to be made: with more somebody is always about to be done, and the
// estimate would cost more than it tells.
const mostHolders = 1000

// Starts returns about when each of the waiting entries may get its slot: by the rules of the queue, by when those that hold slots
// got them, and by how long such as these lasted. An entry of which that cannot be told is left out.
func Starts(l admission.Limits, book admission.Book, holders []admission.Entry, since func(types.UID) time.Time, waiting []admission.Entry, d *Durations, now time.Time) map[types.UID]time.Time {
	if len(holders) > mostHolders || len(waiting) == 0 {
		return nil
	}
	busy := make([]admission.Busy, len(holders))
	for i, e := range holders {
		busy[i] = admission.Busy{Entry: e, Until: End(e, since(e.UID), d, now)}
	}
	return admission.Forecast(l, book, busy, waiting, d.Lasts, now)
}

// End returns about when an entry that got its slot at a time may be done with it, zero if that cannot be told.
func End(e admission.Entry, since time.Time, d *Durations, now time.Time) time.Time {
	if since.IsZero() {
		return time.Time{}
	}
	left := d.Left(e, now.Sub(since))
	if left <= 0 {
		return time.Time{}
	}
	return now.Add(left)
}
