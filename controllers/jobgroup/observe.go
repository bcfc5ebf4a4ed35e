// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/group"
	"reprise.dev/reprise/internal/run"
)

// fieldGroup selects, on the API server, the runs that say they are members of a group.
const fieldGroup = "spec.groupRef.name"

// observe finds the runs of the members that have not settled, asks who created the group, and decides.
func (s *scope) observe(ctx context.Context) error {
	s.found = group.Snapshot{Group: s.group, Alive: map[types.UID]bool{}}
	absent := map[types.UID]bool{}
	for _, m := range s.group.Status.Members {
		if m.RunUID == "" || m.Phase.Settled() {
			continue
		}
		there, err := s.chain(ctx, m.RunUID)
		if err != nil {
			return err
		}
		if !there {
			absent[m.RunUID] = true
		}
	}
	if err := s.past(ctx, absent); err != nil {
		return err
	}
	if err := s.ask(ctx); err != nil {
		return err
	}
	s.plan = group.Decide(s.found, s.now)
	return nil
}

// chain adds the runs of a chain, and reports whether its root is among them.
func (s *scope) chain(ctx context.Context, root types.UID) (bool, error) {
	list := &batchv1alpha1.JobRunList{}
	err := s.Client.List(ctx, list, client.InNamespace(s.group.Namespace), client.MatchingFields{index.Chain: string(root)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the runs of %s: %w", s.where(), err)
	}
	there := false
	for i := range list.Items {
		there = there || list.Items[i].UID == root
	}
	s.found.Runs = append(s.found.Runs, list.Items...)
	return there, nil
}

// past reads past the cache the chains whose roots are on record but not in the cache: they were made a moment ago, or a
// person deleted them.
func (s *scope) past(ctx context.Context, roots map[types.UID]bool) error {
	if len(roots) == 0 {
		return nil
	}
	list := &batchv1alpha1.JobRunList{}
	if err := s.Live.List(ctx, list, client.InNamespace(s.group.Namespace), client.MatchingFields{fieldGroup: s.group.Name}); err != nil {
		return fmt.Errorf("reading the runs of %s: %w", s.where(), err)
	}
	seen := map[types.UID]bool{}
	for i := range s.found.Runs {
		seen[s.found.Runs[i].UID] = true
	}
	for _, r := range list.Items {
		root := run.ChainUID(&r)
		if !roots[root] {
			continue
		}
		delete(roots, root)
		if !seen[r.UID] {
			s.found.Runs = append(s.found.Runs, r)
		}
	}
	return s.remains(ctx, roots)
}

// remains looks for work of chains that were deleted: it goes on for the grace of its pods.
func (s *scope) remains(ctx context.Context, roots map[types.UID]bool) error {
	for root := range roots {
		of := []client.ListOption{client.InNamespace(s.group.Namespace), client.MatchingLabels{batchv1alpha1.LabelChain: string(root)}, client.UnsafeDisableDeepCopy}
		jobs, pods := &batchv1.JobList{}, &corev1.PodList{}
		if err := errors.Join(s.Client.List(ctx, jobs, of...), s.Client.List(ctx, pods, of...)); err != nil {
			return fmt.Errorf("looking for work of deleted runs of %s: %w", s.where(), err)
		}
		alive := slices.ContainsFunc(jobs.Items, func(j batchv1.Job) bool { return jobwork.MayGetPods(&j) }) ||
			slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return jobwork.Lives(&p) })
		if alive {
			s.found.Alive[root] = true
		}
	}
	return nil
}

func (s *scope) where() string { return "JobGroup " + client.ObjectKeyFromObject(s.group).String() }
