// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
)

// self is a manager of an epoch that notes what it was deposed by.
type self struct {
	epoch   epoch.Epoch
	deposed []string
}

func (s *self) Epoch(context.Context) (epoch.Epoch, error) { return s.epoch, nil }

func (s *self) Check(_, stored string) int {
	other, err := epoch.Parse(stored)
	if err != nil {
		return -1
	}
	c := other.Compare(s.epoch)
	if c > 0 {
		s.deposed = append(s.deposed, stored)
	}
	return c
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(s)
	_ = batchv1alpha1.AddToScheme(s)
	return s
}

// bench is an executor of our epoch over a client that holds nothing but objects in memory: these tests are about what it
// makes of answers. What the API server and the Job controller do is tested against them.
type bench struct {
	*Executor
	self   *self
	client client.WithWatch
	// refuse, if set, is asked for the answer to each creation.
	refuse func(*batchv1.Job) error
	// before, if set, is called right before each creation and each patch.
	before func()
}

func newBench(objects ...client.Object) *bench {
	b := &bench{self: &self{epoch: mine}}
	b.client = fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objects...).Build()
	c := interceptor.NewClient(b.client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if b.before != nil {
				b.before()
			}
			if b.refuse != nil {
				job, _ := o.(*batchv1.Job) // nothing else is created
				if err := b.refuse(job); err != nil {
					return err
				}
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if b.before != nil {
				b.before()
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	b.Executor = New(Options{Client: c, Live: b.client, Self: b.self})
	return b
}

func (b *bench) refuseAll(err error) { b.refuse = func(*batchv1.Job) error { return err } }

// once makes do happen a single time, before the next write.
func (b *bench) once(do func()) {
	b.before = func() {
		b.before = nil
		do()
	}
}

func (b *bench) stored(t *testing.T) *batchv1.Job {
	job := &batchv1.Job{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: Name(aRun())}, job); err != nil {
		t.Fatal(err)
	}
	return job
}

func foreign(job *batchv1.Job) { job.OwnerReferences[0].UID = "another" }

func byEpoch(e epoch.Epoch) jobChange {
	return func(job *batchv1.Job) { job.Annotations[batchv1alpha1.AnnotationEpoch] = e.String() }
}

func TestStartMeetsAJobOfItsName(t *testing.T) {
	for name, c := range map[string]struct {
		job      *batchv1.Job
		started  bool
		rejected bool
		deposed  bool
	}{
		"none: it is created":                        {started: true},
		"its own of before, whose answer was lost":   {job: aJob(aRun()), started: true},
		"its own of an earlier manager, taken over":  {job: aJob(aRun(), byEpoch(older)), started: true},
		"its own, finished meanwhile":                {job: aJob(aRun(), completed), started: true},
		"its own of a later manager":                 {job: aJob(aRun(), byEpoch(newer)), deposed: true},
		"its own, stopped by a later manager":        {job: aJob(aRun(), sealedAs(SealedStopped), byEpoch(newer)), deposed: true},
		"a placeholder":                              {job: aJob(aRun(), sealedAs(SealedPlaceholder))},
		"a placeholder that somebody resumed":        {job: aJob(aRun(), sealedAs(SealedPlaceholder), func(j *batchv1.Job) { j.Spec.Suspend = nil })},
		"its own, stopped":                           {job: aJob(aRun(), sealedAs(SealedStopped))},
		"somebody else's":                            {job: aJob(aRun(), foreign), rejected: true},
		"somebody else's that claims a later epoch":  {job: aJob(aRun(), foreign, byEpoch(newer)), rejected: true},
		"one that nobody owns, with the run's label": {job: aJob(aRun(), func(j *batchv1.Job) { j.OwnerReferences = nil }), rejected: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			if c.job != nil {
				b = newBench(c.job)
			}
			err := b.Start(t.Context(), aRun())
			g := NewWithT(t)
			var rejected *executor.Rejected
			g.Expect(err == nil).To(Equal(c.started), "error: %v", err)
			g.Expect(errors.As(err, &rejected)).To(Equal(c.rejected), "error: %v", err)
			g.Expect(b.self.deposed).To(HaveLen(map[bool]int{true: 1}[c.deposed]))
		})
	}
}

func TestStartRejectsARunThatIsBeingDeleted(t *testing.T) {
	r := aRun()
	r.DeletionTimestamp = &metav1.Time{Time: second}
	var rejected *executor.Rejected
	NewWithT(t).Expect(errors.As(newBench().Start(t.Context(), r), &rejected)).To(BeTrue())
}

func TestStartRejectsARunWithoutJobWork(t *testing.T) {
	var rejected *executor.Rejected
	r := aRun(func(r *batchv1alpha1.JobRun) { r.Spec.Work = nil })
	NewWithT(t).Expect(errors.As(newBench().Start(t.Context(), r), &rejected)).To(BeTrue())
}

