// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/metrics"
)

func group() kind[*batchv1alpha1.JobGroup] {
	return kind[*batchv1alpha1.JobGroup]{shares: groupShares, changes: groupChanges}
}

func groupShares(g *batchv1alpha1.JobGroup) []metrics.Share {
	phase := cmp.Or(g.Status.Phase, batchv1alpha1.JobGroupPending)
	shares := []metrics.Share{{Of: metrics.Groups, Value: 1, Labels: []string{g.Namespace, string(phase)}}}
	return append(shares, letterShares(g.Namespace, g.Status.Announcements)...)
}

func groupChanges(before, now *batchv1alpha1.JobGroup, m moment) []Observation {
	if now == nil || (now.Status.FinishedAt != nil && now.Status.FinishedAt.Before(&now.CreationTimestamp)) {
		return nil
	}
	if before == nil {
		before = &batchv1alpha1.JobGroup{}
	}
	return lettersSent(now.Namespace, before.Status.Announcements, now.Status.Announcements, now.Status.FinishedAt, m.at)
}
