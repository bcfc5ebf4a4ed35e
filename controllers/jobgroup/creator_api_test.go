// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// scheduled creates a ScheduledJob that ticks every ten minutes, and the group of a tick of it.
func (w *world) scheduled(owned bool) (*batchv1alpha1.ScheduledJob, *batchv1alpha1.JobGroup) {
	w.t.Helper()
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "sj"}}
	sj.Spec.Schedule = "*/10 * * * *"
	sj.Spec.GroupTemplate = &batchv1alpha1.JobGroupTemplateSpec{Members: w.template().Spec.Members}
	w.Expect(w.api.Create(w.ctx, sj)).To(Succeed())
	g := w.create(func(g *batchv1alpha1.JobGroup) {
		g.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
		g.Spec.ScheduledTime = &metav1.Time{Time: tickOf(sj)}
		if owned {
			g.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: batchv1alpha1.GroupVersion.String(), Kind: "ScheduledJob", Name: "sj", UID: sj.UID, Controller: new(true),
			}}
		}
	})
	return sj, g
}

func (w *world) template() *batchv1alpha1.JobGroup {
	g := &batchv1alpha1.JobGroup{}
	members("a", "b")(g)
	return g
}

// tickOf is the first tick after its creation.
func tickOf(sj *batchv1alpha1.ScheduledJob) time.Time {
	return sj.CreationTimestamp.Truncate(10 * time.Minute).Add(10 * time.Minute)
}

// says writes what the ScheduledJob says of its ticks.
func (w *world) says(sj *batchv1alpha1.ScheduledJob, how func(*batchv1alpha1.ScheduledJobStatus)) {
	w.t.Helper()
	sj.Status.ObservedGeneration = sj.Generation
	how(&sj.Status)
	w.Expect(w.api.Status().Update(w.ctx, sj)).To(Succeed())
}

func naming(g *batchv1alpha1.JobGroup) func(*batchv1alpha1.ScheduledJobStatus) {
	return func(s *batchv1alpha1.ScheduledJobStatus) {
		s.Active = append(s.Active, batchv1alpha1.ActiveRun{Name: g.Name, UID: g.UID, ScheduledTime: *g.Spec.ScheduledTime})
		s.HandledThrough = g.Spec.ScheduledTime
	}
}

func TestTheGroupOfATickWaitsUntilItsScheduledJobNamesIt(t *testing.T) {
	w := newWorld(t)
	sj, g := w.scheduled(true)
	w.Expect(w.pass().RequeueAfter).To(Equal(patience))
	w.quiet()
	w.Expect(w.runs()).To(BeEmpty())
	w.Expect(w.get().Status.Phase).To(Equal(batchv1alpha1.JobGroupPending))
	w.says(sj, naming(g))
	w.pass()
	w.shows("Running", "Queued", "Waiting", "Waiting")

	w.says(sj, func(s *batchv1alpha1.ScheduledJobStatus) { s.Active = nil })
	w.does("g-a", "Completed")
	w.pass()
	w.shows("Running", "Completed", "Queued", "Waiting")
}

func TestTheGroupOfATickThatWasSettledWithoutItIsNeverExecuted(t *testing.T) {
	for reason, how := range map[string]func(*batchv1alpha1.JobGroup) func(*batchv1alpha1.ScheduledJobStatus){
		batchv1alpha1.ReasonSuperseded: func(g *batchv1alpha1.JobGroup) func(*batchv1alpha1.ScheduledJobStatus) {
			return func(s *batchv1alpha1.ScheduledJobStatus) { s.HandledThrough = g.Spec.ScheduledTime }
		},
		batchv1alpha1.ReasonOverlapForbidden: func(g *batchv1alpha1.JobGroup) func(*batchv1alpha1.ScheduledJobStatus) {
			return func(s *batchv1alpha1.ScheduledJobStatus) {
				s.HandledThrough, s.LastSkippedTime = g.Spec.ScheduledTime, g.Spec.ScheduledTime
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			sj, g := w.scheduled(true)
			w.says(sj, how(g))
			w.pass()
			w.shows("Skipped", "Skipped", "Skipped", "Skipped")
			w.Expect(w.get().Status).To(And(HaveField("Reason", reason), HaveField("Message", Not(BeEmpty())), HaveField("Settled", "3/3")))
			w.Expect(meta.IsStatusConditionTrue(w.get().Status.Conditions, batchv1alpha1.ConditionComplete)).To(BeTrue())
			w.Expect(w.runs()).To(BeEmpty())
			w.quiet()
		})
	}
}

func TestACacheThatIsBehindTheFireRefusesNothing(t *testing.T) {
	w := newWorld(t)
	sj, g := w.scheduled(true)
	then := sj.DeepCopy()
	then.Status.HandledThrough = g.Spec.ScheduledTime
	w.says(sj, naming(g))
	w.faults.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if shown, ok := o.(*batchv1alpha1.ScheduledJob); ok {
			then.DeepCopyInto(shown)
			return nil
		}
		return c.Get(ctx, key, o, opts...)
	}
	w.pass()
	w.shows("Running", "Queued", "Waiting", "Waiting")
}

func TestAGroupWhoseScheduledJobIsGoneIsExecutedUnlessItWasItsOwner(t *testing.T) {
	t.Run("no owner", func(t *testing.T) {
		w := newWorld(t)
		sj, _ := w.scheduled(false)
		w.remove(sj)
		w.pass()
		w.shows("Running", "Queued", "Waiting", "Waiting")
	})
	t.Run("its owner, as after a restore", func(t *testing.T) {
		w := newWorld(t)
		w.scheduled(true)
		// The garbage collector would be too fast for the test: an owner of that name exists, under another UID.
		g := w.get()
		g.OwnerReferences[0].UID = "uid-of-old"
		held := &world{WithT: w.WithT, t: t, ctx: w.ctx, api: w.api, ns: w.ns, clock: w.clock}
		held.faults.Get = func(_ context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if shown, ok := o.(*batchv1alpha1.JobGroup); ok {
				g.DeepCopyInto(shown)
				return nil
			}
			return c.Get(w.ctx, key, o, opts...)
		}
		w.Expect(held.pass().RequeueAfter).To(Equal(patience))
		w.Expect(w.runs()).To(BeEmpty())
		stalled := meta.FindStatusCondition(w.get().Status.Conditions, batchv1alpha1.ConditionStalled)
		w.Expect(stalled).To(And(HaveField("Reason", batchv1alpha1.ReasonOwnerNotFound), HaveField("Message", ContainSubstring("uid-of-old"))))
		w.shows("Pending", "Waiting", "Waiting", "Waiting")
	})
}

func TestTheGroupOfATickCanBeCancelledBeforeItIsRecorded(t *testing.T) {
	w := newWorld(t)
	w.scheduled(true)
	w.edit(cancelled)
	w.pass()
	w.shows("Cancelled", "Cancelled", "Cancelled", "Cancelled")
}

func TestAGroupThatAPersonMakesForAScheduledJobNeedsNoRecord(t *testing.T) {
	w := newWorld(t)
	w.create(func(g *batchv1alpha1.JobGroup) { g.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"} })
	w.pass()
	w.shows("Running", "Queued", "Waiting", "Waiting")
}