func TestAnExpectedRunIsAliveUntilStartHasBeenCalled(t *testing.T) {
	g := NewWithT(t)
	b := newBench()
	life := func(r *batchv1alpha1.JobRun) executor.Life {
		e, err := b.Look(t.Context(), r)
		g.Expect(err).NotTo(HaveOccurred())
		return e.Life
	}
	b.Expect(uid)
	g.Expect(life(aRun())).To(Equal(executor.Alive))
	g.Expect(life(aRun(func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.Epoch = older.String() }))).
		To(Equal(executor.NeverStarted), "the claim was won by another manager")
	b.Forget(uid)
	g.Expect(life(aRun())).To(Equal(executor.NeverStarted), "the claim failed")

	b.Expect(uid)
	b.refuseAll(apierrors.NewServiceUnavailable("down"))
	g.Expect(b.Start(t.Context(), aRun())).NotTo(Succeed())
	g.Expect(life(aRun())).To(Equal(executor.NeverStarted), "who looks finds that it has to be started")
}

func TestLookMeetsALaterManagersJobAndIsDeposed(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun(), byEpoch(newer)))
	_, err := b.Look(t.Context(), aRun())
	g.Expect(err).To(MatchError(ContainSubstring("later epoch")))
	g.Expect(b.self.deposed).To(Equal([]string{newer.String()}))
}

func TestLookCountsTheRunsPodsOnly(t *testing.T) {
	g := NewWithT(t)
	pod := func(name, namespace string, labels map[string]string) *corev1.Pod {
		p := aPod(name)
		p.Namespace, p.Labels = namespace, labels
		return &p
	}
	own := map[string]string{batchv1alpha1.LabelRunUID: uid}
	b := newBench(aJob(aRun()), pod("own", "ns", own), pod("elsewhere", "other", own), pod("other", "ns", map[string]string{batchv1alpha1.LabelRunUID: "another"}))
	e, err := b.Look(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Detail).To(Equal("pod own on node n1 is Running"))
}

func TestSealOccupiesTheNameOfWorkThatNeverBegan(t *testing.T) {
	g := NewWithT(t)
	b := newBench()
	for range 2 { // the second time it finds its placeholder
		e, err := b.Seal(t.Context(), aRun())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e).To(Equal(executor.Evidence{Life: executor.NeverStarted, Stopped: true}))
	}
	g.Expect(b.stored(t).Annotations).To(HaveKeyWithValue(AnnotationSealed, SealedPlaceholder))
	g.Expect(b.Start(t.Context(), aRun())).To(MatchError(errSealed))
}

func TestSealDoesNotDisturbWorkThatHasBegun(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun()))
	e, err := b.Seal(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Life).To(Equal(executor.Alive))
	g.Expect(b.stored(t).Spec.Suspend).To(BeNil())
}

func TestACreationThatLandsBeforeTheSealIsFound(t *testing.T) {
	g := NewWithT(t)
	b := newBench()
	b.once(func() { g.Expect(b.client.Create(t.Context(), aJob(aRun(), byEpoch(older)))).To(Succeed()) })
	e, err := b.Seal(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Life).To(Equal(executor.Alive))
}

func TestACreationThatLandsBeforeTheStopIsSuspended(t *testing.T) {
	g := NewWithT(t)
	b := newBench()
	b.once(func() { g.Expect(b.client.Create(t.Context(), aJob(aRun(), byEpoch(older)))).To(Succeed()) })
	e, err := b.Stop(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Stopped).To(BeFalse(), "the Job controller has not seen it")
	job := b.stored(t)
	g.Expect(job.Spec.Suspend).To(HaveValue(BeTrue()))
	g.Expect(job.Annotations).To(HaveKeyWithValue(AnnotationSealed, SealedStopped))
	g.Expect(job.Annotations).To(HaveKeyWithValue(batchv1alpha1.AnnotationEpoch, mine.String()), "an earlier manager learns from it that it was deposed")
}

func TestStopLeavesAFinishedJobAsItIs(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun(), completed))
	e, err := b.Stop(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Stopped).To(BeTrue())
	g.Expect(e.Outcome.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
	g.Expect(b.stored(t).Spec.Suspend).To(BeNil())
}

func TestStopLooksAgainWhenTheJobChangedUnderIt(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun()))
	b.once(func() {
		job := b.stored(t)
		completed(job)
		g.Expect(b.client.Status().Update(t.Context(), job)).To(Succeed())
	})
	e, err := b.Stop(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Life).To(Equal(executor.Ended), "it completed before it could be suspended")
	g.Expect(b.stored(t).Spec.Suspend).To(BeNil())
}

