// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
)

func TestASequenceMakesAMemberWhenTheOneBeforeHasSettled(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.Expect(w.names()).To(Equal([]string{"g-a"}))
	w.shows("Running", "Queued", "Waiting", "Waiting")
	first := w.run("g-a")
	w.Expect(w.get().Status.Members[0]).To(And(HaveField("RunName", "g-a"), HaveField("RunUID", first.UID)))
	w.Expect(first.Spec.GroupRef).To(Equal(&batchv1alpha1.GroupMemberRef{Name: "g", Member: "a"}))
	w.Expect(metav1.IsControlledBy(first, w.get())).To(BeTrue())
	w.Expect(first.Spec.Queue).To(Equal("default"))
	w.quiet()

	w.begin("g-a")
	w.pass()
	w.shows("Running", "Running", "Waiting", "Waiting")
	w.end("g-a", "Completed", false)
	w.pass()
	w.Expect(w.names()).To(HaveLen(1), "its work may be alive")
	w.write("g-a", func(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotFree })
	w.pass()
	w.Expect(w.names()).To(Equal([]string{"g-a", "g-b"}))
	w.shows("Running", "Completed", "Queued", "Waiting")

	w.does("g-b", "Skipped")
	w.pass()
	w.does("g-c", "Completed")
	w.clock.SetTime(w.clock.Now().Add(time.Hour))
	w.pass()
	w.shows("Completed", "Completed", "Skipped", "Completed")
	s := w.get().Status
	w.Expect(s.Settled).To(Equal("3/3"))
	w.Expect(s.FinishedAt.Sub(s.StartedAt.Time)).To(Equal(time.Hour))
	w.Expect(meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionComplete)).To(BeTrue())
	w.Expect(s.ObservedGeneration).To(Equal(w.get().Generation))
	w.quiet()

	w.edit(func(g *batchv1alpha1.JobGroup) { g.Spec.TTLSecondsAfterFinished = new(int32(5)) })
	w.pass()
	w.Expect(w.get().Status.ObservedGeneration).To(Equal(w.get().Generation), "or it would read as in progress for ever")
	w.quiet()
}

func TestAMemberFailsWhenItsChainHas(t *testing.T) {
	w := newWorld(t)
	w.create(retried(1))
	w.pass()
	w.does("g-a", "Failed")
	w.pass()
	w.shows("Running", "Queued", "Waiting", "Waiting")
	w.retry("g-a")
	w.tell("g-a")
	w.pass()
	w.Expect(w.names()).To(Equal([]string{"g-a", "g-a-r1"}))
	w.Expect(w.get().Status.Members[0].Message).To(ContainSubstring("retry 1, g-a-r1, is Queued"))
	w.does("g-a-r1", "Completed")
	w.tell("g-a")
	w.pass()
	w.shows("Running", "Completed", "Queued", "Waiting")

	w.does("g-b", "Failed")
	w.retry("g-b")
	w.does("g-b-r1", "Failed")
	w.tell("g-b")
	w.pass()
	w.shows("Failed", "Completed", "Failed", "Cancelled")
	s := w.get().Status
	w.Expect(s.Reason).To(Equal(batchv1alpha1.ReasonMemberFailed))
	w.Expect(s.Message).To(HavePrefix("member b has failed: all 1 automatic retries are used up"))
	w.Expect(meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionFailed)).To(BeTrue())
	w.Expect(meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionStalled)).To(BeTrue())
	w.Expect(w.names()).NotTo(ContainElement("g-c"), "it was never made")
	w.quiet()
}

