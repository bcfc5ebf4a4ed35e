// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhenAChainMayBeRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		runs []batchv1alpha1.JobRun
		at   time.Duration // from noon; the TTL is over
	}{
		"long after its end":                                  {runs(root("a", time.Hour)), 0},
		"ten minutes after its last change":                   {runs(root("a", 4*time.Minute)), 6 * time.Minute},
		"ten minutes after the last change of any run of it":  {runs(root("a", time.Hour), retryOf("a", 1, time.Minute)), 9 * time.Minute},
		"ten minutes after a run was created":                 {runs(root("a", time.Hour, func(r *batchv1alpha1.JobRun) { r.CreationTimestamp = ago(time.Minute) })), 9 * time.Minute},
		"ten minutes after a condition changed":               {runs(root("a", time.Hour, told(batchv1alpha1.ConditionComplete, 2*time.Minute))), 8 * time.Minute},
		"a day after its last change if a restart failed it":  {runs(root("a", 23*time.Hour, failed, crashed)), time.Hour},
		"a day also if it went well after the restart":        {runs(root("a", 24*time.Hour, crashed), retryOf("a", 1, 23*time.Hour)), time.Hour},
		"a day also if the run in question was deleted":       {runs(root("a", 23*time.Hour, func(r *batchv1alpha1.JobRun) { r.Status.Chain = &batchv1alpha1.ChainStatus{CrashRecovered: true} })), time.Hour},
		"when more than a day has passed since":               {runs(root("a", 25*time.Hour, failed, crashed)), 0},
		"not while it holds a slot, which is looked at again": {runs(root("a", time.Hour, failed, holding)), Quiet},
		"not while what was given up is asked for once more":  {runs(root("a", time.Hour), retryOf("a", 1, time.Hour, givenUp, askedFor)), Quiet},
		"but when it was given up and nobody asks":            {runs(root("a", time.Hour), retryOf("a", 1, time.Hour, givenUp)), 0},
		"not while a receiver is owed something":              {runs(root("a", time.Hour), retryOf("a", 1, time.Hour, owing)), Quiet},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ttl(0)(&c.runs[0])
			chain := one(c.runs...)
			p := ByTTL(chain, nil, noon)
			g.Expect(chain.RemovableAt(noon).After(noon)).To(Equal(c.at > 0))
			if c.at > 0 {
				g.Expect(p.Remove).To(BeEmpty())
				g.Expect(p.Look).To(BeTemporally("==", noon.Add(c.at)))
				return
			}
			g.Expect(names(p.Remove)).To(Equal([]string{"a"}))
			g.Expect(p.Look).To(BeZero())
		})
	}
}

func TestNothingIsRemovedOfAChainThatGoesOn(t *testing.T) {
	g := NewWithT(t)
	c := one(root("a", 48*time.Hour, untold, failed, ttl(0)), retryOf("a", 1, time.Hour, queued))
	g.Expect(c.RemovableAt(noon)).To(BeTemporally("==", noon.Add(Quiet)))
	g.Expect(ByTTL(c, nil, noon)).To(Equal(Plan{}))
	g.Expect(ByLimits([]Unit{c}, Limits{}, noon)).To(Equal(Plan{}))
}
