// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// halt asks runs to end, each with the version that was decided upon: one that has begun or ended meanwhile is decided upon
// anew. The run controller carries it out.
func (s *scope) halt(ctx context.Context) error {
	var conflict error
	for _, ask := range s.plan.Halt {
		r := ask.Run.DeepCopy()
		r.Status.Halt = ask.Halt.DeepCopy()
		err := s.Client.Status().Update(ctx, r)
		switch {
		case err == nil:
			s.log.Info("member halted", "run", r.Name, "as", ask.Halt.Phase, "reason", ask.Halt.Reason)
		case apierrors.IsNotFound(err):
		case apierrors.IsConflict(err):
			conflict = err
		default:
			return fmt.Errorf("halting run %s of %s: %w", r.Name, s.where(), err)
		}
	}
	return conflict
}
