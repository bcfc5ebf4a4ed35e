// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestRunsAreSortedIntoChainsInTheOrderOfTheirAttempts(t *testing.T) {
	g := NewWithT(t)
	chains := Chains(runs(retryOf("b", 2, time.Hour), root("a", time.Hour), retryOf("b", 1, time.Hour), root("b", time.Hour)))
	g.Expect(names(chains)).To(Equal([]string{"a", "b"}))
	b := chains[0]
	g.Expect(b.Root.Name).To(Equal("b"))
	g.Expect([]string{b.Runs[0].Name, b.Runs[1].Name, b.Runs[2].Name}).To(Equal([]string{"b", "b-r1", "b-r2"}))
}

func TestAChainIsSettledWhenItsRootTellsTheEndAndEveryRunIsTerminal(t *testing.T) {
	for name, c := range map[string]struct {
		runs    []batchv1alpha1.JobRun
		settled bool
	}{
		"a root that completed":                             {runs(root("a", time.Hour)), true},
		"a root that failed for good":                       {runs(root("a", time.Hour, failed)), true},
		"a Queued root":                                     {runs(root("a", time.Hour, queued)), false},
		"a failed root that has not told the end":           {runs(root("a", time.Hour, untold, failed)), false},
		"a root that told the end while a person retries":   {runs(root("a", time.Hour, failed), retryOf("a", 1, time.Hour, queued)), false},
		"retries whose root was deleted":                    {runs(retryOf("a", 1, time.Hour, failed)), true},
		"a waiting retry whose root was deleted":            {runs(retryOf("a", 1, time.Hour, failed), retryOf("a", 2, time.Hour, queued)), false},
		"a refused manual retry, which is part of no chain": {runs(root("m", time.Hour, untold, phase(batchv1alpha1.JobRunSkipped), func(r *batchv1alpha1.JobRun) { r.Spec.RetryOf = "a" })), true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(one(c.runs...).Settled()).To(Equal(c.settled))
		})
	}
}

func TestOnlyTheRootSaysThatAChainFailedAndWithoutItTheLatestRun(t *testing.T) {
	g := NewWithT(t)
	g.Expect(one(root("a", time.Hour), retryOf("a", 1, time.Hour, failed)).Failed()).To(BeFalse())
	g.Expect(one(root("a", time.Hour, failed), retryOf("a", 1, time.Hour)).Failed()).To(BeTrue())
	g.Expect(one(retryOf("a", 1, time.Hour), retryOf("a", 2, time.Hour, failed)).Failed()).To(BeTrue())
	g.Expect(one(retryOf("a", 1, time.Hour, failed), retryOf("a", 2, time.Hour)).Failed()).To(BeFalse())
}

func TestAChainSettledWhenItsLastRunEnded(t *testing.T) {
	g := NewWithT(t)
	c := one(root("a", 3*time.Hour, told(batchv1alpha1.ConditionComplete, time.Hour)), retryOf("a", 1, 2*time.Hour))
	g.Expect(c.SettledAt()).To(BeTemporally("==", noon.Add(-time.Hour)))
}

func TestTheRetriesThatAChainLacksAreNamed(t *testing.T) {
	g := NewWithT(t)
	c := one(root("a", time.Hour, failed, retriedBy("a-r1")), retryOf("a", 1, time.Hour, failed, retriedBy("by-hand")))
	g.Expect(c.Unseen()).To(HaveLen(1))
	g.Expect(c.Unseen()[0].Name).To(Equal("by-hand"))
}

func TestChildrenAreDeletedFirstTheLatestBeforeTheOthers(t *testing.T) {
	g := NewWithT(t)
	order := objects(one(root("a", time.Hour), retryOf("a", 2, time.Hour), retryOf("a", 1, time.Hour)))
	g.Expect(order).To(Equal([]string{"a-r2", "a-r1", "a"}))
}
