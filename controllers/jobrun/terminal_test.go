// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAnEditOfARunThatHasEndedIsObservedOnce(t *testing.T) {
	for name, over := range map[string]change{"with its slot free": completed, "with its slot held": failed(false)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, queue("main"), queued("a", maxRetries(0), over))
			b.work.stop = outOfReach
			for range 2 {
				b.step("a")
			}
			before := b.writes
			b.edit("a", func(r *batchv1alpha1.JobRun) {
				r.Generation++
				r.Spec.TTLSecondsAfterFinished = ptr.To[int32](3600)
			})
			for range 2 {
				b.step("a")
			}
			s := b.run("a").Status
			g.Expect(s.ObservedGeneration).To(Equal(b.run("a").Generation))
			g.Expect(s.Conditions).To(And(Not(BeEmpty()), HaveEach(HaveField("ObservedGeneration", s.ObservedGeneration))))
			g.Expect(b.writes - before).To(Equal(1))
		})
	}
}
