// SPDX-License-Identifier: Apache-2.0

package jobgroup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/group"
)

var errCrash = errors.New("the manager ends here")

// ends makes the manager end at its n-th write: after or before the API server has carried it out.
func (w *world) ends(n int, carriedOut bool) {
	writes := 0
	write := func(send func() error) error {
		if writes++; writes < n {
			return send()
		}
		if writes == n && carriedOut {
			return errors.Join(send(), errCrash)
		}
		return errCrash
	}
	w.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		return write(func() error { return c.Create(ctx, o, opts...) })
	}
	w.faults.SubResourceUpdate = func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		return write(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
	}
}

// behind makes the cache show the group as it is now, and no other runs than now, whatever happens.
func (w *world) behind() {
	then, known := w.get(), w.runs()
	w.faults.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if g, ok := o.(*batchv1alpha1.JobGroup); ok {
			then.DeepCopyInto(g)
			return nil
		}
		return c.Get(ctx, key, o, opts...)
	}
	w.faults.List = func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		if runs, ok := list.(*batchv1alpha1.JobRunList); ok {
			runs.Items = (&batchv1alpha1.JobRunList{Items: known}).DeepCopy().Items
		}
		return nil
	}
}

// works ends all faults.
func (w *world) works() { w.faults = interceptor.Funcs{} }

func TestAManagerMayEndAtAnyWriteOfAGroupThatStops(t *testing.T) {
	// Three creations and the record; then the record of a failure and two requests to end.
	for name, carriedOut := range map[string]bool{"before the API server has it": false, "before the answer is heard": true} {
		t.Run(name, func(t *testing.T) {
			for n := range 4 {
				t.Run(fmt.Sprintf("making them %d", n+1), func(t *testing.T) {
					w := newWorld(t)
					w.create(parallel)
					w.ends(n+1, carriedOut)
					_, err := w.try()
					w.Expect(err).To(MatchError(errCrash))
					w.works()
					w.pass()
					w.Expect(w.names()).To(Equal([]string{"g-a", "g-b", "g-c"}))
					w.shows("Running", "Queued", "Queued", "Queued")
					for i, m := range w.get().Status.Members {
						w.Expect(m.RunUID).To(Equal(w.runs()[i].UID))
					}
					w.quiet()
				})
			}
			for n := range 3 {
				t.Run(fmt.Sprintf("ending them %d", n+1), func(t *testing.T) {
					w := newWorld(t)
					w.create(parallel)
					w.pass()
					w.begin("g-b")
					w.does("g-a", "Failed")
					w.ends(n+1, carriedOut)
					_, err := w.try()
					w.Expect(err).To(MatchError(errCrash))
					w.works()
					w.pass()
					w.obey("g-b")
					w.obey("g-c")
					w.pass()
					w.shows("Failed", "Failed", "Cancelled", "Cancelled")
					w.quiet()
				})
			}
		})
	}
}

func TestARunThatWasMadeButNotRecordedIsNeverExecutedIfTheGroupIsCancelledMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.ends(2, false)
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.works()
	w.edit(cancelled)
	w.pass()
	w.shows("Cancelled", "Cancelled", "Cancelled", "Cancelled")
	w.Expect(w.get().Status.Members[0].RunUID).To(BeEmpty(), "which is what keeps it from being executed")
	w.Expect(w.names()).To(Equal([]string{"g-a"}))
}

func TestARunThatAPersonCancelledBeforeItWasRecordedCounts(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.ends(2, false)
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.works()
	w.write("g-a", func(r *batchv1alpha1.JobRun) {
		r.Status.Halt = &batchv1alpha1.Halt{Phase: "Cancelled", Reason: "Cancelled", Message: "by request"}
	})
	w.obey("g-a")
	w.Expect(w.pass().RequeueAfter).To(Equal(soon), "it is the turn of the next")
	w.shows("Running", "Cancelled", "Waiting", "Waiting")
	w.pass()
	w.shows("Running", "Cancelled", "Queued", "Waiting")
}

func TestACacheThatIsBehindMakesNothingTwice(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.behind()
	w.pass()
	w.Expect(w.names()).To(Equal([]string{"g-a"}))
	made := w.get()
	w.pass()
	w.Expect(w.get()).To(Equal(made), "that the cache does not show the run yet does not mean that it was deleted")
	w.does("g-a", "Completed")
	w.pass()
	w.shows("Running", "Completed", "Queued", "Waiting")
	w.pass()
	w.Expect(w.names()).To(Equal([]string{"g-a", "g-b"}), "and the next member waits for this one")

	w.remove(w.run("g-b")) // not even its name is left
	w.pass()
	w.shows("Running", "Completed", "Cancelled", "Queued")
}

func TestACacheThatIsBehindMakesNothingForAGroupThatIsCancelled(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.behind()
	w.edit(cancelled)
	w.pass()
	w.Expect(w.runs()).To(BeEmpty())
	w.shows("Cancelled", "Cancelled", "Cancelled", "Cancelled")
}

func TestACacheThatIsBehindWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.begin("g-a")
	w.behind()
	w.edit(cancelled)
	now := w.get()
	w.Expect(w.pass()).To(Equal(ctrl.Result{RequeueAfter: soon, Priority: new(0)}), "the write is refused, and nothing else brings it back")
	w.Expect(w.get()).To(Equal(now))
}

func TestWhatTheCacheStillShowsButIsDeletedMakesNothing(t *testing.T) {
	for name, after := range map[string]func(*world){
		"gone":      func(*world) {},
		"made anew": func(w *world) { w.create() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := w.create()
			w.behind()
			w.remove(g)
			after(w)
			w.pass()
			w.Expect(w.runs()).To(BeEmpty(), "which is for its own event to bring")
		})
	}
}

