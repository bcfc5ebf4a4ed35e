// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"reprise.dev/reprise/internal/controlplane"
)

var (
	plane   *controlplane.Plane
	client  kubernetes.Interface
	kubelet *Kubelet
)

// TestMain starts a control plane of its own: a fake kubelet has no business on a cluster with nodes.
func TestMain(m *testing.M) {
	o := controlplane.Options{ControllerManager: true}
	os.Exit(controlplane.RunTests(m, controlplane.Start, o, func(ctx context.Context, p *controlplane.Plane) (undo func(), err error) {
		plane = p
		if client, err = kubernetes.NewForConfig(p.Config()); err != nil {
			return nil, err
		}
		if kubelet, err = Start(ctx, p.Config(), Options{}); err != nil {
			return nil, err
		}
		return kubelet.Stop, nil
	}))
}

func namespace(t *testing.T) string {
	ns, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return ns.Name
}

func createJob(t *testing.T, ns string, annotations map[string]string) {
	_, err := client.BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{
			BackoffLimit:         ptr.To[int32](0),
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: annotations, Labels: map[string]string{"app": "a"}},
				Spec: corev1.PodSpec{
					RestartPolicy:  corev1.RestartPolicyNever,
					InitContainers: []corev1.Container{{Name: "init", Image: "i"}},
					Containers:     []corev1.Container{{Name: "main", Image: "i"}, {Name: "side", Image: "i"}},
				},
			},
		},
	}, metav1.CreateOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
}

func jobEnds(t *testing.T, ns string, condition batchv1.JobConditionType) {
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		job, err := client.BatchV1().Jobs(ns).Get(t.Context(), "job", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(job.Status.Conditions).To(ContainElement(And(
			HaveField("Type", condition), HaveField("Status", corev1.ConditionTrue))))
	}, 30*time.Second, 20*time.Millisecond).Should(Succeed())
}

func pods(t *testing.T, ns string) []corev1.Pod {
	list, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return list.Items
}

func historyOf(ns string) []EventKind {
	var kinds []EventKind
	for _, e := range kubelet.History() {
		if e.Pod.Namespace == ns {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

func TestAJobCompletesOfItself(t *testing.T) {
	ns := namespace(t)
	createJob(t, ns, nil)
	jobEnds(t, ns, batchv1.JobComplete)
	g := NewWithT(t)
	g.Expect(pods(t, ns)).To(HaveLen(1))
	g.Expect(pods(t, ns)[0].Spec.NodeName).To(Equal(kubelet.NodeName()))
	g.Expect(historyOf(ns)).To(Equal([]EventKind{Started, Ended}))
}

func TestAJobFailsWithTheExitCodeAskedFor(t *testing.T) {
	ns := namespace(t)
	createJob(t, ns, map[string]string{AnnotationExitCode: "side=3", AnnotationReason: "OOMKilled", AnnotationRunsFor: "10ms"})
	jobEnds(t, ns, batchv1.JobFailed)
	g := NewWithT(t)
	g.Expect(pods(t, ns)).To(HaveLen(1))
	side := pods(t, ns)[0].Status.ContainerStatuses[1].State.Terminated
	g.Expect(side.ExitCode).To(BeEquivalentTo(3))
	g.Expect(side.Reason).To(Equal("OOMKilled"))
}

func TestATestFinishesAPod(t *testing.T) {
	ns := namespace(t)
	createJob(t, ns, map[string]string{AnnotationRunsFor: RunsUntilFinished})
	g := NewWithT(t)
	pod, err := kubelet.WaitRunning(t.Context(), ns, map[string]string{"app": "a"})
	g.Expect(err).NotTo(HaveOccurred())
	key := types.NamespacedName{Namespace: ns, Name: pod.Name}
	g.Expect(kubelet.Finish(t.Context(), key, 0)).To(Succeed())
	jobEnds(t, ns, batchv1.JobComplete)
	g.Expect(kubelet.Finish(t.Context(), key, 1)).To(MatchError(ContainSubstring("ended already")))
}

func TestATerminatingPodLivesUntilItIsReleased(t *testing.T) {
	ns := namespace(t)
	kubelet.HoldTermination(ns)
	createJob(t, ns, map[string]string{AnnotationRunsFor: RunsUntilFinished})
	g := NewWithT(t)
	pod, err := kubelet.WaitRunning(t.Context(), ns, nil)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.BatchV1().Jobs(ns).Patch(t.Context(), "job", types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() *metav1.Time { return pods(t, ns)[0].DeletionTimestamp }, 30*time.Second, 20*time.Millisecond).ShouldNot(BeNil())
	g.Consistently(func() corev1.PodPhase { return pods(t, ns)[0].Status.Phase }, 300*time.Millisecond, 50*time.Millisecond).Should(Equal(corev1.PodRunning))

	kubelet.ReleaseTermination(ns)
	g.Eventually(func() []corev1.Pod { return pods(t, ns) }, 30*time.Second, 20*time.Millisecond).Should(BeEmpty())
	g.Expect(historyOf(ns)).To(Equal([]EventKind{Started, Ended}))
	g.Expect(kubelet.History()).To(ContainElement(HaveField("Pod.UID", pod.UID)))
}

func TestAPodThatCannotPullItsImageWaits(t *testing.T) {
	ns := namespace(t)
	createJob(t, ns, map[string]string{AnnotationWaiting: "ImagePullBackOff"})
	g := NewWithT(t)
	g.Eventually(func(g Gomega) {
		g.Expect(pods(t, ns)).To(HaveLen(1))
		pod := pods(t, ns)[0]
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending))
		g.Expect(pod.Status.ContainerStatuses).To(ContainElement(HaveField("State.Waiting.Reason", "ImagePullBackOff")))
	}, 30*time.Second, 20*time.Millisecond).Should(Succeed())
	g.Expect(historyOf(ns)).To(BeEmpty())
}

func TestAPodRemovedByForceHasEnded(t *testing.T) {
	ns := namespace(t)
	g := NewWithT(t)
	_, err := client.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Annotations: map[string]string{AnnotationRunsFor: RunsUntilFinished}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = kubelet.WaitRunning(t.Context(), ns, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client.CoreV1().Pods(ns).Delete(t.Context(), "alone", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})).To(Succeed())
	g.Eventually(func() []EventKind { return historyOf(ns) }, 30*time.Second, 20*time.Millisecond).Should(Equal([]EventKind{Started, Ended}))
}
