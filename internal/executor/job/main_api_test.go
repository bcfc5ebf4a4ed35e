// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/fakekubelet"
)

const (
	patience = 60 * time.Second
	interval = 20 * time.Millisecond
)

var (
	plane   *controlplane.Plane
	kubelet *fakekubelet.Kubelet
	live    client.Client
)

// TestMain starts a control plane of its own, whatever the environment asks for: a fake kubelet has no business on a cluster
// with nodes.
func TestMain(m *testing.M) {
	o := controlplane.Options{ControllerManager: true, CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Start, o, func(ctx context.Context, p *controlplane.Plane) (undo func(), err error) {
		plane = p
		if live, err = client.New(plane.Config(), client.Options{Scheme: newScheme()}); err != nil {
			return nil, err
		}
		if kubelet, err = fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{}); err != nil {
			return nil, err
		}
		return kubelet.Stop, nil
	}))
}

// onServer returns an executor of our epoch that talks to the API server.
func onServer() *Executor { return New(Options{Client: live, Live: live, Self: &self{epoch: mine}}) }

// asUser returns one whose writes are those of another user.
func asUser(t *testing.T, config *rest.Config) *Executor {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: newScheme()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return New(Options{Client: c, Live: live, Self: &self{epoch: mine}})
}

func newNamespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}}
	NewWithT(t).Expect(live.Create(t.Context(), ns)).To(Succeed())
	return ns.Name
}

// pods makes the pods of a run behave as the annotations of the fake kubelet say: key, value, key, value.
func pods(annotations ...string) runChange {
	return func(r *batchv1alpha1.JobRun) {
		m := map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			m[annotations[i]] = annotations[i+1]
		}
		r.Spec.Work.Job.Template.Spec.Template.Annotations = m
	}
}

func untilFinished() runChange {
	return pods(fakekubelet.AnnotationRunsFor, fakekubelet.RunsUntilFinished)
}

// createRun stores a run in a namespace and returns it, as it were, right after its claim.
func createRun(t *testing.T, ns string, changes ...runChange) *batchv1alpha1.JobRun {
	t.Helper()
	r := aRun(changes...)
	r.Namespace, r.UID, r.Status = ns, "", batchv1alpha1.JobRunStatus{}
	NewWithT(t).Expect(live.Create(t.Context(), r)).To(Succeed())
	r.Status.Phase = batchv1alpha1.JobRunRunning
	r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "m", Epoch: mine.String()}
	r.Status.JobName = Name(r)
	return r
}

func start(t *testing.T, r *batchv1alpha1.JobRun) {
	t.Helper()
	NewWithT(t).Expect(onServer().Start(t.Context(), r)).To(Succeed())
}

// eventually looks until the evidence is as wanted, and returns it.
func eventually(t *testing.T, look func(context.Context, *batchv1alpha1.JobRun) (executor.Evidence, error), r *batchv1alpha1.JobRun, wanted func(executor.Evidence) bool) executor.Evidence {
	t.Helper()
	var last executor.Evidence
	NewWithT(t).Eventually(func() (bool, error) {
		var err error
		last, err = look(t.Context(), r)
		return wanted(last), err
	}, patience, interval).Should(BeTrue(), "last evidence: %+v", &last)
	return last
}

func hasEnded(e executor.Evidence) bool   { return e.Life == executor.Ended }
func hasStopped(e executor.Evidence) bool { return e.Stopped }

func runningPod(t *testing.T, r *batchv1alpha1.JobRun) *corev1.Pod {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pod, err := kubelet.WaitRunning(ctx, r.Namespace, map[string]string{batchv1alpha1.LabelRunUID: string(r.UID)})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return pod
}

func podsOf(t *testing.T, r *batchv1alpha1.JobRun) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	NewWithT(t).Expect(live.List(t.Context(), list, client.InNamespace(r.Namespace),
		client.MatchingLabels{batchv1alpha1.LabelRunUID: string(r.UID)})).To(Succeed())
	return list.Items
}
