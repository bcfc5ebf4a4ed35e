// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
)

// hold is a finalizer that keeps a deleted object for a while.
const hold = "example.org/hold"

var errCrash = errors.New("the manager ends here")

// dies makes the manager end right before its next write of status.
func (w *world) dies() {
	w.faults.SubResourceUpdate = func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
		return errCrash
	}
}

// loses makes the manager end right after its next write of status, of whose answer it never hears.
func (w *world) loses() {
	w.faults.SubResourceUpdate = func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		return errors.Join(c.SubResource(sub).Update(ctx, o, opts...), errCrash)
	}
}

// behind makes the cache show the ScheduledJob as it is now, whatever happens to it.
func (w *world) behind() {
	then := w.get()
	w.faults.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if sj, ok := o.(*batchv1alpha1.ScheduledJob); ok {
			then.DeepCopyInto(sj)
			return nil
		}
		return c.Get(ctx, key, o, opts...)
	}
}

// blind makes the cache show none of the runs and groups there are.
func (w *world) blind() {
	w.faults.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }
}

// refuses makes the API server create nothing.
func (w *world) refuses(why error) {
	w.faults.Create = func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "batch.reprise.dev"}, o.GetName(), why)
	}
}

// stumbles makes the next writes of status fail until it is mended. From then on the cache shows no run or group.
func (w *world) stumbles() (mend func()) {
	mended := false
	w.faults.SubResourceUpdate = func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if !mended {
			return errCrash
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}
	w.faults.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if mended {
			return nil
		}
		return c.List(ctx, list, opts...)
	}
	return func() { mended = true }
}

// works ends all faults.
func (w *world) works() { w.faults = interceptor.Funcs{} }

func TestACrashBetweenCreatingTheRunAndRecordingTheFireGivesOneRun(t *testing.T) {
	for name, c := range map[string]struct {
		crash func(*world)
		named int
	}{
		"before the write":            {(*world).dies, 0},
		"before its answer was heard": {(*world).loses, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, what := range map[string]func(*world) change{
				"one-time":  func(w *world) change { return w.once(-10 * time.Second) },
				"recurring": func(*world) change { return policy(batchv1alpha1.MissedRunOnce) },
				"forbidden": func(*world) change { return forbid },
				"at most 1": func(*world) change { return atMost(1) },
				"replacing": func(*world) change { return replace },
			} {
				t.Run(kind, func(t *testing.T) {
					w := newWorld(t)
					w.create(what(w))
					w.at(61 * time.Second)
					c.crash(w)
					_, err := w.try()
					w.Expect(err).To(MatchError(errCrash))
					w.Expect(w.runs()).To(HaveLen(1))
					w.Expect(w.get().Status.Active).To(HaveLen(c.named))

					w.works()
					w.pass()
					runs := w.runs()
					w.Expect(runs).To(HaveLen(1))
					w.Expect(w.get().Status.Active).To(HaveLen(1))
					w.Expect(w.get().Status.Active[0].UID).To(Equal(runs[0].UID))
					w.Expect(w.get().Status.LastRunName).To(Equal(runs[0].Name))
					w.Expect(w.get().Status.SkippedRuns).To(BeZero())
					w.quiet()
				})
			}
		})
	}
}

