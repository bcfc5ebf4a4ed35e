// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// noon is the time that the tests play at.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

type option func(*batchv1alpha1.JobRun)

// root is the first run of a chain that ended that long ago, by default in a Completed chain of its own.
func root(name string, ended time.Duration, options ...option) batchv1alpha1.JobRun {
	r := batchv1alpha1.JobRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: ago(ended + time.Minute)},
		Spec:       batchv1alpha1.JobRunSpec{JobRunTemplateSpec: batchv1alpha1.JobRunTemplateSpec{Work: &batchv1alpha1.Work{}}},
		Status: batchv1alpha1.JobRunStatus{
			Phase:      batchv1alpha1.JobRunCompleted,
			Slot:       batchv1alpha1.SlotFree,
			StartedAt:  ptr.To(ago(ended + time.Second)),
			FinishedAt: ptr.To(ago(ended)),
		},
	}
	told(batchv1alpha1.ConditionComplete, ended)(&r)
	for _, o := range options {
		o(&r)
	}
	return r
}

// retryOf is the retry of that number, which ended that long ago.
func retryOf(rootName string, attempt int32, ended time.Duration, options ...option) batchv1alpha1.JobRun {
	r := root(fmt.Sprintf("%s-r%d", rootName, attempt), ended, untold)
	r.Spec.RetryOf = rootName
	r.Spec.Attempt = attempt
	r.Spec.Chain = &batchv1alpha1.Chain{RootName: rootName, RootUID: types.UID(rootName)}
	for _, o := range options {
		o(&r)
	}
	return r
}

func untold(r *batchv1alpha1.JobRun) { r.Status.Conditions = nil }

// told makes the root say how its chain ended, and when.
func told(kind string, since time.Duration) option {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: ago(since)}}
	}
}

func failed(r *batchv1alpha1.JobRun) {
	r.Status.Phase = batchv1alpha1.JobRunFailed
	if c := r.Status.Conditions; len(c) > 0 {
		c[0].Type = batchv1alpha1.ConditionFailed
	}
}

func phase(p batchv1alpha1.JobRunPhase) option {
	return func(r *batchv1alpha1.JobRun) { r.Status.Phase = p }
}

func queued(r *batchv1alpha1.JobRun) {
	r.Status = batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued}
}

func crashed(r *batchv1alpha1.JobRun) { r.Status.Reason = batchv1alpha1.ReasonCrashRecovery }

func holding(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotHeld }

func owing(r *batchv1alpha1.JobRun) {
	r.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "r", State: batchv1alpha1.AnnouncementOwed}}
}

func givenUp(r *batchv1alpha1.JobRun) {
	r.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "r", State: batchv1alpha1.AnnouncementAbandoned}}
}

func askedFor(r *batchv1alpha1.JobRun) {
	r.Annotations = map[string]string{batchv1alpha1.AnnotationResend: "please"}
}

func ttl(seconds int32) option {
	return func(r *batchv1alpha1.JobRun) { r.Spec.TTLSecondsAfterFinished = &seconds }
}

func retriedBy(name string) option {
	return func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: name, UID: types.UID(name)}
	}
}

func runs(all ...batchv1alpha1.JobRun) []batchv1alpha1.JobRun { return all }

// one is the only chain of the runs.
func one(all ...batchv1alpha1.JobRun) Chain { return Chains(all)[0] }

// names are what the units are known by, sorted.
func names[U Unit](units []U) []string {
	var all []string
	for _, u := range units {
		all = append(all, string(u.ID()))
	}
	slices.Sort(all)
	return all
}

// objects are the names of what is to be deleted, in order.
func objects(u Unit) []string {
	var all []string
	for _, o := range u.Order() {
		all = append(all, o.GetName())
	}
	return all
}

// group is one that ended that long ago in the phase, with the chains of those runs, which it owns.
func group(name string, phase batchv1alpha1.JobGroupPhase, ended time.Duration, members ...batchv1alpha1.JobRun) Group {
	g := &batchv1alpha1.JobGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: ago(ended + time.Minute)},
		Status:     batchv1alpha1.JobGroupStatus{Phase: phase, StartedAt: ptr.To(ago(ended + time.Second)), FinishedAt: ptr.To(ago(ended))},
	}
	for i := range members {
		ownedBy(g)(&members[i])
	}
	return Group{Object: g, Chains: Chains(members)}
}

func ownedBy(g *batchv1alpha1.JobGroup) option {
	return func(r *batchv1alpha1.JobRun) {
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(g, batchv1alpha1.GroupVersion.WithKind("JobGroup"))}
	}
}

func memberOf(name string) option {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: name, Member: "member"}
	}
}
