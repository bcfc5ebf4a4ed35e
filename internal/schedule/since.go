// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"strings"
	"time"
)

// Rule is what makes one schedule differ from another: when an edit changes it, earlier ticks no longer count.
type Rule struct {
	Schedule, TimeZone string
	RunAt              *time.Time
	Suspended          bool
}

// suspendedMark ends the text of a suspended rule.
const suspendedMark = ", suspended"

// String returns a short readable text that is equal for equal rules.
func (r Rule) String() string {
	text := "manual"
	switch {
	case r.RunAt != nil:
		text = "at " + wholeSecond(*r.RunAt).Format(time.RFC3339)
	case r.Schedule != "":
		zone := r.TimeZone
		if zone == "" {
			zone = time.UTC.String()
		}
		text = strings.Join(strings.Fields(r.Schedule), " ") + " in " + zone
	}
	if r.Suspended {
		text += suspendedMark
	}
	return text
}

// Seen is what status remembers of the rule that was last acted on. Since is State.Since: it is kept up to date with
// Decision.HandledThrough.
type Seen struct {
	Rule  string // Rule.String()
	Since time.Time
}

// Observe compares the present rule with the one last acted on and returns what to remember, also of a rule that does
// not parse; last is nil at first sight.
//
// Since becomes now when a recurring schedule was edited or any schedule was resumed, so that no tick before that
// fires, and the creation time at first sight. It is zero for a one-time schedule that was never resumed: a runAt may
// lie in the past when it is written, and still fires. Whether something happened is seen at now and not when it
// happened: an edit made while the manager was down also gives up the ticks between it and now.
//
// The caller records every run that exists for a tick before the new Since as well; State.Made no longer covers it.
func Observe(last *Seen, created time.Time, rule Rule, now time.Time) Seen {
	seen := Seen{Rule: rule.String()}
	if last == nil {
		if rule.RunAt == nil {
			seen.Since = wholeSecond(created)
		}
		return seen
	}
	before, wasSuspended := strings.CutSuffix(last.Rule, suspendedMark)
	edited := before != strings.TrimSuffix(seen.Rule, suspendedMark)
	resumed := wasSuspended && !rule.Suspended
	switch {
	case edited && rule.RunAt != nil:
		// Armed anew: Since stays zero.
	case edited, resumed:
		seen.Since = wholeSecond(now)
	default:
		seen.Since = last.Since
	}
	return seen
}
