// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
)

// startInstalled starts the manager with the arguments and the rights of an installation and nothing else that matters.
func (w *world) startInstalled(installed installation, pod, uid string) *process {
	w.t.Helper()
	var args []string
	for _, arg := range installed.deployment.Spec.Template.Spec.Containers[0].Args {
		args = append(args, strings.ReplaceAll(arg, "$(POD_NAMESPACE)", w.ns)) // as the kubelet does
	}
	probes := address(w.t)
	p := launch(w.t, []string{"POD_NAME=" + pod, "POD_NAMESPACE=" + w.ns, "POD_UID=" + uid}, append(args,
		"--kubeconfig="+installed.kubeconfig, "--health-probe-bind-address="+probes, "--allow-outgoing-cidr=127.0.0.0/8", "--startup-window=0",
		"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
	)...)
	p.probes = probes
	return p
}

// The manager has no right outside its namespace: whatever it asked for there would be refused, and in its log.
func TestAManagerForOneNamespaceWorksWithARoleOfThatNamespaceAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t)
	elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-not"}}
	w.create(elsewhere)
	foreign := w.httpRun("foreign", s.URL)
	foreign.Namespace = elsewhere.Name
	installed := w.installed("resources: [CONFIG/namespaced]\n")
	w.Expect(installed.deployment.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--namespaces=$(POD_NAMESPACE)"))
	first := w.leads(w.startInstalled(installed, "manager-0", "5c5b6ed8-6d2a-4b0e-9c0f-6c1f3c1d4a21"))
	w.Expect(w.holder()).NotTo(BeEmpty(), "the lease is in the namespace too")

	w.create(foreign, w.podRun("pods", fakekubelet.RunsImmediately), w.httpRun("call", s.URL))
	w.eventually("pods", batchv1alpha1.JobRunCompleted)
	w.eventually("call", batchv1alpha1.JobRunCompleted)
	reserved := &batchv1alpha1.DirectReservation{ObjectMeta: w.named("mine"), Spec: batchv1alpha1.DirectReservationSpec{Queue: "default"}}
	w.create(reserved)
	w.Eventually(func() batchv1alpha1.DirectReservationPhase {
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(reserved), reserved)).To(Succeed())
		return reserved.Status.Phase
	}).Should(Equal(batchv1alpha1.ReservationGranted))
	w.Expect(w.Delete(t.Context(), reserved)).To(Succeed())

	w.create(w.httpRun("victim", s.URL+"/slow"))
	w.eventually("victim", batchv1alpha1.JobRunRunning)
	first.kill()
	s.release()
	second := w.leads(w.startInstalled(installed, "manager-1", "5c5b6ed8-6d2a-4b0e-9c0f-6c1f3c1d4a22"))
	w.eventually("victim-r1", batchv1alpha1.JobRunCompleted)
	code, _ := second.terminate()
	w.Expect(code).To(BeZero())
	for _, p := range []*process{first, second} {
		w.Expect(strings.ToLower(p.log.String())).NotTo(ContainSubstring("forbidden"))
	}
	w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	w.Expect(foreign.Status.Phase).To(Equal(batchv1alpha1.JobRunQueued), "it is another manager's")
}
