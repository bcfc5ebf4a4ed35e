// SPDX-License-Identifier: Apache-2.0

package index_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/controllers/index"
)

// cache keeps what is registered.
type cache map[string]client.IndexerFunc

func (c cache) IndexField(_ context.Context, o client.Object, field string, of client.IndexerFunc) error {
	if _, twice := c[field]; twice {
		return fmt.Errorf("two indexes named %s", field)
	}
	c[field] = func(found client.Object) []string {
		if reflect.TypeOf(found) != reflect.TypeOf(o) {
			return nil
		}
		return of(found)
	}
	return nil
}

type broken struct{}

func (broken) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return errors.New("the cache has started")
}

func stalled(r *batchv1alpha1.JobRun) {
	r.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
}

func TestWhereARunIsFound(t *testing.T) {
	indexes := cache{}
	NewWithT(t).Expect(index.Register(t.Context(), indexes)).To(Succeed())

	type found = map[string][]string
	for name, c := range map[string]struct {
		change func(*batchv1alpha1.JobRun)
		want   found
	}{
		"a run that waits and is a chain of its own by nothing": {
			func(*batchv1alpha1.JobRun) {},
			found{},
		},
		"a run at work by its phase, and as the chain that it is": {
			func(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunRunning },
			found{index.Phase: {"Running"}, index.Chain: {"uid"}},
		},
		"a run that is being cancelled by its phase, and as the chain that it is": {
			func(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunCancelling },
			found{index.Phase: {"Cancelling"}, index.Chain: {"uid"}},
		},
		"a run that has ended as the chain that it is": {
			func(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunCompleted },
			found{index.Chain: {"uid"}},
		},
		"a retry by the chain that it continues": {
			func(r *batchv1alpha1.JobRun) { r.Spec.Chain = &batchv1alpha1.Chain{RootUID: "uid-of-root"} },
			found{index.Chain: {"uid-of-root"}},
		},
		"a manual retry by the chain that it was found to continue": {
			func(r *batchv1alpha1.JobRun) {
				r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{Chain: &batchv1alpha1.Chain{RootUID: "uid-of-root"}}
			},
			found{index.Chain: {"uid-of-root"}},
		},
		"a run of a ScheduledJob by its name": {
			func(r *batchv1alpha1.JobRun) { r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"} },
			found{index.ScheduledJob: {"nightly"}},
		},
		"a member of a group by the name of the group": {
			func(r *batchv1alpha1.JobRun) {
				r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: "release", Member: "build"}
			},
			found{index.Chain: {"uid"}, index.Group: {"release"}},
		},
		"a retry of a member by the name of the group that owns it": {
			func(r *batchv1alpha1.JobRun) {
				r.Spec.Chain = &batchv1alpha1.Chain{RootUID: "uid-of-root"}
				r.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "JobGroup", Name: "release", UID: "uid-of-group", Controller: new(true),
				}}
			},
			found{index.Chain: {"uid-of-root"}, index.Group: {"release"}},
		},
		"a run that is held by its queue": {
			stalled,
			found{index.StalledQueue: {"gpu"}},
		},
		"a run that has failed for good by no queue, although it is Stalled": {
			func(r *batchv1alpha1.JobRun) { stalled(r); r.Status.Phase = batchv1alpha1.JobRunFailed },
			found{index.Chain: {"uid"}},
		},
		"a held run that is yet to be resolved by no queue": {
			func(r *batchv1alpha1.JobRun) { stalled(r); r.Spec.Work = nil },
			found{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: "run", UID: "uid"}}
			r.Spec.Work, r.Spec.Queue = &batchv1alpha1.Work{}, "gpu"
			r.Status.Phase = batchv1alpha1.JobRunQueued
			c.change(r)
			got := found{}
			for field, of := range indexes {
				if values := of(r); values != nil {
					got[field] = values
				}
			}
			NewWithT(t).Expect(got).To(Equal(c.want))
		})
	}
}

func TestAGroupIsFoundByTheNameOfItsScheduledJob(t *testing.T) {
	g := NewWithT(t)
	indexes := cache{}
	g.Expect(index.Register(t.Context(), indexes)).To(Succeed())
	group := &batchv1alpha1.JobGroup{}
	for field, of := range indexes {
		g.Expect(of(group)).To(BeEmpty(), field)
	}
	group.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "nightly"}
	g.Expect(indexes[index.ScheduledJobGroups](group)).To(Equal([]string{"nightly"}))
}

func TestAnIndexThatCannotBeAddedIsAnError(t *testing.T) {
	NewWithT(t).Expect(index.Register(t.Context(), broken{})).To(MatchError(ContainSubstring("the cache has started")))
}
