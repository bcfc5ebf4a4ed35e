// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

// replaces reports whether a due tick cancels what is unsettled. Where nothing may fire, nothing is cancelled either.
func (spec Spec) replaces(active int) bool {
	return spec.Overlap == Replace && active > 0 && spec.MaxQueued > 0
}

// replace applies the overlap policy Replace to a tick that finds unsettled chains. It stays due, and so do all later ones:
// whatever is the latest when everything has settled fires, alone, and those before it are missed. Only a settled chain
// changes anything, so there is no time to wake at.
func (d *Decision) replace(tick time.Time, st State) {
	d.Replacing = tick
	if !st.Replacing.IsZero() {
		d.Replacing = st.Replacing
	}
	d.Wake = time.Time{}
	d.explain(Replacing, "due, and firing waits until %d earlier runs are cancelled and have stopped", st.Active)
}
