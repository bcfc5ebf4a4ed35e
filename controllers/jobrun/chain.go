// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/notify"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// chain brings the runs of a chain up to date with each other, the root last: once it tells of the end, everything else is
// told. It is the root's reconcile that sees to it. A chain of one run said everything with its outcome, and a root that has just
// recorded its retry said so with the record.
func (s *scope) chain(ctx context.Context) error {
	if s.own || !run.IsRoot(s.run) || (s.run.Status.Retry == nil && !givenUp(s.run)) {
		return nil
	}
	list := &batchv1alpha1.JobRunList{}
	err := s.Client.List(ctx, list, client.InNamespace(s.run.Namespace), client.MatchingFields{index.Chain: string(s.run.UID)})
	if err != nil {
		return fmt.Errorf("listing the chain of %s: %w", s.where(), err)
	}
	if err := s.complete(ctx, list); err != nil || retry.Closed(s.run, list.Items) {
		return err
	}
	sources, err := s.sources(ctx)
	if err != nil {
		return err
	}
	for i := range list.Items {
		if r := &list.Items[i]; r.UID != s.run.UID {
			if _, err := s.tell(ctx, r, list.Items, sources); err != nil {
				return err
			}
		}
	}
	s.run, err = s.tell(ctx, s.run, list.Items, sources)
	return err
}

// complete adds the recorded retries that the index does not know as of the chain: a person's, before it is resolved, or one
// that the cache is behind of.
func (s *scope) complete(ctx context.Context, list *batchv1alpha1.JobRunList) error {
	for _, r := range append([]batchv1alpha1.JobRun{*s.run}, list.Items...) {
		if !retry.Deleted(r.Status.Retry, list.Items) {
			continue
		}
		next, err := s.sibling(ctx, r.Status.Retry.Name)
		if err != nil {
			return err
		}
		if next != nil && next.UID == r.Status.Retry.UID {
			list.Items = append(list.Items, *next)
		}
	}
	return nil
}

// tell writes into a run that has ended how its chain stands, if that is news, and returns the run as it is then. The
// receivers are owed the news if the chain has failed for good because the retry of this run was deleted, or was given up
// before it was made; in every other case the outcome of the failing run said so.
func (s *scope) tell(ctx context.Context, r *batchv1alpha1.JobRun, runs []batchv1alpha1.JobRun, from notify.Sources) (*batchv1alpha1.JobRun, error) {
	if !r.Status.Phase.Terminal() || r.Status.Reason == batchv1alpha1.ReasonSuperseded || r.Status.Reason == batchv1alpha1.ReasonRetryRefused {
		return r, nil
	}
	next := r.DeepCopy()
	retry.Tell(next, runs, s.now)
	if forGood(next) && !forGood(r) && (r.Status.Retry == nil || retry.Deleted(r.Status.Retry, runs)) {
		next.Status.Announcements = notify.Add(next.Status.Announcements, notify.PermanentFailure(from))
	}
	if equality.Semantic.DeepEqual(next.Status, r.Status) {
		return r, nil
	}
	if err := s.Client.Status().Update(ctx, next); err != nil {
		return r, fmt.Errorf("telling run %s how its chain stands: %w", r.Name, err)
	}
	s.wrote(next)
	return next, nil
}

// givenUp reports whether a failed run still says that a retry follows, although it was asked to end before that was made.
func givenUp(r *batchv1alpha1.JobRun) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionReconciling) && r.Status.Phase.Terminal() && !retry.Decide(r).Due
}

// forGood reports whether the run says that its chain has failed for good.
func forGood(r *batchv1alpha1.JobRun) bool {
	return meta.IsStatusConditionTrue(r.Status.Conditions, batchv1alpha1.ConditionStalled)
}
