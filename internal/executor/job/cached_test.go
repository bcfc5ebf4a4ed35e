// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

func withUID(uid types.UID) jobChange { return func(job *batchv1.Job) { job.UID = uid } }

// watcher is an executor that has made the Job with UID "made" for the run. Its cache shows one Job, if any; the API server has
// the Job at work, and the pods.
type watcher struct {
	*Executor
	// gets counts the Jobs that were read live.
	gets int
}

func newWatcher(t *testing.T, cached *batchv1.Job, pods ...client.Object) *watcher {
	t.Helper()
	w := &watcher{}
	server := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(aJob(aRun(), withUID("made"))).WithObjects(pods...).Build()
	live := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			w.gets++
			return c.Get(ctx, key, o, opts...)
		},
	})
	cache := fake.NewClientBuilder().WithScheme(newScheme())
	if cached != nil {
		cache = cache.WithObjects(cached)
	}
	answers := interceptor.NewClient(cache.Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			o.SetUID("made")
			return nil
		},
	})
	w.Executor = New(Options{Client: answers, Live: live, Self: &self{epoch: mine}})
	return w
}

func TestTheEndOfTheJobThatThisProcessHasMadeIsBelievedOfTheCacheAndOfNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		cached *batchv1.Job
		forget bool
		reads  int
		life   executor.Life
	}{
		"it has completed":                     {cached: aJob(aRun(), withUID("made"), completed), life: executor.Ended},
		"it has failed":                        {cached: aJob(aRun(), withUID("made"), failedPods(1)), life: executor.Ended},
		"it was stopped, and has failed of it": {cached: aJob(aRun(), withUID("made"), sealedAs(SealedStopped), failedPods(1)), life: executor.Unknown},
		"it is not there yet":                  {reads: 1, life: executor.Alive},
		"it is at work":                        {cached: aJob(aRun(), withUID("made")), reads: 1, life: executor.Alive},
		"an earlier one of its name has":       {cached: aJob(aRun(), withUID("earlier"), completed), reads: 1, life: executor.Alive},
		"it is not the run's any more":         {cached: aJob(aRun(), withUID("made"), completed, foreign), reads: 1, life: executor.Alive},
		"the run was forgotten":                {cached: aJob(aRun(), withUID("made"), completed), forget: true, reads: 1, life: executor.Alive},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWatcher(t, c.cached)
			w.Expect(uid)
			g.Expect(w.Start(t.Context(), aRun())).To(Succeed())
			if c.forget {
				w.Forget(uid)
			}
			ev, err := w.Look(t.Context(), aRun())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ev.Life).To(Equal(c.life))
			g.Expect(w.gets).To(Equal(c.reads))
		})
	}
}

func TestNoPodIsTakenToHaveEndedBecauseItsJobHas(t *testing.T) {
	g := NewWithT(t)
	pod := aPod("p", func(p *corev1.Pod) { p.Labels = map[string]string{batchv1alpha1.LabelRunUID: uid} })
	w := newWatcher(t, aJob(aRun(), withUID("made"), completed), &pod)
	w.Expect(uid)
	g.Expect(w.Start(t.Context(), aRun())).To(Succeed())
	ev, err := w.Look(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ev.Life).To(Equal(executor.Ended))
	g.Expect(ev.Stopped).To(BeFalse())
}

func TestAJobThatWasThereBeforeIsNotTakenForOneThatThisProcessHasMade(t *testing.T) {
	g := NewWithT(t)
	b := newBench(aJob(aRun(), withUID("another")))
	b.Expect(uid)
	g.Expect(b.Start(t.Context(), aRun())).To(Succeed())
	g.Expect(b.made.job(uid)).To(BeEmpty())
	g.Expect(b.made.expected(uid)).To(BeFalse())
}

func TestOfARunThatWasForgottenWhileItsJobWasMadeNothingIsKept(t *testing.T) {
	g := NewWithT(t)
	b := newBench()
	b.Expect(uid)
	b.once(func() { b.Forget(uid) })
	g.Expect(b.Start(t.Context(), aRun())).To(Succeed())
	g.Expect(b.made.jobs).To(BeEmpty())
}

func TestTheEndOfASecondJobOfTheSameRunIsReadLive(t *testing.T) {
	g := NewWithT(t)
	w := newWatcher(t, aJob(aRun(), withUID("made"), completed))
	g.Expect(w.Start(t.Context(), aRun())).To(Succeed(), "nobody has claimed it: it is begun once more")
	ev, err := w.Look(t.Context(), aRun())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ev.Life).To(Equal(executor.Alive))
	g.Expect(w.gets).To(Equal(1))
}
