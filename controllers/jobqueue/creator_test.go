// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// memberOf makes it a member of a group, which owns it.
func memberOf(group string) change {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: group, Member: "one"}
		r.OwnerReferences = []metav1.OwnerReference{{Kind: "JobGroup", Name: group, UID: types.UID(group), Controller: ptr.To(true)}}
	}
}

func aGroup(name string, recorded ...string) *batchv1alpha1.JobGroup {
	group := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	for _, r := range recorded {
		group.Status.Members = append(group.Status.Members, batchv1alpha1.GroupMemberStatus{Name: r, RunName: r, RunUID: types.UID(r)})
	}
	return group
}

func TestAMemberIsAdmittedOnceItsGroupHasRecordedIt(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(9), aRun("a", memberOf("g")), aRun("late", memberOf("g")), aRun("lost", memberOf("gone")))
	b.sync().settle()
	g.Expect(b.running()).To(BeEmpty())

	group := aGroup("g", "a")
	g.Expect(b.api.Create(t.Context(), group)).To(Succeed())
	b.d.observeGroup(group)
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}), "neither one that it does not know, nor one whose group is not there")
}

func TestWorkThatAPersonConfirmsToHaveStoppedHoldsNoSlotWhateverCanBeSeenOfIt(t *testing.T) {
	g := NewWithT(t)
	lost := aRun("lost", claimedBy("me", mine))
	b := begin(t, aQueue(1), lost, aRun("next"))
	b.sync()
	b.d.observePod(aPod(lost, corev1.PodRunning))
	b.change("lost", endedAs(batchv1alpha1.JobRunFailed, true)) // freed, as its controller does for a person
	b.sync().settle()
	g.Expect(b.running()).To(BeEmpty(), "its pod lives")

	r := b.run("lost")
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, batchv1alpha1.AnnotationConfirmStopped, string(r.UID))
	g.Expect(b.api.Update(t.Context(), r)).To(Succeed())
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"next"}))
	b.d.observePod(aPod(lost, corev1.PodRunning))
	g.Expect(b.counts().Running).To(Equal(1), "another event of the pod changes nothing")
	b.remove("lost")
	b.settle()
	g.Expect(b.counts().Running).To(Equal(1), "and the record may go")
}

func TestASlotThatAPersonFreedStaysFreeAfterARestartInWhateverOrderThingsAreSeen(t *testing.T) {
	dead := aRun("dead", claimedBy("old", before), endedAs(batchv1alpha1.JobRunFailed, true), func(r *batchv1alpha1.JobRun) {
		r.Annotations = map[string]string{batchv1alpha1.AnnotationConfirmStopped: string(r.UID)}
	})
	pod := aPod(dead, corev1.PodRunning)
	for name, see := range map[string]func(*bench){
		"the pod before the run": func(b *bench) { b.d.observePod(pod); b.sync() },
		"the run before the pod": func(b *bench) { b.sync(); b.d.observePod(pod) },
	} {
		t.Run(name, func(t *testing.T) {
			b := begin(t, aQueue(1), dead.DeepCopy(), aRun("next"))
			see(b)
			b.settle()
			NewWithT(t).Expect(b.running()).To(Equal([]string{"next"}))
		})
	}
}

func TestAMemberThatIsRecordedWhileItIsBeingSeenIsAdmitted(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), aGroup("g"), aRun("a", memberOf("g")))
	recorded := make(chan struct{})
	first := true
	b.d.Client = interceptor.NewClient(b.d.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if _, asked := o.(*batchv1alpha1.JobGroup); asked && first {
				first = false
				// Right after this look the group is recorded, and the watch of groups tells of it.
				group := &batchv1alpha1.JobGroup{}
				b.get("g", group)
				group.Status = aGroup("g", "a").Status
				g.Expect(b.api.Update(ctx, group)).To(Succeed())
				go func() {
					b.d.observeGroup(group)
					close(recorded)
				}()
			}
			return err
		},
	})
	b.sync()
	<-recorded
	b.settle()
	g.Expect(b.running()).To(Equal([]string{"a"}))
}
