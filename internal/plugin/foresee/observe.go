// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/run"
)

// observe reads a ScheduledJob and what there is of it.
func observe(ctx context.Context, c client.Reader, namespace, name string) (subject, error) {
	s := subject{sj: &batchv1alpha1.ScheduledJob{}}
	if err := cli.Get(ctx, c, namespace, name, s.sj); err != nil {
		return s, err
	}
	runs, groups := &batchv1alpha1.JobRunList{}, &batchv1alpha1.JobGroupList{}
	for _, list := range []client.ObjectList{runs, groups} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return s, err
		}
	}
	s.runs, s.groups = ofScheduledJob(name, runs.Items, groups.Items)
	return s, nil
}

// ofScheduledJob picks what belongs to a ScheduledJob: what names it, and the retries by hand, which name only a run.
func ofScheduledJob(name string, runs []batchv1alpha1.JobRun, groups []batchv1alpha1.JobGroup) ([]batchv1alpha1.JobRun, []batchv1alpha1.JobGroup) {
	chains := map[types.UID]bool{}
	for i := range runs {
		if ref := runs[i].Spec.ScheduledJobRef; ref != nil && ref.Name == name {
			chains[run.ChainUID(&runs[i])] = true
		}
	}
	var itsRuns []batchv1alpha1.JobRun
	for i := range runs {
		if chains[run.ChainUID(&runs[i])] {
			itsRuns = append(itsRuns, runs[i])
		}
	}
	var itsGroups []batchv1alpha1.JobGroup
	for i := range groups {
		if ref := groups[i].Spec.ScheduledJobRef; ref != nil && ref.Name == name {
			itsGroups = append(itsGroups, groups[i])
		}
	}
	return itsRuns, itsGroups
}
