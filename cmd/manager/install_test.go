// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/operator"
)

// createClusterWide creates objects that do not go with the namespace of the test.
func (w *world) createClusterWide(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		err := w.Create(w.t.Context(), o)
		if apierrors.IsAlreadyExists(err) { // a cluster of the user's may have it
			continue
		}
		w.Expect(err).NotTo(HaveOccurred(), "creating %T %s", o, o.GetName())
		w.t.Cleanup(func() { _ = w.Delete(contextOf(w.t), o) })
	}
}
