// SPDX-License-Identifier: Apache-2.0

package creator_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
)

// seen is what can be seen of a namespace: at most one of each.
type seen struct {
	run   *batchv1alpha1.JobRun
	sj    *batchv1alpha1.ScheduledJob
	group *batchv1alpha1.JobGroup
}

func (s seen) Run(string) *batchv1alpha1.JobRun                { return s.run }
func (s seen) ScheduledJob(string) *batchv1alpha1.ScheduledJob { return s.sj }
func (s seen) Group(string) *batchv1alpha1.JobGroup            { return s.group }

func parent(phase batchv1alpha1.JobRunPhase, retry types.UID) *batchv1alpha1.JobRun {
	p := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: "parent", UID: "parent", CreationTimestamp: *at(tick)}}
	p.Status.Phase = phase
	if retry != "" {
		p.Status.Retry = &batchv1alpha1.RetryRecord{Name: "retry", UID: retry}
	}
	return p
}

func retryRun() *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: "retry", UID: "uid", CreationTimestamp: *at(noon)}}
	r.Spec.RetryOf = "parent"
	r.Status.Phase = batchv1alpha1.JobRunQueued
	return r
}

func TestWhatARunSaysOfItsRetry(t *testing.T) {
	later := parent(batchv1alpha1.JobRunFailed, "other")
	later.CreationTimestamp = *at(noon.Add(time.Second))
	for name, c := range map[string]struct {
		parent *batchv1alpha1.JobRun
		answer creator.Answer
		reason string
	}{
		"it does not exist":                 {nil, creator.Gone, ""},
		"one of its name was made later":    {later, creator.Gone, ""},
		"it names it":                       {parent(batchv1alpha1.JobRunFailed, "uid"), creator.Named, ""},
		"it names another":                  {parent(batchv1alpha1.JobRunFailed, "other"), creator.Refused, superseded},
		"it has failed, and names nobody":   {parent(batchv1alpha1.JobRunFailed, ""), creator.Unrecorded, ""},
		"it is at work":                     {parent(batchv1alpha1.JobRunRunning, ""), creator.Unrecorded, ""},
		"it has succeeded, and has no next": {parent(batchv1alpha1.JobRunCompleted, ""), creator.Refused, superseded},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, creator.OfParent(c.parent, retryRun()), c.answer, c.reason)
			g := NewWithT(t)
			g.Expect(creator.Ask(seen{run: c.parent}, retryRun())).To(Equal(creator.OfParent(c.parent, retryRun())))
			g.Expect(creator.Names(seen{run: c.parent}, retryRun())).To(Equal(c.answer == creator.Named))
		})
	}
}

func TestWhoeverIsAskedAboutARunIsItsCreator(t *testing.T) {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: "sj", CreationTimestamp: *at(tick)}}
	sj.Spec.Schedule = "*/10 * * * *"
	group := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", CreationTimestamp: *at(tick)}}
	group.Spec.Members = []batchv1alpha1.GroupMember{{Name: "m"}}
	byHand := func(r *batchv1alpha1.JobRun) { r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"} }
	ofTick := func(r *batchv1alpha1.JobRun) { byHand(r); r.Spec.ScheduledTime = at(tick) }
	member := func(r *batchv1alpha1.JobRun) { r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: "g", Member: "m"} }
	for name, c := range map[string]struct {
		run    func(*batchv1alpha1.JobRun)
		record func()
		answer creator.Answer // before it is recorded
	}{
		"a run that a person made":                   {func(*batchv1alpha1.JobRun) {}, func() {}, creator.Named},
		"a run of a ScheduledJob that a person made": {byHand, func() {}, creator.Named},
		"the run of a tick":                          {ofTick, func() { sj.Status.Active = []batchv1alpha1.ActiveRun{{UID: "uid"}} }, creator.Unrecorded},
		"the run of a member":                        {member, func() { group.Status.Members = []batchv1alpha1.GroupMemberStatus{{Name: "m", RunUID: "uid"}} }, creator.Unrecorded},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := retryRun()
			r.Spec.RetryOf = ""
			c.run(r)
			known := seen{sj: sj, group: group}
			g.Expect(creator.Ask(known, r).Answer).To(Equal(c.answer))
			g.Expect(creator.Names(known, r)).To(Equal(c.answer == creator.Named))
			c.record()
			g.Expect(creator.Ask(known, r).Answer).To(Equal(creator.Named))
			g.Expect(creator.Names(known, r)).To(BeTrue())
			g.Expect(creator.Names(seen{}, r)).To(Equal(c.answer == creator.Named), "a creator that cannot be seen names nobody")
			r.Status.Phase = batchv1alpha1.JobRunRunning
			g.Expect(creator.Names(seen{}, r)).To(BeTrue(), "it was admitted")
		})
	}
}

func TestARunWhoseOwnerIsGoneComesFromABackup(t *testing.T) {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "o"}}
	group := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "o"}}
	for name, c := range map[string]struct {
		kind  string
		uid   types.UID
		known seen
		owned bool
	}{
		"a ScheduledJob that is there":   {"ScheduledJob", "o", seen{sj: sj}, true},
		"a namesake of its ScheduledJob": {"ScheduledJob", "before", seen{sj: sj}, false},
		"a ScheduledJob that is not":     {"ScheduledJob", "o", seen{group: group}, false},
		"a JobGroup that is there":       {"JobGroup", "o", seen{group: group}, true},
		"a namesake of its JobGroup":     {"JobGroup", "before", seen{group: group}, false},
		"a JobGroup that is not":         {"JobGroup", "o", seen{sj: sj}, false},
		"something of another kind":      {"Application", "o", seen{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := retryRun()
			NewWithT(t).Expect(creator.Owned(seen{}, r)).To(BeTrue(), "nobody owns it")
			r.OwnerReferences = []metav1.OwnerReference{{Kind: c.kind, Name: "o", UID: c.uid, Controller: ptr.To(true)}}
			NewWithT(t).Expect(creator.Owned(c.known, r)).To(Equal(c.owned))
		})
	}
}
