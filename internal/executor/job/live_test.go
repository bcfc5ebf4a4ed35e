// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"reprise.dev/reprise/internal/executor"
)

func TestWhatAVerdictRestsOnIsReadPastTheCache(t *testing.T) {
	pod := aPod("p", func(p *corev1.Pod) { p.Labels = labels(aRun()) })
	for name, there := range map[string]client.Object{
		"a Job that the cache does not show yet": aJob(aRun()),
		"a pod that the cache does not show yet": &pod,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			live := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(there).Build()
			behind := fake.NewClientBuilder().WithScheme(newScheme()).Build()
			e := New(Options{Client: behind, Live: live, Self: &self{epoch: mine}})
			ev, err := e.Look(t.Context(), aRun())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ev.Life).To(Equal(executor.Alive))
			g.Expect(ev.Stopped).To(BeFalse())
		})
	}
}