func TestATickThatWasMadeAndNotRecordedIsSettledBeforeTheNextOne(t *testing.T) {
	settle := func(w *world) {
		for _, r := range w.runs() {
			w.end(&r, batchv1alpha1.JobRunCompleted)
		}
	}
	for name, c := range map[string]struct {
		policy  change
		between func(*world) // the first tick and the second, whose record is lost
		made    []time.Duration
		active  []time.Duration
		skipped int64
	}{
		"allowed":                          {func(*batchv1alpha1.ScheduledJob) {}, func(*world) {}, minutes(1, 2, 3), minutes(1, 2, 3), 0},
		"allowed, at most 2":               {atMost(2), func(*world) {}, minutes(1, 2), minutes(1, 2), 0},
		"forbidden, and it overlaps":       {forbid, func(*world) {}, minutes(1, 2), minutes(1), 2},
		"forbidden, and it does not":       {forbid, settle, minutes(1, 2, 3), minutes(2), 1},
		"replacing, and there is nothing":  {replace, settle, minutes(1, 2), minutes(2), 0},
		"RunAll: allowed":                  {policy(batchv1alpha1.MissedRunAll), func(*world) {}, minutes(1, 2, 3), minutes(1, 2, 3), 0},
		"RunAll: forbidden, it overlaps":   {both(forbid, runAll), func(*world) {}, minutes(1, 2), minutes(1), 2},
		"RunAll: forbidden, and does not":  {both(forbid, runAll), settle, minutes(1, 2, 3), minutes(2), 1},
		"RunAll: replacing, with nothing":  {both(replace, runAll), settle, minutes(1, 2), minutes(2), 0},
		"Skip: forbidden, and it overlaps": {both(forbid, policy(batchv1alpha1.MissedSkip)), func(*world) {}, minutes(1, 2), minutes(1), 2},
	} {
		for _, restarted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, restarted %v", name, restarted), func(t *testing.T) {
				w := newWorld(t)
				w.create(c.policy)
				w.at(61 * time.Second)
				w.pass()
				c.between(w)
				w.at(121 * time.Second)
				mend := w.stumbles()
				r := w.reconciler()
				_, err := w.reconcile(r)
				w.Expect(err).To(MatchError(errCrash))
				w.Expect(w.ticks()).To(Equal(minutes(1, 2)))
				mend()
				if restarted {
					w.works()
					r = w.reconciler()
				}
				w.at(181 * time.Second)
				for range 2 {
					_, err := w.reconcile(r)
					w.Expect(err).NotTo(HaveOccurred())
				}
				w.Expect(w.ticks()).To(Equal(c.made))
				w.Expect(w.active()).To(Equal(c.active))
				s := w.get().Status
				w.Expect([]int64{s.MissedRuns, s.SkippedRuns}).To(Equal([]int64{0, c.skipped}))
				for _, made := range w.runs() {
					says := creator.OfTick(w.get(), creator.Of(&made), made.Spec.ScheduledTime.Time)
					w.Expect(made.Status.Phase.Terminal() || says.Answer == creator.Named || says.Reason == batchv1alpha1.ReasonOverlapForbidden).
						To(BeTrue(), "%s: %+v", made.Name, says)
				}
			})
		}
	}
}

func TestACrashAfterTheFireIsOnRecordLeavesTheDeletionToTheNextManager(t *testing.T) {
	w := newWorld(t)
	w.create(w.once(-10*time.Second), ttl(0))
	w.loses()
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.Expect(w.gone()).To(BeFalse())
	w.works()
	w.pass()
	w.Expect(w.gone()).To(BeTrue())
	w.Expect(w.runs()).To(HaveLen(1))
}

func TestARunMadeBeforeACrashIsRecordedThoughASuspensionCameInBetween(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.at(61 * time.Second)
	w.dies()
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.works()
	w.edit(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = true })
	w.at(200 * time.Second)
	w.pass()
	w.Expect(w.active()).To(Equal([]time.Duration{time.Minute}))
	w.Expect(w.ticks()).To(HaveLen(1))
}

func TestACacheThatIsBehindFiresNothingTwice(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.pass()
	w.behind()
	w.at(61 * time.Second)
	w.pass()
	w.Expect(w.ticks()).To(Equal([]time.Duration{time.Minute}))
	fired := w.get().Status

	w.remove(&w.runs()[0]) // not even its name is left
	w.pass()
	w.Expect(w.runs()).To(BeEmpty())
	w.Expect(w.get().Status.LastRunName).To(Equal(fired.LastRunName))
	w.Expect(w.get().Status.Active).To(BeEmpty())
}

