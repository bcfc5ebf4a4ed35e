// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

var owner = metav1.OwnerReference{APIVersion: "batch.reprise.dev/v1alpha1", Kind: "ScheduledJob", Name: "nightly", UID: "sj", Controller: ptr.To(true)}

// tick is a failed run of the ScheduledJob nightly.
func tick() *batchv1alpha1.JobRun {
	return aRun("root", failed, maxRetries(2), func(r *batchv1alpha1.JobRun) {
		r.Labels = map[string]string{"app.kubernetes.io/instance": "gitops"}
		r.OwnerReferences = []metav1.OwnerReference{owner}
		r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
		r.Spec.ScheduledTime = ptr.To(metav1.NewTime(noon))
		r.Spec.Priority = ptr.To[int32](4)
	})
}

// byHand is a resolved and failed manual retry of a tick.
func byHand() *batchv1alpha1.JobRun {
	r := manualRetry("by-hand", "root")
	r.Status.ResolvedSpec = ResolveManual(tick(), nil, r)
	failed(r)
	return r
}

func TestAChildCarriesAllItNeeds(t *testing.T) {
	parent := tick()
	got := Child(parent, parent, 0)
	want := &batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "root-r1", OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: batchv1alpha1.JobRunSpec{
			JobRunTemplateSpec: parent.Spec.JobRunTemplateSpec,
			RetryOf:            "root",
			ScheduledJobRef:    &batchv1alpha1.ObjectName{Name: "nightly"},
			NotBefore:          ptr.To(metav1.NewTime(at(15))),
			Attempt:            1,
			Chain: &batchv1alpha1.Chain{
				RootName: "root", RootUID: "uid-root", QueuedAt: metav1.NewTime(noon), Sequence: 7, IdempotencyKey: "uid-root",
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !IsChild(got, parent) {
		t.Error("it is not recognised")
	}
}

func TestAChildOfAChildKeepsTheChain(t *testing.T) {
	root := tick()
	first := Child(root, root, 0)
	failed(first)
	second := Child(first, root, 0)
	if !reflect.DeepEqual(second.Spec.Chain, first.Spec.Chain) {
		t.Errorf("got %+v, want %+v", second.Spec.Chain, first.Spec.Chain)
	}
	if second.Name != "root-r2" || second.Spec.RetryOf != "root-r1" || run.Attempt(second) != 2 || PolicyOf(second).MaxRetries != 2 {
		t.Errorf("got %s: %+v", second.Name, second.Spec)
	}
	if !second.Spec.NotBefore.Time.Equal(at(25)) {
		t.Errorf("it begins at %s", second.Spec.NotBefore)
	}
}

func TestAChildHasWhatWasSetOnTheFailedRunLast(t *testing.T) {
	parent := byHand()
	parent.Spec.Priority, parent.Spec.TTLSecondsAfterFinished = ptr.To[int32](9), ptr.To[int32](60)
	child := Child(parent, nil, 0)
	if child.Spec.Work == nil || run.Priority(child) != 9 || *child.Spec.TTLSecondsAfterFinished != 60 {
		t.Errorf("got %+v", child.Spec)
	}
	if *parent.Status.ResolvedSpec.Priority != 4 {
		t.Error("the failed run was changed")
	}
}

func TestTheChildOfAManualRetryHasItsPlaceInTheQueue(t *testing.T) {
	child := Child(byHand(), nil, 0)
	if child.Name != "root-r2" || !child.Spec.Chain.QueuedAt.Time.Equal(at(90)) || child.Spec.Chain.Sequence != 55 {
		t.Errorf("got %s: %+v", child.Name, child.Spec.Chain)
	}
}

func TestTheChildOfAManualRetryBelongsToWhatTheRootBelongsTo(t *testing.T) {
	with, without := Child(byHand(), tick(), 0), Child(byHand(), nil, 0)
	if len(with.OwnerReferences) != 1 || with.Spec.ScheduledJobRef == nil {
		t.Errorf("got %+v, %+v", with.OwnerReferences, with.Spec.ScheduledJobRef)
	}
	if len(without.OwnerReferences) != 0 || without.Spec.ScheduledJobRef == nil {
		t.Errorf("got %+v, %+v", without.OwnerReferences, without.Spec.ScheduledJobRef)
	}
}

func TestAChildIsOfTheMemberOfTheGroupThatTheRootIsOf(t *testing.T) {
	member := &batchv1alpha1.GroupMemberRef{Name: "release", Member: "build"}
	root := aRun("root", failed, func(r *batchv1alpha1.JobRun) { r.Spec.GroupRef = member })
	first := Child(root, root, 0)
	failed(first)
	hand := manualRetry("by-hand", "root")
	hand.Status.ResolvedSpec = ResolveManual(root, root, hand)
	failed(hand)
	for name, child := range map[string]*batchv1alpha1.JobRun{
		"of the root": first, "of a child whose root is gone": Child(first, nil, 0), "of a retry by hand": Child(hand, root, 0),
	} {
		if !reflect.DeepEqual(child.Spec.GroupRef, member) || child.Spec.GroupRef == member {
			t.Errorf("%s: got %+v", name, child.Spec.GroupRef)
		}
	}
}

func TestAChildWithoutDelayHasNoNotBefore(t *testing.T) {
	if child := Child(aRun("root", phase(batchv1alpha1.JobRunFailed)), nil, 0); child.Spec.NotBefore != nil {
		t.Errorf("got %s", child.Spec.NotBefore)
	}
}

func TestIsChild(t *testing.T) {
	parent := aRun("root-r1", failed, attempt(1, "root"))
	child := func(change func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
		c := Child(parent, nil, 1)
		change(c)
		return c
	}
	for _, c := range []struct {
		name     string
		existing *batchv1alpha1.JobRun
		want     bool
	}{
		{"what was made before", child(func(*batchv1alpha1.JobRun) {}), true},
		{"what was made before and brought forward", child(func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = nil }), true},
		{"a root that happens to have the name", aRun("root-r2"), false},
		{"a manual retry that happens to have the name", manualRetry("root-r2", "root-r1"), false},
		{"the retry of another run", child(func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf = "root" }), false},
		{"a retry with another number", child(func(r *batchv1alpha1.JobRun) { r.Spec.Attempt = 3 }), false},
		{"a retry of an earlier chain whose root had the name", child(func(r *batchv1alpha1.JobRun) { r.Spec.Chain.RootUID = "before" }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := IsChild(c.existing, parent); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
