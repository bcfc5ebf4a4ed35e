// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"time"
)

// bucketsPerWindow is how many dates the admissions of one window have at most, more or less: the ledger stores 64.
const bucketsPerWindow = 60

// Book is what has to be remembered from one batch to the next, and from one manager to the next.
type Book struct {
	// Recent are the runs admitted under a start-up throttle, oldest first.
	Recent []Admitted
	// DirectInRow is how many reservations were granted in a row while runs waited. It is counted no further than
	// MaxConsecutive.
	DirectInRow int
}

// Admitted are the runs that were admitted at about one time.
type Admitted struct {
	// At is when the last of them was admitted, rounded up to a second.
	At time.Time
	// Count of the runs.
	Count int
}

// next returns the book to remember with a batch of so many runs and grants, after which runs wait or not.
func (b Book) next(l *Limits, now time.Time, runs, grants int, runsWait bool) Book {
	row := b.DirectInRow
	if runs > 0 {
		row = 0
	}
	if row += grants; !runsWait {
		row = 0
	}
	out := Book{DirectInRow: min(row, l.MaxConsecutive)}
	if l.Startup.inForce(now) {
		out.Recent = l.Startup.remember(b.Recent, now, runs)
	}
	return out
}

// remember adds admissions to those still within the window. Admissions of about the same time become one, with the date of
// the last, so that the throttle lasts rather too long than too short. A date in the future is that of a manager whose clock
// was ahead; it counts as now.
func (t Startup) remember(recent []Admitted, now time.Time, runs int) []Admitted {
	present := roundUp(now)
	if runs > 0 {
		recent = append(slices.Clone(recent), Admitted{At: present, Count: runs})
	}
	width := int64((t.Window + bucketsPerWindow*time.Second - 1) / (bucketsPerWindow * time.Second))
	var out []Admitted
	for _, a := range recent {
		if a.At.After(present) {
			a.At = present
		}
		last := len(out) - 1
		switch {
		case !a.At.Add(t.Window).After(now):
		case last >= 0 && out[last].At.Unix()/width == a.At.Unix()/width:
			out[last] = Admitted{At: a.At, Count: out[last].Count + a.Count}
		default:
			out = append(out, a)
		}
	}
	return out
}

// roundUp rounds up to a second: the ledger stores no less.
func roundUp(t time.Time) time.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		return whole.Add(time.Second)
	}
	return whole
}
