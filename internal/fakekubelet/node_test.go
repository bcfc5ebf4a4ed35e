// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAClusterWithANodeOfItsOwnIsRefused(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}})
	err := ensureNode(t.Context(), client, DefaultNode)
	if err == nil || !strings.Contains(err.Error(), "real") {
		t.Errorf("error = %v, want one that names the node", err)
	}
}

func TestTheNodeOfAKubeletBeforeIsTakenOver(t *testing.T) {
	client := fake.NewClientset()
	for range 2 {
		if err := ensureNode(t.Context(), client, DefaultNode); err != nil {
			t.Fatal(err)
		}
	}
}
