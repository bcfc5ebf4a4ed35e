// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"

	"reprise.dev/reprise/internal/controlplane"
)

func TestPodsEndAndStartAfterTheAPIServerAndEtcdWereKilled(t *testing.T) {
	g := NewWithT(t)
	before := namespace(t)
	createJob(t, before, map[string]string{AnnotationRunsFor: "1s"})
	_, err := kubelet.WaitRunning(t.Context(), before, nil)
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{controlplane.Etcd, controlplane.APIServer} {
		g.Expect(plane.Kill(name)).To(Succeed())
	}
	for _, name := range []string{controlplane.Etcd, controlplane.APIServer} {
		g.Expect(plane.Restart(t.Context(), name)).To(Succeed())
	}
	after := namespace(t)
	createJob(t, after, map[string]string{AnnotationExitCode: "1"})
	jobEnds(t, before, batchv1.JobComplete)
	jobEnds(t, after, batchv1.JobFailed)
	for _, ns := range []string{before, after} {
		g.Expect(historyOf(ns)).To(Equal([]EventKind{Started, Ended}))
	}
}
