// SPDX-License-Identifier: Apache-2.0

package group

import batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"

// turn returns the members to make now: of a parallel group all that have no run, of a sequential one the first of them once
// everything before it has settled.
func turn(mode batchv1alpha1.GroupMode, members []Standing) []string {
	var waiting []string
	unsettled := false
	for _, m := range members {
		switch {
		case m.Phase == batchv1alpha1.MemberWaiting:
			waiting = append(waiting, m.Name)
		case !m.Phase.Settled():
			unsettled = true
		}
	}
	if mode == batchv1alpha1.GroupParallel {
		return waiting
	}
	if unsettled || len(waiting) == 0 {
		return nil
	}
	return waiting[:1]
}
