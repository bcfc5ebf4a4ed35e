// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// reader reads what the trees are made of, in one namespace, and of it no more than is needed.
type reader struct {
	client.WithWatch
	namespace string
}

// Fields by which the API server selects.
const (
	fieldRetryOf      = "spec.retryOf"
	fieldGroup        = "spec.groupRef.name"
	fieldScheduledJob = "spec.scheduledJobRef.name"
)

// runsBy lists the runs whose field has that value.
func (r reader) runsBy(ctx context.Context, field, value string) ([]batchv1alpha1.JobRun, error) {
	list := &batchv1alpha1.JobRunList{}
	err := r.List(ctx, list, client.InNamespace(r.namespace), client.MatchingFields{field: value})
	return list.Items, err
}

// find reads a run, nil if there is none.
func (r reader) find(ctx context.Context, name string) (*batchv1alpha1.JobRun, error) {
	found := &batchv1alpha1.JobRun{}
	err := r.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, found)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return found, nil
}

// collection is runs without repetition.
type collection struct {
	runs []batchv1alpha1.JobRun
	uids map[types.UID]bool
}

func (c *collection) add(runs ...batchv1alpha1.JobRun) {
	for i := range runs {
		if c.uids == nil {
			c.uids = map[types.UID]bool{}
		}
		if !c.uids[runs[i].UID] {
			c.uids[runs[i].UID] = true
			c.runs = append(c.runs, runs[i])
		}
	}
}

// chainOf reads all runs of the chain of a run, and the retries of any of them that were refused.
func (r reader) chainOf(ctx context.Context, of *batchv1alpha1.JobRun) ([]batchv1alpha1.JobRun, error) {
	first := of
	if !run.IsRoot(of) && run.ChainUID(of) == of.UID { // it has not become part of a chain: that of the run it names is meant
		named, err := r.find(ctx, of.Spec.RetryOf)
		if err != nil {
			return nil, err
		}
		if named != nil {
			first = named
		}
	}
	found := &collection{}
	chain := run.Chain(first)
	if root, err := r.find(ctx, chain.RootName); err != nil {
		return nil, err
	} else if root != nil && root.UID == chain.RootUID {
		found.add(*root)
	}
	found.add(*first, *of)
	if err := r.follow(ctx, found, true); err != nil {
		return nil, err
	}
	found.runs = slices.DeleteFunc(found.runs, func(o batchv1alpha1.JobRun) bool {
		return run.ChainUID(&o) != chain.RootUID && (run.IsRoot(&o) || run.ChainUID(&o) != o.UID)
	})
	return found.runs, nil
}

// follow adds the retries of the runs, and theirs: those that they record, and where asked every run that names them.
func (r reader) follow(ctx context.Context, found *collection, naming bool) error {
	for i := 0; i < len(found.runs); i++ { // what is added is followed in turn
		parent := found.runs[i]
		if naming {
			named, err := r.runsBy(ctx, fieldRetryOf, parent.Name)
			if err != nil {
				return err
			}
			found.add(named...)
		}
		record := parent.Status.Retry
		if record == nil || found.uids[record.UID] {
			continue
		}
		retry, err := r.find(ctx, record.Name)
		if err != nil {
			return err
		}
		if retry != nil && retry.UID == record.UID {
			found.add(*retry)
		}
	}
	return nil
}

// members reads the runs of a group, and their retries.
func (r reader) members(ctx context.Context, group string) ([]batchv1alpha1.JobRun, error) {
	runs, err := r.runsBy(ctx, fieldGroup, group)
	if err != nil {
		return nil, err
	}
	found := &collection{}
	found.add(runs...)
	return found.runs, r.follow(ctx, found, false)
}

// family reads what a ScheduledJob has made, the last so many.
func (r reader) family(ctx context.Context, scheduledJob string, last int) (family, error) {
	runs, err := r.runsBy(ctx, fieldScheduledJob, scheduledJob)
	if err != nil {
		return family{}, err
	}
	groups := &batchv1alpha1.JobGroupList{}
	if err := r.List(ctx, groups, client.InNamespace(r.namespace), client.MatchingFields{fieldScheduledJob: scheduledJob}); err != nil {
		return family{}, err
	}
	f := latest(runs, groups.Items, last)
	found := &collection{}
	found.add(f.runs...)
	if err := r.follow(ctx, found, false); err != nil {
		return family{}, err
	}
	f.runs = found.runs
	for i := range f.groups {
		if f.members[f.groups[i].Name], err = r.members(ctx, f.groups[i].Name); err != nil {
			return family{}, err
		}
	}
	return f, nil
}