func TestWhatAFailureDoesToTheRest(t *testing.T) {
	for policy, c := range map[batchv1alpha1.GroupFailurePolicy]struct {
		asked string // of the one at work, and of the one that waits
		end   func(*world)
		want  []batchv1alpha1.GroupMemberPhase
	}{
		batchv1alpha1.GroupStop:     {"Cancelled", func(w *world) { w.obey("g-b"); w.obey("g-c") }, []batchv1alpha1.GroupMemberPhase{"Failed", "Cancelled", "Cancelled"}},
		batchv1alpha1.GroupSkip:     {"Skipped", func(w *world) { w.end("g-b", "Completed", true); w.obey("g-c") }, []batchv1alpha1.GroupMemberPhase{"Failed", "Completed", "Skipped"}},
		batchv1alpha1.GroupContinue: {"", func(w *world) { w.end("g-b", "Completed", true); w.does("g-c", "Completed") }, []batchv1alpha1.GroupMemberPhase{"Failed", "Completed", "Completed"}},
	} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			w.create(parallel, on(policy))
			w.pass()
			w.begin("g-b")
			w.does("g-a", "Failed")
			w.pass()
			w.shows("Running", "Failed", "Running", "Queued")
			for _, name := range []string{"g-b", "g-c"} {
				halt := w.run(name).Status.Halt
				w.Expect(halt != nil).To(Equal(c.asked != ""))
				if halt != nil {
					w.Expect(halt).To(And(HaveField("Phase", batchv1alpha1.JobRunPhase(c.asked)), HaveField("Reason", "MemberFailed"), HaveField("Message", ContainSubstring("member a has failed"))))
				}
			}
			w.quiet()
			c.end(w)
			w.pass()
			w.shows("Failed", c.want...)
			w.quiet()
		})
	}
}

func TestWhatWasOnlyNotToBeRetriedIsStoppedWhenTheGroupIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.create(parallel, on(batchv1alpha1.GroupSkip), members("a", "b"))
	w.pass()
	w.begin("g-b")
	w.does("g-a", "Failed")
	w.pass()
	w.Expect(w.run("g-b").Status.Halt.Phase).To(Equal(batchv1alpha1.JobRunSkipped))
	w.edit(cancelled)
	w.pass()
	w.Expect(w.run("g-b").Status.Halt.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	w.shows("Cancelling", "Failed", "Running")
	w.obey("g-b")
	w.pass()
	w.shows("Failed", "Failed", "Cancelled")
}

func TestACancelledGroupStopsAndMakesNothingMore(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.begin("g-a")
	w.edit(cancelled)
	w.pass()
	w.shows("Cancelling", "Running", "Cancelled", "Cancelled")
	w.Expect(w.run("g-a").Status.Halt).To(HaveField("Reason", batchv1alpha1.ReasonGroupCancelled))
	w.quiet()
	w.obey("g-a")
	w.pass()
	w.shows("Cancelled", "Cancelled", "Cancelled", "Cancelled")
	w.Expect(w.get().Status.Reason).To(Equal(batchv1alpha1.ReasonCancelled))
	w.Expect(w.names()).To(Equal([]string{"g-a"}))
	w.quiet()
}

func TestAGroupThatIsCancelledAtOnceMakesNothing(t *testing.T) {
	w := newWorld(t)
	w.create(cancelled, parallel)
	w.pass()
	w.shows("Cancelled", "Cancelled", "Cancelled", "Cancelled")
	w.Expect(w.runs()).To(BeEmpty())
	w.quiet()
}

func TestAGroupThatIsReplacedIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	g := w.get()
	g.Status.Halt = &batchv1alpha1.Halt{Phase: "Cancelled", Reason: batchv1alpha1.ReasonReplaced, Message: "replaced by the tick of noon"}
	w.Expect(w.api.Status().Update(w.ctx, g)).To(Succeed())
	w.pass()
	w.obey("g-a")
	w.pass()
	w.shows("Cancelled", "Cancelled", "Cancelled", "Cancelled")
	w.Expect(w.get().Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	w.Expect(w.run("g-a").Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
}

func TestAMemberWhoseRunAPersonDeletesIsNotMadeAgain(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.remove(w.run("g-a"))
	w.pass()
	w.shows("Running", "Cancelled", "Queued", "Waiting")
	w.Expect(w.get().Status.Members[0]).To(And(HaveField("Reason", batchv1alpha1.ReasonMemberDeleted), HaveField("RunName", "g-a")))
	w.Expect(w.names()).To(Equal([]string{"g-b"}))
	w.does("g-b", "Completed")
	w.pass()
	w.remove(w.run("g-b"))
	w.does("g-c", "Completed")
	w.pass()
	w.shows("Completed", "Cancelled", "Completed", "Completed")
}

func TestASequenceWaitsUntilTheWorkOfADeletedRunHasStopped(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	r := w.run("g-a")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "a", Labels: map[string]string{
		batchv1alpha1.LabelChain: string(r.UID), batchv1alpha1.LabelRunUID: string(r.UID),
	}}}
	pod.Spec = corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "image"}}}
	w.Expect(w.api.Create(w.ctx, pod)).To(Succeed())
	w.remove(r)
	w.Expect(w.pass().RequeueAfter).To(Equal(attendEvery))
	w.shows("Running", "Running", "Waiting", "Waiting")
	w.Expect(w.get().Status.Members[0].Reason).To(Equal(batchv1alpha1.ReasonMemberDeleted))

	pod.Status.Phase = corev1.PodFailed
	w.Expect(w.api.Status().Update(w.ctx, pod)).To(Succeed())
	w.pass()
	w.shows("Running", "Cancelled", "Queued", "Waiting")
}

func TestAGroupWhoseMembersWereAllCancelledOneByOneIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.create()
	for _, name := range []string{"g-a", "g-b", "g-c"} {
		w.pass()
		w.end(name, "Cancelled", true)
	}
	w.pass()
	w.shows("Cancelled", "Cancelled", "Cancelled", "Cancelled")
}

func TestAGroupThatIsBeingDeletedMakesNothingAndTakesItsRunsAlong(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.does("g-a", "Completed")
	w.remove(w.get(), client.PropagationPolicy(metav1.DeletePropagationForeground))
	w.pass()
	w.Expect(w.names()).NotTo(ContainElement("g-b"))
	w.Eventually(w.runs).Should(BeEmpty())
	w.Eventually(func() bool {
		return apierrors.IsNotFound(w.api.Get(w.ctx, w.key("g"), &batchv1alpha1.JobGroup{}))
	}).Should(BeTrue())
	w.pass()
	w.Expect(w.runs()).To(BeEmpty())
}

func TestSixtyFourMembersSideBySide(t *testing.T) {
	w := newWorld(t)
	var names []string
	for i := range 64 {
		names = append(names, fmt.Sprintf("%s-%02d", strings.Repeat("m", 60), i))
	}
	w.create(parallel, members(names...))
	w.pass()
	w.Expect(w.runs()).To(HaveLen(64))
	w.Expect(w.get().Status.Settled).To(Equal("0/64"))
	for _, r := range w.runs() {
		w.does(r.Name, "Completed")
	}
	w.pass()
	w.Expect(w.get().Status).To(And(HaveField("Phase", batchv1alpha1.JobGroupCompleted), HaveField("Settled", "64/64")))
	w.quiet()
}

func TestTheEndIsOwedToTheReceiversOfTheQueueOfTheFirstMember(t *testing.T) {
	w := newWorld(t)
	queue := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "default"}}
	queue.Spec.Notifications = &batchv1alpha1.Notifications{
		Receivers: []batchv1alpha1.NotificationReceiver{{Name: "ops", URL: "http://localhost/"}},
	}
	w.Expect(w.api.Create(w.ctx, queue)).To(Succeed())
	w.create(members("a"))
	w.pass()
	w.Expect(w.get().Status.Announcements).To(BeEmpty())
	w.does("g-a", "Failed")
	// The cache does not show the queue yet: its absence there decides nothing.
	w.faults.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, queue := o.(*batchv1alpha1.JobQueue); queue {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "jobqueues"}, key.Name)
		}
		return c.Get(ctx, key, o, opts...)
	}
	w.pass()
	got := w.get()
	w.Expect(got.Status.Announcements).To(HaveLen(1))
	w.Expect(got.Status.Announcements).To(Equal(notify.OwedByGroup(got, notify.Sources{Queue: queue})))
	w.quiet()
}
