// SPDX-License-Identifier: Apache-2.0

package history

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

// Group is a JobGroup with what there is of the chains of its members.
type Group struct {
	// Object is the JobGroup itself.
	Object *batchv1alpha1.JobGroup
	// Chains are those of which the group owns a run. To tell whether the group counts against a limit they are not needed.
	Chains []Chain
}

// ID is the UID of the JobGroup.
func (g Group) ID() types.UID { return g.Object.UID }

// Settled reports whether the group has come to its end.
func (g Group) Settled() bool { return g.Object.Status.Phase.Terminal() }

// Failed reports whether a settled group failed.
func (g Group) Failed() bool { return g.Object.Status.Phase == batchv1alpha1.JobGroupFailed }

// SettledAt returns when a settled group came to its end.
func (g Group) SettledAt() time.Time { return endedAt(g.Object, g.Object.Status.FinishedAt) }

// RemovableAt returns from when on nobody can need the group any more, nor any chain of it.
func (g Group) RemovableAt(now time.Time) time.Time {
	at := latest(g.SettledAt(), g.Object.Status.StartedAt)
	at = latest(at, &g.Object.CreationTimestamp)
	at = changed(at, g.Object.Status.Conditions).Add(Quiet)
	if !g.Settled() || notify.InDebt(notify.OfGroup(g.Object)) {
		at = later(at, now.Add(Quiet))
	}
	for _, c := range g.Chains {
		at = later(at, c.RemovableAt(now))
	}
	return at
}

// Unseen returns the retries that runs of the group name and that are not among them.
func (g Group) Unseen() []batchv1alpha1.RetryRecord {
	var unseen []batchv1alpha1.RetryRecord
	for _, c := range g.Chains {
		unseen = append(unseen, c.Unseen()...)
	}
	return unseen
}

// Order returns the chains in the order of theirs, and the group last: whoever dies in between leaves the group, which tells
// the end, and somebody who retries a member at that moment keeps the group and what is left of it.
func (g Group) Order() []Object {
	var order []Object
	for _, c := range g.Chains {
		order = append(order, c.Order()...)
	}
	return append(order, g.Object)
}

func (g Group) name() string { return g.Object.Name }

// GroupRef names a JobGroup of the same namespace. The zero value names none.
type GroupRef struct {
	// Name of the JobGroup.
	Name string
	// UID of the JobGroup; "" if only its name is known.
	UID types.UID
}

// GroupOf returns the JobGroup that owns the run or, without such an owner, that the run says it is a member of. A retry
// that the manager made of a member has the owner alone; one by hand has neither, and is known by its chain.
func GroupOf(r *batchv1alpha1.JobRun) GroupRef {
	owner := metav1.GetControllerOfNoCopy(r)
	switch {
	case owner != nil && owner.Kind == "JobGroup" && owner.APIVersion == batchv1alpha1.GroupVersion.String():
		return GroupRef{Name: owner.Name, UID: owner.UID}
	case r.Spec.GroupRef != nil:
		return GroupRef{Name: r.Spec.GroupRef.Name}
	default:
		return GroupRef{}
	}
}

// Names reports whether it names that group, and not a namesake of it.
func (r GroupRef) Names(g *batchv1alpha1.JobGroup) bool {
	return r.Name == g.Name && (r.UID == "" || r.UID == g.UID)
}

// Group returns the JobGroup that the chain is of; the zero value if it is of none.
func (c Chain) Group() GroupRef {
	var named GroupRef
	for _, r := range c.Runs {
		if named = GroupOf(r); named.Name != "" {
			return named
		}
	}
	return named
}
