// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAChainIsRemovedWhenItsTimeToLiveIsOver(t *testing.T) {
	const hour = 3600
	resolved := func(r *batchv1alpha1.JobRun) {
		r.Spec.Work = nil
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{}
		r.Status.ResolvedSpec.TTLSecondsAfterFinished = ptr.To[int32](hour)
	}
	for name, c := range map[string]struct {
		runs []batchv1alpha1.JobRun
		at   time.Duration // from noon; negative: never
	}{
		"kept if it names none":                           {runs(root("a", 48*time.Hour)), -1},
		"removed once it is over":                         {runs(root("a", 90*time.Minute, ttl(hour))), 0},
		"looked at when it will be":                       {runs(root("a", 20*time.Minute, ttl(hour))), 40 * time.Minute},
		"counted from the end of the chain":               {runs(root("a", 3*time.Hour, ttl(hour)), retryOf("a", 1, 30*time.Minute)), 30 * time.Minute},
		"what the root was resolved to counts":            {runs(root("a", 20*time.Minute, resolved)), 40 * time.Minute},
		"the root's own value counts before that":         {runs(root("a", 20*time.Minute, resolved, ttl(2*hour))), 100 * time.Minute},
		"a retry's value does not count":                  {runs(root("a", 3*time.Hour), retryOf("a", 1, 2*time.Hour, ttl(0))), -1},
		"without the root the earliest run's counts":      {runs(retryOf("a", 1, 3*time.Hour, ttl(hour)), retryOf("a", 2, 2*time.Hour)), 0},
		"a run that was cancelled before it was resolved": {runs(root("a", time.Hour, func(r *batchv1alpha1.JobRun) { r.Spec.Work = nil }, ttl(0))), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := ByTTL(one(c.runs...), noon)
			switch {
			case c.at < 0:
				g.Expect(p).To(Equal(Plan{}))
			case c.at == 0:
				g.Expect(names(p.Remove)).To(Equal([]string{"a"}))
			default:
				g.Expect(p.Remove).To(BeEmpty())
				g.Expect(p.Look).To(BeTemporally("==", noon.Add(c.at)))
			}
		})
	}
}

func TestNothingFollowsFromAChainThatIsGone(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ByTTL(Chain{}, noon)).To(Equal(Plan{}))
	g.Expect(Chain{}.Removable(noon)).To(BeFalse())
}