func TestACacheThatIsBehindAndShowsNothingDueWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.behind()
	w.pass()
	sj := w.get()
	w.at(10 * time.Second)
	result := w.pass()
	w.Expect(result.RequeueAfter).To(Equal(soon), "the write is refused, and nothing else brings it back")
	w.Expect(w.get()).To(Equal(sj))
}

func TestWhatTheCacheStillShowsButIsDeletedNeverFires(t *testing.T) {
	for name, c := range map[string]struct {
		finalizers []string
		after      func(w *world, was *batchv1alpha1.ScheduledJob)
	}{
		"gone":          {nil, func(*world, *batchv1alpha1.ScheduledJob) {}},
		"being deleted": {[]string{hold}, func(*world, *batchv1alpha1.ScheduledJob) {}},
		"made anew, which is for its own event to bring": {nil, func(w *world, was *batchv1alpha1.ScheduledJob) {
			w.create(func(anew *batchv1alpha1.ScheduledJob) { anew.Spec = was.Spec })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			sj := w.create(w.once(-10*time.Second), func(sj *batchv1alpha1.ScheduledJob) { sj.Finalizers = c.finalizers })
			w.behind()
			w.remove(sj)
			c.after(w, sj)
			w.pass()
			w.Expect(w.runs()).To(BeEmpty())
		})
	}
}

func TestARunThatTheCacheDoesNotShowYetIsUnsettledAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.create(forbid)
	w.at(time.Minute)
	w.pass()
	w.blind()
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.at(2 * time.Minute)
	w.pass()
	w.Expect(w.active()).To(Equal(minutes(1)))
	w.Expect(w.get().Status.SkippedRuns).To(Equal(int64(1)))
}

func TestAScheduleThatIsMadeAnewHasRunWhatItRanBefore(t *testing.T) {
	w := newWorld(t)
	sj := w.create(w.once(-10 * time.Second))
	w.pass()
	before := w.runs()
	w.Expect(w.api.Delete(w.ctx, sj, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.Eventually(w.gone).Should(BeTrue())

	w.create(func(anew *batchv1alpha1.ScheduledJob) { anew.Spec = sj.Spec })
	w.pass()
	w.Expect(w.runs()).To(HaveLen(1))
	w.Expect(w.runs()[0].UID).To(Equal(before[0].UID))
	w.Expect(w.get().Status.Active[0].UID).To(Equal(before[0].UID), "it waits, and is executed now")
	w.Expect(w.get().Status.FiredRunAt.Equal(sj.Spec.RunAt)).To(BeTrue())
	w.quiet()
}

func TestARunThatGoesWithADeletedScheduleHasNotRunForTheNextOne(t *testing.T) {
	w := newWorld(t)
	// The earlier namesake is played by another schedule, or the garbage collector would be too fast for the test.
	earlier := w.create(func(sj *batchv1alpha1.ScheduledJob) { sj.Name = "earlier" })
	w.create(w.once(-10 * time.Second))
	doomed := newObject(earlier, w.get().Spec.RunAt.Time, 0).(*batchv1alpha1.JobRun)
	doomed.Name, doomed.Spec.ScheduledJobRef.Name = productName("sj", w.get().Spec.RunAt.Time, 0), "sj"
	w.Expect(w.api.Create(w.ctx, doomed)).To(Succeed())

	_, err := w.try()
	w.Expect(err).To(MatchError(ContainSubstring("to be deleted")))
	w.Expect(w.get().Status.FiredRunAt).To(BeNil())
	w.remove(earlier)
	w.Eventually(func() error { _, err := w.try(); return err }).Should(Succeed())
	w.Expect(w.runs()).To(HaveLen(1))
	w.Expect(w.runs()[0].UID).NotTo(Equal(doomed.UID))
	w.Expect(w.get().Status.Active[0].UID).To(Equal(w.runs()[0].UID))
}

func TestAForeignObjectInTheWayIsPassedOver(t *testing.T) {
	w := newWorld(t)
	w.create()
	foreign := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: productName("sj", w.born.Add(time.Minute), 0)}}
	foreign.Spec.Work = w.get().Spec.RunTemplate.Work
	w.Expect(w.api.Create(w.ctx, foreign)).To(Succeed())
	w.at(61 * time.Second)
	w.dies()
	_, err := w.try()
	w.Expect(err).To(MatchError(errCrash))
	w.works()
	w.pass()
	other := productName("sj", w.born.Add(time.Minute), 1)
	w.Expect(w.runs()).To(ConsistOf(HaveField("Name", foreign.Name), HaveField("Name", other)))
	w.Expect(w.get().Status.Active).To(ConsistOf(HaveField("Name", other)))
	w.quiet()

	foreign = &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: productName("sj", w.born.Add(2*time.Minute), 0)}}
	foreign.Spec.Work = w.get().Spec.RunTemplate.Work
	w.Expect(w.api.Create(w.ctx, foreign)).To(Succeed())
	w.at(121 * time.Second)
	w.pass()
	w.Expect(w.get().Status.CollisionCount).To(Equal(int32(1)))
	w.Expect(w.get().Status.LastRunName).To(Equal(productName("sj", w.born.Add(2*time.Minute), 1)))
}

