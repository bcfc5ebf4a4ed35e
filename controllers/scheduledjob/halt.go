// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// halt asks everything that a due tick replaces to end. Each object is asked with the version that was read, so one that
// changed in between is looked at again.
//
// A run that has failed and is yet to be retried is not asked. Its retry is, once it is there: that ends as Cancelled, and
// the first run of the chain says so. Asked itself, the failed run would not be retried, and nobody would tell the end.
func (s *scope) halt(ctx context.Context) error {
	why := fmt.Sprintf("replaced by the tick of %s", s.plan.decision.Replacing.UTC().Format(time.RFC3339))
	var failures []error
	for _, p := range s.plan.replaced() {
		for _, part := range p.parts {
			next := halted(part, why)
			if next == nil {
				continue
			}
			err := s.Client.Status().Update(ctx, next)
			if client.IgnoreNotFound(err) != nil {
				failures = append(failures, fmt.Errorf("cancelling %s %s/%s, which is replaced: %w", p.kind, s.sj.Namespace, next.GetName(), err))
				continue
			}
			s.log.Info("replaced", p.kind, next.GetName(), "tick", s.plan.decision.Replacing.UTC().Format(time.RFC3339))
		}
	}
	return errors.Join(failures...)
}

// halted returns a copy of the object that asks it to end as Cancelled; nil if it has ended or was asked before.
func halted(o client.Object, why string) client.Object {
	halt := &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonReplaced, Message: why}
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		if o.Status.Phase.Terminal() || run.Halted(o) != nil {
			return nil
		}
		next := o.DeepCopy()
		next.Status.Halt = halt
		return next
	case *batchv1alpha1.JobGroup:
		if o.Status.Phase.Terminal() || o.Spec.Cancel || o.Status.Halt != nil {
			return nil
		}
		next := o.DeepCopy()
		next.Status.Halt = halt
		return next
	default:
		return nil
	}
}
