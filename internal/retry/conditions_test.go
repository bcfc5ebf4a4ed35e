// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func conditionTypes(r *batchv1alpha1.JobRun) []string {
	var types []string
	for _, c := range r.Status.Conditions {
		types = append(types, c.Type)
	}
	slices.Sort(types)
	return types
}

func TestConditions(t *testing.T) {
	goesOn := Settlement{Reason: "Retrying", Message: "m"}
	succeeded := Settlement{Over: true, Reason: "Succeeded", Message: "m"}
	lost := Settlement{Over: true, Failed: true, Reason: "RetriesExhausted", Message: "m"}
	root := aRun("root", failed)
	between := aRun("root-r1", failed, attempt(1, "root"))
	last := aRun("root-r2", phase(batchv1alpha1.JobRunCompleted), attempt(2, "root-r1"))

	for _, c := range []struct {
		name  string
		chain Settlement
		run   *batchv1alpha1.JobRun
		want  []string
	}{
		{"a failed root whose chain goes on is in progress", goesOn, root, []string{"Reconciling"}},
		{"a failed retry whose chain goes on is in progress", goesOn, between, []string{"Reconciling"}},
		{"a root whose chain succeeded is complete, although its own attempt failed", succeeded, root, []string{"Complete"}},
		{"a failed retry in a chain that succeeded is nothing to look after", succeeded, between, nil},
		{"a completed retry says all by its phase", succeeded, last, nil},
		{"a root whose chain failed for good is failed and stalled", lost, root, []string{"Failed", "Stalled"}},
		{"a failed retry in a chain that failed for good is stalled", lost, between, []string{"Stalled"}},
		{"a run that was set aside is not stalled with the chain", lost, aRun("late", phase(batchv1alpha1.JobRunSkipped), attempt(1, "root")), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.run.DeepCopy()
			c.chain.show(r, noon)
			if got := conditionTypes(r); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			for _, got := range r.Status.Conditions {
				want := metav1.Condition{
					Type: got.Type, Status: metav1.ConditionTrue, Reason: c.chain.Reason, Message: "m",
					ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(noon),
				}
				if got != want {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		})
	}
}

func TestConditionsFollowTheChainAndKeepTheirTimes(t *testing.T) {
	orphaned := metav1.Condition{Type: batchv1alpha1.ConditionOrphaned, Status: metav1.ConditionTrue, Reason: "x", LastTransitionTime: metav1.NewTime(noon)}
	r := aRun("root", failed, func(r *batchv1alpha1.JobRun) { r.Status.Conditions = []metav1.Condition{orphaned} })
	lost := Settlement{Over: true, Failed: true, Reason: "RetriesExhausted"}
	steps := []struct {
		chain Settlement
		now   time.Time
		want  []string
	}{
		{lost, noon, []string{"Failed", "Orphaned", "Stalled"}},
		{lost, at(60), []string{"Failed", "Orphaned", "Stalled"}},
		{Settlement{Reason: "Retrying"}, at(90), []string{"Orphaned", "Reconciling"}}, // a person retried it
		{Settlement{Over: true, Reason: "Succeeded"}, at(120), []string{"Complete", "Orphaned"}},
	}
	for i, step := range steps {
		step.chain.show(r, step.now)
		if got := conditionTypes(r); !slices.Equal(got, step.want) {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
		if i == 1 && !meta.FindStatusCondition(r.Status.Conditions, "Failed").LastTransitionTime.Time.Equal(noon) {
			t.Error("what was so before seems to have begun later")
		}
	}
}
