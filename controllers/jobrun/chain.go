// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// chain keeps the root of a chain informed of its latest run. A chain of one run told its end with its outcome.
func (s *scope) chain(ctx context.Context) error {
	if !run.IsRoot(s.run) || s.run.Status.Retry == nil {
		return nil
	}
	runs := &batchv1alpha1.JobRunList{}
	err := s.Client.List(ctx, runs, client.InNamespace(s.run.Namespace), client.MatchingFields{index.Chain: string(s.run.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the chain of %s: %w", s.where(), err)
	}
	next := s.run.DeepCopy()
	retry.Tell(next, runs.Items, s.now)
	if equality.Semantic.DeepEqual(next.Status, s.run.Status) {
		return nil
	}
	return s.write(ctx, func(r *batchv1alpha1.JobRun) { r.Status = next.Status })
}
