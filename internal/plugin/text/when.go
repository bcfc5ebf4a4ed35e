// SPDX-License-Identifier: Apache-2.0

package text

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// For returns a duration in a few characters, as kubectl does: "3m12s". Less than a second, and less than nothing, is "0s".
func For(d time.Duration) string {
	return duration.HumanDuration(max(d, 0).Truncate(time.Second))
}

// Until returns how far off a time is: "in 4m", "now", or "4m ago".
func Until(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d >= time.Second:
		return "in " + For(d)
	case d > -time.Second:
		return "now"
	default:
		return For(-d) + " ago"
	}
}
