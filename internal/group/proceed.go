// SPDX-License-Identifier: Apache-2.0

package group

import batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"

// proceed is the policy Continue: the rest runs as if nothing had happened.
type proceed struct{}

// Rest implements FailurePolicy.
func (proceed) Rest([]Standing) *batchv1alpha1.Halt { return nil }