func TestARunThatBeginsBeforeItIsAskedToEndIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.create(parallel, members("a", "b", "c"))
	w.pass()
	w.does("g-a", "Failed")
	w.behindInRuns("g-b")
	w.Expect(w.pass().RequeueAfter).To(Equal(soon))
	w.Expect(w.run("g-b").Status.Halt).To(BeNil())
	w.Expect(w.run("g-c").Status.Halt).NotTo(BeNil(), "one conflict keeps nothing from the others")
	w.works()
	w.pass()
	w.Expect(w.run("g-b").Status.Halt).NotTo(BeNil())
}

// behindInRuns makes the cache show the runs as they are now, after which one of them begins.
func (w *world) behindInRuns(begins string) {
	known := w.runs()
	w.faults.List = func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
		list.(*batchv1alpha1.JobRunList).Items = (&batchv1alpha1.JobRunList{Items: known}).DeepCopy().Items
		return nil
	}
	w.begin(begins)
}

func TestAForeignObjectInTheWayIsPassedOver(t *testing.T) {
	w := newWorld(t)
	g := w.create(members("a"))
	foreign := newRun(g, "a", 0)
	foreign.OwnerReferences, foreign.Spec.GroupRef = nil, nil
	w.Expect(w.api.Create(w.ctx, foreign)).To(Succeed())
	forged := newRun(g, "a", 1)
	forged.OwnerReferences = nil
	w.Expect(w.api.Create(w.ctx, forged)).To(Succeed())
	w.pass()
	w.Expect(w.get().Status.Members[0].RunName).To(Equal(group.RunName("g", "a", 2)))
	w.Expect(w.runs()).To(HaveLen(3))
	w.quiet()
}

func TestAMemberWhoseNamesAreAllTakenSaysSo(t *testing.T) {
	w := newWorld(t)
	g := w.create(members("a"))
	for n := range collisions + 1 {
		foreign := newRun(g, "a", n)
		foreign.OwnerReferences, foreign.Spec.GroupRef = nil, nil
		w.Expect(w.api.Create(w.ctx, foreign)).To(Succeed())
	}
	_, err := w.try()
	w.Expect(err).To(MatchError(errNamesTaken))
	stalled := meta.FindStatusCondition(w.get().Status.Conditions, batchv1alpha1.ConditionStalled)
	w.Expect(stalled).To(HaveField("Reason", batchv1alpha1.ReasonMemberRejected))
	w.remove(w.run("g-a"))
	w.pass()
	w.shows("Running", "Queued")
	w.Expect(meta.FindStatusCondition(w.get().Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
}

func TestARejectedMemberIsSaidTriedAgainAndNotLost(t *testing.T) {
	w := newWorld(t)
	w.create(parallel)
	refused := "g-b"
	w.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetName() == refused {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch.reprise.dev", Resource: "jobruns"}, o.GetName(), errors.New("exceeded quota: small"))
		}
		return c.Create(ctx, o, opts...)
	}
	_, err := w.try()
	w.Expect(err).To(MatchError(ContainSubstring("exceeded quota: small")))
	w.shows("Running", "Queued", "Waiting", "Queued")
	s := w.get().Status
	stalled := meta.FindStatusCondition(s.Conditions, batchv1alpha1.ConditionStalled)
	w.Expect(stalled).To(And(HaveField("Reason", batchv1alpha1.ReasonMemberRejected), HaveField("Message", ContainSubstring("exceeded quota: small"))))
	w.Expect(meta.FindStatusCondition(s.Conditions, batchv1alpha1.ConditionReconciling)).To(BeNil(), "tools would take it for in progress")
	g := w.get()
	_, err = w.try()
	w.Expect(err).To(HaveOccurred())
	w.Expect(w.get()).To(Equal(g), "it is said once")

	refused = ""
	w.pass()
	w.shows("Running", "Queued", "Queued", "Queued")
	w.Expect(meta.FindStatusCondition(w.get().Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
	w.quiet()
}

func TestTheLongestNamesMakeRuns(t *testing.T) {
	w := newWorld(t)
	longest := strings.Repeat("g", 57)
	g := w.create(parallel, members(strings.Repeat("m", 62)+"a", strings.Repeat("m", 62)+"b"), func(g *batchv1alpha1.JobGroup) { g.Name = longest })
	_, err := w.reconciler().Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.runs()).To(HaveLen(2))
}

func TestTwoManagersAtOnceMakeAMemberOnce(t *testing.T) {
	w := newWorld(t)
	w.create(parallel)
	first, second := w.reconciler(), w.reconciler()
	var all sync.WaitGroup
	for range 4 {
		for _, r := range []*Reconciler{first, second} {
			all.Go(func() { _, _ = r.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key("g")}) })
		}
	}
	all.Wait()
	w.pass()
	w.Expect(w.names()).To(Equal([]string{"g-a", "g-b", "g-c"}))
	for i, m := range w.get().Status.Members {
		w.Expect(m.RunUID).To(Equal(w.runs()[i].UID))
	}
	w.quiet()
}

func TestAnOutageKeepsBackTheRestAndIsNoRejection(t *testing.T) {
	w := newWorld(t)
	w.create(parallel)
	w.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if o.GetName() == "g-a" {
			return c.Create(ctx, o, opts...)
		}
		w.Expect(o.GetName()).To(Equal("g-b"), "the rest is not tried")
		return apierrors.NewInternalError(errors.New("etcd is away"))
	}
	_, err := w.try()
	w.Expect(err).To(MatchError(ContainSubstring("etcd is away")))
	w.shows("Running", "Queued", "Waiting", "Waiting")
	w.Expect(meta.FindStatusCondition(w.get().Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
}