func TestTheLongestNameFiresAlsoWithAForeignObjectInTheWay(t *testing.T) {
	w := newWorld(t)
	longest := strings.Repeat("s", 46)
	sj := w.create(w.once(-10*time.Second), func(sj *batchv1alpha1.ScheduledJob) { sj.Name = longest })
	foreign := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: productName(longest, sj.Spec.RunAt.Time, 0)}}
	foreign.Spec.Work = sj.Spec.RunTemplate.Work
	w.Expect(w.api.Create(w.ctx, foreign)).To(Succeed())
	_, err := w.reconciler().Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(sj)})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.runs()).To(ContainElement(HaveField("Name", productName(longest, sj.Spec.RunAt.Time, 1))))
}

func TestTwoManagersAtOnceFireATickOnce(t *testing.T) {
	w := newWorld(t)
	w.create(policy(batchv1alpha1.MissedRunAll))
	w.at(5*time.Minute + time.Second)
	first, second := w.reconciler(), w.reconciler()
	var group sync.WaitGroup
	for range 4 {
		for _, r := range []*Reconciler{first, second} {
			group.Go(func() { _, _ = r.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()}) })
		}
	}
	group.Wait()
	w.pass()
	w.Expect(w.ticks()).To(HaveLen(5))
	w.Expect(w.active()).To(HaveLen(5))
	status := w.get().Status
	w.Expect([]int64{status.MissedRuns, status.SkippedRuns}).To(Equal([]int64{0, 0}))
	w.quiet()
}

func TestARejectedRunIsSaidTriedAgainAndNotLost(t *testing.T) {
	w := newWorld(t)
	w.create(policy(batchv1alpha1.MissedRunAll))
	w.at(3*time.Minute + time.Second)
	quota := 1
	w.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if len(w.runs()) >= quota {
			return apierrors.NewForbidden(schema.GroupResource{Group: "batch.reprise.dev", Resource: "jobruns"}, o.GetName(), errors.New("exceeded quota: small"))
		}
		return c.Create(ctx, o, opts...)
	}
	_, err := w.try()
	w.Expect(err).To(MatchError(ContainSubstring("exceeded quota: small")))
	w.Expect(w.active()).To(Equal([]time.Duration{time.Minute}), "what was created is executed")
	stalled := meta.FindStatusCondition(w.get().Status.Conditions, batchv1alpha1.ConditionStalled)
	w.Expect(stalled).To(And(HaveField("Reason", "RunRejected"), HaveField("Message", ContainSubstring("exceeded quota: small"))))
	sj := w.get()
	_, err = w.try()
	w.Expect(err).To(HaveOccurred())
	w.Expect(w.get()).To(Equal(sj), "it is said once")

	quota = 100
	w.pass()
	w.Expect(w.active()).To(Equal([]time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}))
	w.Expect(meta.FindStatusCondition(w.get().Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
	w.Expect(w.get().Status.MissedRuns).To(BeZero())
}
