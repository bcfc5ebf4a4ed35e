// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/fakekubelet"
)

func TestStoppedWorkHoldsItsSlotUntilItsPodsHaveEnded(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ns := newNamespace(t)
	kubelet.HoldTermination(ns)
	r := createRun(t, ns, untilFinished())
	start(t, r)
	pod := runningPod(t, r)

	e := eventually(t, onServer().Stop, r, func(e executor.Evidence) bool { return strings.Contains(e.Detail, "terminating") })
	g.Expect(e.Detail).To(ContainSubstring("pod " + pod.Name + " on node " + kubelet.NodeName()))
	g.Consistently(func() (bool, error) {
		e, err := onServer().Stop(t.Context(), r)
		return e.Stopped, err
	}, 500*time.Millisecond, interval).Should(BeFalse())

	kubelet.ReleaseTermination(ns)
	e = eventually(t, onServer().Stop, r, hasStopped)
	g.Expect(e.Life).To(Equal(executor.Unknown), "that its pod failed was our doing")
	g.Expect(e.Outcome).To(BeNil())
	job := &batchv1.Job{}
	g.Expect(live.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: Name(r)}, job)).To(Succeed(), "its name stays taken")
}

// Sixty at once keep the Job controller busy, so that some are suspended after it has read them and before it has made
// their pod.
func TestWorkThatIsStoppedWhileItsPodsAreBeingMadeNeverRunsAfterwards(t *testing.T) {
	ns := newNamespace(t)
	var mu sync.Mutex
	stopped := map[types.UID]time.Time{}
	var runs []*batchv1alpha1.JobRun
	for range 60 {
		runs = append(runs, createRun(t, ns, untilFinished(), func(r *batchv1alpha1.JobRun) { r.Name, r.GenerateName = "", "stop-" }))
	}
	var wg sync.WaitGroup
	for _, r := range runs {
		wg.Go(func() {
			at, err := startAndStop(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			stopped[r.UID] = at
		})
	}
	wg.Wait()
	g := NewWithT(t)
	g.Consistently(func() []corev1.Pod {
		list := &corev1.PodList{}
		g.Expect(live.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		return list.Items
	}, time.Second, interval).ShouldNot(ContainElement(WithTransform(func(p corev1.Pod) bool { return Lives(&p) }, BeTrue())))
	began := 0
	for _, event := range kubelet.History() {
		if at, ours := stopped[types.UID(event.Pod.Labels[batchv1alpha1.LabelRunUID])]; ours {
			g.Expect(event.At).To(BeTemporally("<", at), "%s of pod %s", event.Kind, event.Pod.Name)
			began++
		}
	}
	t.Logf("%d starts and ends of pods", began)
}

// startAndStop returns when the work of a run that was stopped right after its start counted as stopped.
func startAndStop(ctx context.Context, r *batchv1alpha1.JobRun) (time.Time, error) {
	if err := onServer().Start(ctx, r); err != nil {
		return time.Time{}, err
	}
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		e, err := onServer().Stop(ctx, r)
		return e.Stopped, err
	})
	return time.Now(), err
}

func TestAPlaceholderBlocksACreationThatComesLate(t *testing.T) {
	t.Parallel()
	for name, occupy := range map[string]func(*Executor) func(*testing.T, *batchv1alpha1.JobRun) (executor.Evidence, error){
		"sealed": func(e *Executor) func(*testing.T, *batchv1alpha1.JobRun) (executor.Evidence, error) {
			return func(t *testing.T, r *batchv1alpha1.JobRun) (executor.Evidence, error) { return e.Seal(t.Context(), r) }
		},
		"stopped": func(e *Executor) func(*testing.T, *batchv1alpha1.JobRun) (executor.Evidence, error) {
			return func(t *testing.T, r *batchv1alpha1.JobRun) (executor.Evidence, error) { return e.Stop(t.Context(), r) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := createRun(t, newNamespace(t))
			e, err := occupy(onServer())(t, r)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(e).To(Equal(executor.Evidence{Life: executor.NeverStarted, Stopped: true}))

			g.Expect(apierrors.IsAlreadyExists(live.Create(t.Context(), Build(r, older)))).To(BeTrue())
			g.Expect(onServer().Start(t.Context(), r)).To(MatchError(errSealed))
			g.Consistently(func() []corev1.Pod { return podsOf(t, r) }, 500*time.Millisecond, interval).Should(BeEmpty())
		})
	}
}

func TestNoNodeGetsAPodThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ns := newNamespace(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "late", Finalizers: []string{"batch.reprise.dev/test"}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "test"}}, // the fake kubelet leaves it alone
			Containers:      []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	g.Expect(live.Create(t.Context(), pod)).To(Succeed())
	pod.Spec.SchedulingGates = nil
	g.Expect(live.Delete(t.Context(), pod)).To(Succeed())
	bind := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: kubelet.NodeName()}}
	g.Expect(live.SubResource("binding").Create(t.Context(), pod, bind)).To(MatchError(ContainSubstring("is being deleted")))
	removeFinalizers(t, pod)
}

func removeFinalizers(t *testing.T, o client.Object) {
	t.Helper()
	NewWithT(t).Expect(live.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
}

func TestAJobThatAPersonResumedIsStoppedAgain(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	r := createRun(t, newNamespace(t), pods(fakekubelet.AnnotationWaiting, "ContainerCreating"))
	_, err := onServer().Seal(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: Name(r)}}
	g.Expect(live.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`)))).To(Succeed())
	e, err := onServer().Look(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(e.Stopped).To(BeFalse())
	again, err := onServer().Stop(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Stopped).To(BeFalse(), "its condition Suspended may be that of the time before")
	// Once the Job controller has seen the end of it, no pod is left and none comes.
	g.Eventually(func() []*corev1.Pod { return livePods(podsOf(t, r)) }, patience, interval).Should(BeEmpty())
	eventually(t, onServer().Stop, r, hasStopped)
}
