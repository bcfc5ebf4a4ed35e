// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
)

// observe finds the runs of the ScheduledJob and plans. A run that is on record but not in the cache is read live: it was
// made a moment ago, or a person deleted it.
func (s *scope) observe(ctx context.Context) error {
	list := &batchv1alpha1.JobRunList{}
	err := s.Client.List(ctx, list, client.InNamespace(s.sj.Namespace), client.MatchingFields{index.ScheduledJob: s.sj.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the runs of ScheduledJob %s/%s: %w", s.sj.Namespace, s.sj.Name, err)
	}
	seen := map[types.UID]bool{}
	for i := range list.Items {
		seen[list.Items[i].UID] = true
	}
	s.runs = list.Items
	for _, a := range s.sj.Status.Active {
		if seen[a.UID] {
			continue
		}
		r := &batchv1alpha1.JobRun{}
		err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.sj.Namespace, Name: a.Name}, r)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading run %s/%s: %w", s.sj.Namespace, a.Name, err)
		case r.UID == a.UID:
			s.runs = append(s.runs, *r)
		}
	}
	s.plan = decide(s.sj, s.runs, s.now)
	return nil
}
