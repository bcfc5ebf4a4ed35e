// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/fakekubelet"
)

// installation is what config/ installs, in the namespace of the test and under names of its own.
type installation struct {
	deployment *appsv1.Deployment
	kubeconfig string // with the rights of the manager's service account
}

// install applies config/rbac and reads the Deployment of config/manager.
func (w *world) install() installation {
	w.t.Helper()
	return w.installed("namePrefix: " + w.ns + "-\nresources: [CONFIG/rbac, CONFIG/manager]\n")
}

// installed applies a kustomization to the namespace of the test, in which CONFIG stands for config/, all but the Deployment.
func (w *world) installed(kustomization string) installation {
	w.t.Helper()
	root, err := controlplane.Root()
	w.Expect(err).NotTo(HaveOccurred())
	dir := w.t.TempDir()
	config, err := filepath.Rel(dir, filepath.Join(root, "config"))
	w.Expect(err).NotTo(HaveOccurred())
	text := "namespace: " + w.ns + "\n" + strings.ReplaceAll(kustomization, "CONFIG", config)
	w.Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)).To(Succeed())

	var found installation
	var rights []string
	for _, document := range strings.Split(w.kubectl("", "kustomize", dir), "\n---\n") {
		var kind metav1.TypeMeta
		w.Expect(yaml.Unmarshal([]byte(document), &kind)).To(Succeed())
		switch kind.Kind {
		case "Namespace":
		case "Deployment":
			found.deployment = &appsv1.Deployment{}
			w.Expect(yaml.UnmarshalStrict([]byte(document), found.deployment)).To(Succeed())
		default:
			rights = append(rights, document)
		}
	}
	w.kubectl(strings.Join(rights, "\n---\n"), "apply", "-f", "-")
	w.t.Cleanup(func() {
		cmd := plane.Kubectl(context.Background(), "delete", "--wait=false", "-f", "-")
		cmd.Stdin = strings.NewReader(strings.Join(rights, "\n---\n"))
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Errorf("%v: %s", err, out)
		}
	})
	account := found.deployment.Spec.Template.Spec.ServiceAccountName
	_, found.kubeconfig, err = plane.User("system:serviceaccount:"+w.ns+":"+account, "system:serviceaccounts", "system:serviceaccounts:"+w.ns, "system:authenticated")
	w.Expect(err).NotTo(HaveOccurred())
	return found
}

func (w *world) kubectl(input string, args ...string) string {
	w.t.Helper()
	cmd := plane.Kubectl(w.t.Context(), args...)
	cmd.Stdin = strings.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	w.Expect(err).NotTo(HaveOccurred(), complaint.String())
	return string(out)
}

func TestTheManagerWorksWithTheArgumentsAndTheRightsThatItIsInstalledWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	installed := w.install()
	container := installed.deployment.Spec.Template.Spec.Containers[0]
	w.Expect(container.Env).To(HaveLen(3))
	start := func(pod, uid string) *process {
		return w.leads(w.runAs(installed.kubeconfig,
			[]string{"POD_NAME=" + pod, "POD_NAMESPACE=" + w.ns, "POD_UID=" + uid},
			append(container.Args, "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms")...,
		))
	}
	first := start("manager-0", "5c5b6ed8-6d2a-4b0e-9c0f-6c1f3c1d4a11")
	w.Expect(w.holder()).NotTo(BeEmpty())

	w.create(
		&batchv1alpha1.JobQueue{ObjectMeta: w.named("told"), Spec: batchv1alpha1.JobQueueSpec{
			Notifications: &batchv1alpha1.Notifications{Receivers: []batchv1alpha1.NotificationReceiver{{Name: "ops", URL: s.URL + "/told"}}},
		}},
		&corev1.Secret{ObjectMeta: w.named("token"), StringData: map[string]string{"bearer": "Bearer 42"}},
	)
	due := time.Now().Add(-time.Minute).Truncate(time.Second)
	once := &batchv1alpha1.ScheduledJob{ObjectMeta: w.named("once")}
	once.Spec.RunAt, once.Spec.TTLSecondsAfterFired = ptr.To(metav1.NewTime(due)), ptr.To[int32](0)
	once.Spec.RunTemplate = &w.httpRun("", s.URL).Spec.JobRunTemplateSpec
	once.Spec.RunTemplate.Work.HTTP.Headers = []batchv1alpha1.HTTPHeader{{Name: "Authorization", SecretKeyRef: &batchv1alpha1.SecretKeyRef{Name: "token", Key: "bearer"}}}
	unreachable := w.httpRun("failing", "http://"+address(t))
	unreachable.Spec.Queue = "told"
	w.create(once, w.podRun("pods", fakekubelet.RunsImmediately), unreachable)

	w.eventually(fmt.Sprintf("once-%d", due.Unix()), batchv1alpha1.JobRunCompleted)
	w.Eventually(func() error { return w.Get(t.Context(), client.ObjectKeyFromObject(once), once) }).Should(Satisfy(apierrors.IsNotFound))
	w.eventually("pods", batchv1alpha1.JobRunCompleted)
	w.eventually("failing-r1", batchv1alpha1.JobRunFailed)
	w.Eventually(func() []batchv1alpha1.Announcement { return w.get("failing").Status.Announcements }).
		Should(ConsistOf(HaveField("State", batchv1alpha1.AnnouncementDelivered)))

	w.create(w.podRun("endless", fakekubelet.RunsUntilFinished))
	w.eventually("endless", batchv1alpha1.JobRunRunning)
	reserved := &batchv1alpha1.DirectReservation{ObjectMeta: w.named("mine"), Spec: batchv1alpha1.DirectReservationSpec{Queue: "default"}}
	w.create(reserved)
	endless := w.get("endless")
	endless.Spec.Cancel = true
	w.Expect(w.Update(t.Context(), endless)).To(Succeed())
	w.eventually("endless", batchv1alpha1.JobRunCancelled)
	w.Eventually(func() batchv1alpha1.DirectReservationPhase {
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(reserved), reserved)).To(Succeed())
		return reserved.Status.Phase
	}).Should(Equal(batchv1alpha1.ReservationGranted))

	reserved.Spec.Release = true
	w.Expect(w.Update(t.Context(), reserved)).To(Succeed())

	w.create(w.httpRun("victim", s.URL+"/slow"))
	w.eventually("victim", batchv1alpha1.JobRunRunning)
	first.kill()
	s.release()
	second := start("manager-1", "5c5b6ed8-6d2a-4b0e-9c0f-6c1f3c1d4a12")
	w.eventually("victim-r1", batchv1alpha1.JobRunCompleted)

	code, body := second.scrape(w.token("stranger"))
	w.Expect(code).To(Equal(http.StatusForbidden), "who reads metrics is judged by the API server: %s", body)
	code, _ = second.terminate()
	w.Expect(code).To(BeZero())
	w.Expect(w.holder()).To(BeEmpty())
	for _, p := range []*process{first, second} {
		w.Expect(strings.ToLower(p.log.String())).NotTo(ContainSubstring("forbidden"))
	}
}

func (w *world) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.ns, Name: name}
}

// podRun builds a run of a Job whose pod runs that long.
func (w *world) podRun(name, runsFor string) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{ObjectMeta: w.named(name)}
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Spec.Work.Job.Template.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fakekubelet.AnnotationRunsFor: runsFor}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.org/work"}}},
	}
	return r
}
