// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
	"reprise.dev/reprise/internal/history"
)

// chain returns all that there is of one chain; without any run if nothing is left.
func (r *Reconciler) chain(ctx context.Context, namespace, uid string) (history.Chain, error) {
	runs, err := r.list(ctx, namespace, client.MatchingFields{index.Chain: uid})
	if len(runs) == 0 || err != nil {
		return history.Chain{}, err
	}
	return history.Chains(runs)[0], nil
}

func (r *Reconciler) list(ctx context.Context, namespace string, by client.MatchingFields) ([]batchv1alpha1.JobRun, error) {
	runs := &batchv1alpha1.JobRunList{}
	if err := r.Client.List(ctx, runs, client.InNamespace(namespace), by, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing runs by %v: %w", by, err)
	}
	return runs.Items, nil
}

// groupOf returns the group that the chain is of; nil if it is of none, or the group is gone. That it is gone lets the chain
// go, so it is not taken from a cache that may be behind.
func (r *Reconciler) groupOf(ctx context.Context, namespace string, c history.Chain) (*batchv1alpha1.JobGroup, error) {
	ref := c.Group()
	if ref.Name == "" {
		return nil, nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		group := &batchv1alpha1.JobGroup{}
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, group)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading group %s: %w", ref.Name, err)
		case err == nil && ref.Names(group):
			return group, nil
		}
	}
	return nil, nil
}

// group returns the group with all that there is of the chains of its members. A run that only says that it is a member is
// none of the group's: it stays when the group goes.
func (r *Reconciler) group(ctx context.Context, object *batchv1alpha1.JobGroup) (history.Group, error) {
	g := history.Group{Object: object}
	runs, err := r.list(ctx, object.Namespace, client.MatchingFields{index.Group: object.Name})
	if err != nil {
		return g, err
	}
	for _, part := range history.Chains(runs) {
		if part.Group().UID != object.UID {
			continue
		}
		c, err := r.chain(ctx, object.Namespace, string(part.UID))
		if err != nil {
			return g, err
		}
		g.Chains = append(g.Chains, c)
	}
	return g, nil
}

// groups returns the groups of a ScheduledJob, without the chains of their members.
func (r *Reconciler) groups(ctx context.Context, sj *batchv1alpha1.ScheduledJob) ([]history.Group, error) {
	list := &batchv1alpha1.JobGroupList{}
	err := r.Client.List(ctx, list, client.InNamespace(sj.Namespace), client.MatchingFields{index.ScheduledJobGroups: sj.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the groups of %s: %w", sj.Name, err)
	}
	groups := make([]history.Group, 0, len(list.Items))
	for i := range list.Items {
		groups = append(groups, history.Group{Object: &list.Items[i]})
	}
	return groups, nil
}
