// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

// terminal does what is left after the outcome: the work is stopped and its slot freed, a failure is retried, the root of the
// chain tells of its end, and an edit of what may still be edited is observed.
func (s *scope) terminal(ctx context.Context) (ctrl.Result, error) {
	if err := s.retry(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if err := s.chain(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if !run.Observed(s.run) {
		if err := s.write(ctx, run.Observe); err != nil {
			return ctrl.Result{}, err
		}
	}
	if run.HoldsSlot(s.run) {
		return s.confirmStopped(ctx)
	}
	if ex := s.Executors.For(s.run); ex != nil {
		ex.Forget(s.run.UID)
	}
	return ctrl.Result{}, nil
}

// confirmStopped stops the work of a run that has its outcome, and frees the slot once nothing of the work lives.
func (s *scope) confirmStopped(ctx context.Context) (ctrl.Result, error) {
	if ex := s.Executors.For(s.run); ex != nil {
		ev, err := ex.Stop(ctx, s.run)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !ev.Stopped {
			return s.freeByWord(ctx, ev)
		}
	}
	return ctrl.Result{}, s.write(ctx, func(r *batchv1alpha1.JobRun) { run.Free(r) })
}

// freeByWord frees the slot of a run whose work cannot be seen to have stopped if a person has confirmed that it has.
func (s *scope) freeByWord(ctx context.Context, ev executor.Evidence) (ctrl.Result, error) {
	word, err := s.confirmation(ctx, ev)
	if err != nil || word == "" {
		s.log.V(1).Info("the slot stays held until the work has stopped", "detail", ev.Detail)
		return ctrl.Result{RequeueAfter: ev.RecheckAfter, Priority: new(0)}, err
	}
	err = s.write(ctx, func(r *batchv1alpha1.JobRun) {
		run.Free(r)
		sayConfirmed(r, word, s.now)
	})
	if err == nil {
		s.confirmed(word)
	}
	return ctrl.Result{}, err
}
