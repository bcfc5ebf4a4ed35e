// SPDX-License-Identifier: Apache-2.0

package group

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
)

// Snapshot is what a decision about a group rests on.
type Snapshot struct {
	// Group as it was read.
	Group *batchv1alpha1.JobGroup
	// Runs are all runs of the chains of the members that have not settled. One that is missing was deleted.
	Runs []batchv1alpha1.JobRun
	// Alive are the roots of chains that were deleted, of whose work something lives.
	Alive map[types.UID]bool
	// Creator is what the creator of the group says of it; the zero value if it has none, or was asked before.
	Creator creator.Verdict
	// Obstacle keeps members from being made, nil if nothing does.
	Obstacle *Obstacle
}

// Obstacle is why no member, or one of them, is made. Nothing goes on without a person.
type Obstacle struct {
	// Reason, one CamelCase word.
	Reason string
	// Message for a person.
	Message string
	// All says that no member is made. Otherwise the others are.
	All bool
}

// Decision is what becomes of a group now.
type Decision struct {
	// Create are the members whose runs are to be made now, in their order.
	Create []string
	// Halt are the runs to be asked to end, once Status is on record.
	Halt []Ask
	// Status of the group, as long as nothing of Create is made.
	Status batchv1alpha1.JobGroupStatus
}

// Recorded returns the snapshot as it is when the run of a member is on record.
func (s Snapshot) Recorded(member string, r *batchv1alpha1.JobRun) Snapshot {
	s.Group = s.Group.DeepCopy()
	s.Runs = append(s.Runs[:len(s.Runs):len(s.Runs)], *r)
	told := batchv1alpha1.GroupMemberStatus{Name: member, RunName: r.Name, RunUID: r.UID}
	for i := range s.Group.Status.Members {
		if s.Group.Status.Members[i].Name == member {
			s.Group.Status.Members[i] = told
			return s
		}
	}
	s.Group.Status.Members = append(s.Group.Status.Members, told)
	return s
}

// Decide says what becomes of a group now.
func Decide(s Snapshot, now time.Time) Decision {
	g := s.Group
	d := Decision{Status: *g.Status.DeepCopy()}
	if g.Status.Phase.Terminal() {
		d.Status.ObservedGeneration = g.Generation
		for i := range d.Status.Conditions {
			d.Status.Conditions[i].ObservedGeneration = g.Generation
		}
		return d
	}
	members := standings(s)
	halt := rest(s, members)
	switch {
	case halt != nil:
		d.Halt = finish(members, halt)
	case s.Creator.Answer == creator.Unrecorded:
		return d
	case s.Obstacle == nil || !s.Obstacle.All:
		d.Create = turn(g.Spec.Mode, members)
	}
	d.Status.ObservedGeneration = g.Generation
	d.Status.Members = make([]batchv1alpha1.GroupMemberStatus, 0, len(members))
	for _, m := range members {
		d.Status.Members = append(d.Status.Members, m.GroupMemberStatus)
	}
	d.Status.Settled = settled(members)
	d.Status.Phase, d.Status.Reason, d.Status.Message = phase(g, members, halt)
	d.keepTime(now)
	show(&d.Status, g.Generation, s.Obstacle, now)
	return d
}

// keepTime notes when the first member was made, and when the last one had ended.
func (d *Decision) keepTime(now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	for _, m := range d.Status.Members {
		if m.RunUID != "" && d.Status.StartedAt == nil {
			d.Status.StartedAt = &at
		}
	}
	if d.Status.Phase.Terminal() {
		d.Status.FinishedAt = &at
	}
}
