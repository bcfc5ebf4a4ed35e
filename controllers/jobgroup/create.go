// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/group"
	"reprise.dev/reprise/internal/run"
)

// collisions is how many foreign objects are passed over under the names of a member's run before it is given up for now.
const collisions = 5

// errNamesTaken says that foreign objects have all the names that the run of a member could have.
var errNamesTaken = errors.New("other objects have its name, and those it would take instead")

// create makes sure that there is a run for every member whose turn it is, and decides again as if they were on record. A
// member that the API server refuses keeps back none of the others; another failure does. It returns the first one.
func (s *scope) create(ctx context.Context) error {
	var failure error
	for _, member := range s.plan.Create {
		r, err := s.ensure(ctx, member)
		switch {
		case err == nil:
			s.found = s.found.Recorded(member, r)
			continue
		case failure == nil:
			failure = err
		}
		if !rejected(err) {
			break
		}
	}
	if rejected(failure) {
		s.found.Obstacle = &group.Obstacle{Reason: batchv1alpha1.ReasonMemberRejected, Message: failure.Error()}
	}
	if len(s.plan.Create) > 0 {
		s.plan = group.Decide(s.found, s.now)
	}
	return failure
}

// ensure returns the run of a member, created now or earlier by whomever.
func (s *scope) ensure(ctx context.Context, member string) (*batchv1alpha1.JobRun, error) {
	for collision := range collisions + 1 {
		r := newRun(s.group, member, collision)
		err := s.Client.Create(ctx, r)
		if err == nil {
			return r, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("run %s of member %s could not be created: %w", r.Name, member, err)
		}
		existing := &batchv1alpha1.JobRun{}
		if err := s.Live.Get(ctx, client.ObjectKeyFromObject(r), existing); err != nil {
			return nil, fmt.Errorf("reading run %s of member %s, which exists already: %w", r.Name, member, err)
		}
		if isRunOf(existing, s.group, member) {
			return existing, nil
		}
	}
	return nil, fmt.Errorf("run %s of member %s could not be created: %w", group.RunName(s.group.Name, member, 0), member, errNamesTaken)
}

// newRun builds the run of a member. Deleting the group deletes it.
func newRun(g *batchv1alpha1.JobGroup, member string, collision int) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: group.RunName(g.Name, member, collision),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "JobGroup", Name: g.Name, UID: g.UID, Controller: new(true),
			}},
		},
		Spec: batchv1alpha1.JobRunSpec{GroupRef: &batchv1alpha1.GroupMemberRef{Name: g.Name, Member: member}},
	}
	for i := range g.Spec.Members {
		if m := &g.Spec.Members[i]; m.Name == member {
			m.RunTemplate.DeepCopyInto(&r.Spec.JobRunTemplateSpec)
		}
	}
	if r.Spec.Queue == "" {
		r.Spec.Queue = batchv1alpha1.DefaultQueue
	}
	return r
}

// isRunOf reports whether an existing object is the run of that member, whoever created it.
func isRunOf(r *batchv1alpha1.JobRun, g *batchv1alpha1.JobGroup, member string) bool {
	ref := r.Spec.GroupRef
	return metav1.IsControlledBy(r, g) && run.IsRoot(r) && ref != nil && ref.Name == g.Name && ref.Member == member
}

// rejected reports whether the API server refused a run for what it is, so that trying again soon will not help: a quota,
// an admission rule, a name that is taken.
func rejected(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || errors.Is(err, errNamesTaken)
}
