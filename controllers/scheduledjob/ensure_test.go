// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// A fire that the caches show nothing of yet: whatever a tick has made, and for whichever ScheduledJob of the name, is found
// under its name when it would be made again.
func TestATickThatHasMadeItsRunMakesNoOtherHoweverLittleTheCacheShows(t *testing.T) {
	seven := clockTime("07:00:00")
	ofAnother := func(r *batchv1alpha1.JobRun) { r.OwnerReferences[0].UID = "deleted" }
	begun := func(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunRunning }
	over := func(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunCompleted }
	for name, made := range map[string]batchv1alpha1.JobRun{
		"one that waits": ticked(seven),
		"one that is at work for a ScheduledJob that was deleted and made again": ticked(seven, ofAnother, begun),
		"one that has ended, and its ScheduledJob was made again":                ticked(seven, ofAnother, over),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(batchv1alpha1.AddToScheme(scheme)).To(Succeed())
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&made).Build()
			s := scope{Reconciler: &Reconciler{Client: api, Live: api}, sj: hourly()}
			found, foreign, err := s.ensure(t.Context(), seven)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.made.uid).To(Equal(made.UID))
			g.Expect(found.anew).To(BeFalse())
			g.Expect(foreign).To(BeZero())
			all := &batchv1alpha1.JobRunList{}
			g.Expect(api.List(t.Context(), all)).To(Succeed())
			g.Expect(all.Items).To(HaveLen(1))
		})
	}
}
