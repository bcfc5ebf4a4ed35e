// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"reprise.dev/reprise/internal/admission"
)

// Admits returns what a queue that exists admits now, in order, as far as no start-up throttle holds it back: reservations that
// become next in line, and whatever gets a slot.
func (v *View) Admits(name string) []admission.Entry {
	p := v.picture(name)
	if p.queue == nil {
		return nil
	}
	d := admission.Decide(p.model, p.limits, p.book, v.now, p.model.Waits())
	return slices.Concat(d.Activate, d.Admit)
}
