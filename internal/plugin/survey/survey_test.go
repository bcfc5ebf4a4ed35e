// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestTheClusterIsTakenApartByNamespace(t *testing.T) {
	g := NewWithT(t)
	a, b := aRun("same"), aRun("same")
	a.Namespace, b.Namespace = "a", "b"
	pod := func(namespace string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: map[string]string{batchv1alpha1.LabelRunUID: "same"}}}
	}
	idle := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "idle", Name: "default"}}
	s, err := All(t.Context(), aCluster(a, b, pod("a"), pod("idle"), idle), "")
	g.Expect(err).NotTo(HaveOccurred())
	apart := ByNamespace(s)
	g.Expect(apart).To(HaveLen(2), "nothing is to be told of a queue with nothing in it")
	for namespace, pods := range map[string]int{"a": 1, "b": 0} {
		g.Expect(apart[namespace].Namespace).To(Equal(namespace))
		g.Expect(apart[namespace].Runs).To(HaveLen(1))
		g.Expect(apart[namespace].Pods).To(HaveLen(pods))
	}
}