func TestStopPutsAPlaceholderWhereTheJobWasRemovedUnderIt(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun()))
	b.once(func() { g.Expect(b.client.Delete(t.Context(), b.stored(t))).To(Succeed()) })
	e, err := b.Stop(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Stopped).To(BeTrue())
	g.Expect(b.stored(t).Annotations).To(HaveKeyWithValue(AnnotationSealed, SealedPlaceholder))
}

func TestStopSuspendsAgainWhatSomebodyResumed(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun(), sealedAs(SealedPlaceholder), func(j *batchv1.Job) { j.Spec.Suspend = nil }))
	_, err := b.Stop(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.stored(t).Spec.Suspend).To(HaveValue(BeTrue()))
	g.Expect(b.stored(t).Annotations).To(HaveKeyWithValue(AnnotationSealed, SealedStopped), "it may have pods")
}

func TestStopGivesUpOnAJobThatNeverStaysAsItIs(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun()))
	b.before = func() {
		job := b.stored(t)
		job.Status.Active++
		g.Expect(b.client.Status().Update(t.Context(), job)).To(Succeed())
	}
	_, err := b.Stop(t.Context(), aRun())
	g.Expect(err).To(MatchError(ContainSubstring("changed under every one")))
}

func TestAForeignJobIsNoWorkOfTheRunAndKeepsItFromAny(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun(), foreign, byEpoch(newer)))
	for _, ask := range []func(context.Context, *batchv1alpha1.JobRun) (executor.Evidence, error){b.Look, b.Seal, b.Stop} {
		e, err := ask(t.Context(), aRun())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(e).To(Equal(executor.Evidence{Life: executor.NeverStarted, Stopped: true}))
	}
	g.Expect(b.stored(t).Spec.Suspend).To(BeNil())
	g.Expect(b.self.deposed).To(BeEmpty())
}

func TestAPlaceholderThatCannotBeCreated(t *testing.T) {
	for name, c := range map[string]struct {
		refuse  func(*batchv1.Job) error
		stopped bool
		failed  bool
	}{
		"in a namespace that is going: no Job can come": {
			refuse: func(*batchv1.Job) error { return errTerminating() }, stopped: true},
		"in a namespace that is gone: no Job can come": {
			refuse: func(*batchv1.Job) error {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
			}, stopped: true},
		"by a policy that accepts the run's own template": {
			refuse: func(job *batchv1.Job) error {
				if job.Spec.Template.Spec.Containers[0].Image == placeholderImage {
					return errPolicy
				}
				return nil
			}, stopped: true},
		"by a policy that refuses the run's own template too: no Job can come": {
			refuse: func(*batchv1.Job) error { return errPolicy }, stopped: true},
		"by a quota: a Job can come when others go": {
			refuse: func(*batchv1.Job) error { return errQuota }, failed: true},
		"for lack of an answer": {
			refuse: func(*batchv1.Job) error { return context.DeadlineExceeded }, failed: true},
		"by a policy, and the run's own template by a quota": {
			refuse: func(job *batchv1.Job) error {
				if job.Spec.Template.Spec.Containers[0].Image == placeholderImage {
					return errPolicy
				}
				return errQuota
			}, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := newBench()
			b.refuse = c.refuse
			for _, ask := range []func(context.Context, *batchv1alpha1.JobRun) (executor.Evidence, error){b.Seal, b.Stop} {
				e, err := ask(t.Context(), aRun())
				g.Expect(err != nil).To(Equal(c.failed), "error: %v", err)
				g.Expect(e.Stopped).To(Equal(c.stopped))
			}
		})
	}
}

func TestThePlaceholderOfARunsOwnTemplateIsSuspended(t *testing.T) {
	g := NewWithT(t)
	b := newBench()
	b.refuse = func(job *batchv1.Job) error {
		if job.Spec.Template.Spec.Containers[0].Image == placeholderImage {
			return errPolicy
		}
		return nil
	}
	_, err := b.Seal(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.stored(t).Spec.Suspend).To(HaveValue(BeTrue()))
	g.Expect(b.stored(t).Annotations).To(HaveKeyWithValue(AnnotationSealed, SealedPlaceholder))
}

func TestAReadThatFailsIsNoEvidence(t *testing.T) {
	down := apierrors.NewServiceUnavailable("down")
	for name, funcs := range map[string]interceptor.Funcs{
		"of the Job": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return down
		}},
		"of the pods": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return down }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.Executor = New(Options{Client: b.Client, Live: interceptor.NewClient(b.client, funcs), Self: b.self})
			for _, ask := range []func(context.Context, *batchv1alpha1.JobRun) (executor.Evidence, error){b.Look, b.Seal, b.Stop} {
				_, err := ask(t.Context(), aRun())
				NewWithT(t).Expect(err).To(MatchError(down))
			}
		})
	}
}
