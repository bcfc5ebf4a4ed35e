// SPDX-License-Identifier: Apache-2.0

package directreservation

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func queue(name string) *batchv1alpha1.JobQueue {
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{
		Types:     []batchv1alpha1.TypeConcurrency{{Name: "story", Limit: ptr.To[int32](1)}},
		Resources: []batchv1alpha1.QueueResource{{Name: "ollama", Capacity: 1}},
	}
	return q
}

func wanting(queue, kind, resource string, count int32) change {
	return func(d *batchv1alpha1.DirectReservation) {
		d.Spec.Queue, d.Spec.Type = queue, kind
		if resource != "" {
			d.Spec.Claims = []batchv1alpha1.ResourceClaim{{Name: resource, Count: count}}
		}
	}
}

func TestAReservationSaysWhyItsQueueCannotGrantIt(t *testing.T) {
	for name, c := range map[string]struct {
		wants  change
		phase  change
		reason string
		says   string
	}{
		"a type and a resource that the queue has":  {wanting("gpu", "story", "ollama", 1), seen, "", ""},
		"a queue that does not exist":               {wanting("none", "", "", 0), seen, batchv1alpha1.ReasonQueueNotFound, "JobQueue none does not exist in namespace ns"},
		"the default queue, which will be created":  {wanting("", "", "", 0), seen, "", ""},
		"a type that the queue does not list":       {wanting("gpu", "novel", "", 0), seen, batchv1alpha1.ReasonUnknownType, `"novel"`},
		"a resource that the queue does not have":   {wanting("gpu", "", "olama", 1), seen, batchv1alpha1.ReasonUnknownResource, `"olama"`},
		"more than the queue has":                   {wanting("gpu", "", "ollama", 2), seen, batchv1alpha1.ReasonExceedsCapacity, "ollama"},
		"more than it has by now, when it is next":  {wanting("gpu", "", "ollama", 2), active(mine), batchv1alpha1.ReasonExceedsCapacity, "ollama"},
		"more than it has by now, when it has that": {wanting("gpu", "", "ollama", 2), granted(mine), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := start(t, interceptor.Funcs{}, queue("gpu"), pending(c.wants, c.phase))
			b.at(1).step()
			stalled := meta.FindStatusCondition(b.shell().Status.Conditions, batchv1alpha1.ConditionStalled)
			if c.reason == "" {
				g.Expect(stalled).To(BeNil())
				return
			}
			g.Expect(stalled).NotTo(BeNil())
			g.Expect(stalled.Reason).To(Equal(c.reason))
			g.Expect(stalled.Message).To(ContainSubstring(c.says))

			told := b.shell()
			result := b.at(2).step()
			g.Expect(b.shell()).To(Equal(told), "it says so once")
			g.Expect(result.RequeueAfter).To(BeNumerically(">", 0), "and still ends with its wait")
			b.at(700).step()
			g.Expect(b.shell().Status.Phase).To(Equal(batchv1alpha1.ReservationExpired))
			g.Expect(b.shell().Status.Reason).To(Equal(batchv1alpha1.ReasonWaitTimeout))
		})
	}
}

func TestAReservationThatItsQueueCanGrantAgainSaysNothingMore(t *testing.T) {
	g := NewWithT(t)
	gpu := queue("gpu")
	b := start(t, interceptor.Funcs{}, gpu, pending(wanting("gpu", "", "ollama", 2), seen))
	b.at(1).step()
	g.Expect(meta.IsStatusConditionTrue(b.shell().Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeTrue())

	g.Expect(b.api.Get(t.Context(), client.ObjectKeyFromObject(gpu), gpu)).To(Succeed())
	gpu.Spec.Concurrency.Resources[0].Capacity = 2
	g.Expect(b.api.Update(t.Context(), gpu)).To(Succeed())
	b.at(2).step()
	g.Expect(meta.FindStatusCondition(b.shell().Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
	g.Expect(b.shell().Status.Phase).To(Equal(batchv1alpha1.ReservationPending))
}
