// SPDX-License-Identifier: Apache-2.0

package invariant

// repeatable is invariant 7: any reconcile repeated any number of times changes nothing more. Once everything has settled, one
// more start of the manager reconciles every object once more, and writes nothing.
func repeatable(w *world) {
	if !w.ended() || w.RestartChanged == nil {
		return
	}
	w.checked(7)
	for _, text := range w.RestartChanged {
		w.broken(7, text, "one more restart, after everything had settled, has changed it")
	}
}
