// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// collisions is how many foreign objects are passed over under the name of a retry before it is given up with an error.
const collisions = 5

// retry creates the next run of the chain if one is due and none is on record, and records it. Dying in between is
// harmless: the name is the same the next time. In a rush the record comes later.
func (s *scope) retry(ctx context.Context) error {
	if s.run.DeletionTimestamp != nil || !retry.Decide(s.run).Due {
		s.rush.take(s.request())
		return nil
	}
	if !s.own && s.rush.leave(s.request(), pair{}) {
		return nil
	}
	child, err := s.child(ctx)
	if child == nil || err != nil || s.rush.leave(s.request(), pair{s.run, child}) {
		return err
	}
	if err := s.markRetry(ctx, s.run, child, batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}); err != nil {
		return err
	}
	s.Recorder.Eventf(s.run, child, corev1.EventTypeNormal, eventRetryCreated, "Retry", "%s", begins(child))
	s.log.Info("retry created", "retry", child.Name, "attempt", run.Attempt(child), "notBefore", child.Spec.NotBefore, "after", s.run.Status.Reason)
	return nil
}

// begins tells of a retry that was created.
func begins(child *batchv1alpha1.JobRun) string {
	if child.Spec.NotBefore == nil {
		return fmt.Sprintf("retry %d is run %s", run.Attempt(child), child.Name)
	}
	return fmt.Sprintf("retry %d is run %s, not before %s", run.Attempt(child), child.Name, child.Spec.NotBefore.UTC().Format(time.RFC3339))
}

// child returns the retry that is due, made now or by an earlier try; nil if none is due after all.
func (s *scope) child(ctx context.Context) (*batchv1alpha1.JobRun, error) {
	if !s.own {
		if made := s.rush.take(s.request()); made != nil && retry.IsChild(made, s.run) {
			return made, nil
		}
		// A cache that is behind may show a failed run whose retry was made, recorded and deleted again.
		if same, err := s.refresh(ctx); !same || err != nil {
			return nil, err
		}
		if !retry.Decide(s.run).Due {
			return nil, nil
		}
	}
	return s.createChild(ctx)
}

// createChild returns the retry of the run, made now or by an earlier try. A foreign object under its name is passed over.
func (s *scope) createChild(ctx context.Context) (*batchv1alpha1.JobRun, error) {
	root, err := s.root(ctx, s.run)
	if err != nil {
		return nil, err
	}
	for collision := range collisions {
		child := retry.Child(s.run, root, collision)
		err := s.Client.Create(ctx, child)
		if err == nil {
			return child, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating the retry of %s: %w", s.where(), err)
		}
		existing := &batchv1alpha1.JobRun{}
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(child), existing); err != nil {
			return nil, fmt.Errorf("reading the retry of %s: %w", s.where(), err)
		}
		if retry.IsChild(existing, s.run) {
			return existing, nil
		}
	}
	return nil, fmt.Errorf("creating the retry of %s: %d other runs have its names", s.where(), collisions)
}

// root returns the first run of the chain of r, nil if it is gone.
func (s *scope) root(ctx context.Context, r *batchv1alpha1.JobRun) (*batchv1alpha1.JobRun, error) {
	if run.IsRoot(r) {
		return r, nil
	}
	chain := run.Chain(r)
	root, err := s.sibling(ctx, chain.RootName)
	if err != nil || root == nil || root.UID != chain.RootUID {
		return nil, err
	}
	return root, nil
}

// markRetry records on parent, with the version that was read, which run retries it, and what that means for the chain.
func (s *scope) markRetry(ctx context.Context, parent, child *batchv1alpha1.JobRun, record batchv1alpha1.RetryRecord) error {
	next := parent.DeepCopy()
	retry.Record(next, child, record, s.now)
	if err := s.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("recording the retry of run %s: %w", parent.Name, err)
	}
	s.wrote(next)
	if parent == s.run {
		s.run, s.own = next, true
	}
	return nil
}
