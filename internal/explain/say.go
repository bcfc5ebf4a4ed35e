// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"time"
)

// say sets the reason and its message.
func (a *Answer) say(reason, format string, args ...any) {
	a.Reason, a.Message = reason, fmt.Sprintf(format, args...)
}

func (a *Answer) detail(format string, args ...any) {
	a.Details = append(a.Details, fmt.Sprintf(format, args...))
}

func (a *Answer) hint(format string, args ...any) {
	a.Hints = append(a.Hints, fmt.Sprintf(format, args...))
}

// mostListed is how many of a kind a sentence names.
const mostListed = 5

// listed cuts a list of names to what a sentence may hold.
func listed(names []string) []string {
	if len(names) <= mostListed {
		return names
	}
	return append(names[:mostListed:mostListed], fmt.Sprintf("and %d more", len(names)-mostListed))
}

// short writes a duration as people do: its two largest units.
func short(d time.Duration) string {
	d = d.Round(time.Second)
	days, d := d/(24*time.Hour), d%(24*time.Hour)
	h, m, s := d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second
	switch {
	case days > 0 && h > 0:
		return fmt.Sprintf("%dd%dh", days, h)
	case days > 0:
		return fmt.Sprintf("%dd", days)
	case h > 0 && m > 0:
		return fmt.Sprintf("%dh%dm", h, m)
	case h > 0:
		return fmt.Sprintf("%dh", h)
	case m > 0 && s > 0:
		return fmt.Sprintf("%dm%ds", m, s)
	case m > 0:
		return fmt.Sprintf("%dm", m)
	default:
		return fmt.Sprintf("%ds", s)
	}
}

// clock writes a time without a zone of its own: everything is UTC, as in the objects.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
