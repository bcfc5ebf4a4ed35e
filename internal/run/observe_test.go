// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAnEditOfARunThatHasEndedIsObservedByItsConditionsToo(t *testing.T) {
	g := NewWithT(t)
	r := &batchv1alpha1.JobRun{}
	r.Generation = 1
	StopOverdue(r, "pod a on node n", time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	Observe(r)
	g.Expect(Observed(r)).To(BeTrue())

	r.Generation = 2
	g.Expect(Observed(r)).To(BeFalse())
	Observe(r)
	g.Expect(Observed(r)).To(BeTrue())
	g.Expect(r.Status.Conditions).To(HaveEach(HaveField("ObservedGeneration", BeEquivalentTo(2))))
}
