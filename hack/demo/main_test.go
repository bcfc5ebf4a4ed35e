// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/controlplane"
	"reprise.dev/reprise/internal/fakekubelet"
)

// The whole demo, in a cluster that was there before and has a node; make demo itself is the same without either.
func TestEveryClaimHoldsInAnExistingClusterWhichIsLeftAsItWas(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // the first build on a machine takes minutes
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{ControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubelet, err := fakekubelet.Start(ctx, plane.Config(), fakekubelet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelet.Stop)
	t.Setenv("CLUSTER", "existing")
	t.Setenv("KUBECONFIG", plane.Kubeconfig())
	t.Setenv("CONTEXT", "reprise-local")

	var out strings.Builder
	if err := run(ctx, &narrator{out: &out}, false); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, claim := range []string{"Failed (CrashRecovery)", "pod-work: ", "PASS"} {
		if !strings.Contains(out.String(), claim) {
			t.Errorf("it does not say %q:\n%s", claim, out.String())
		}
	}
	namespaces := &corev1.NamespaceList{}
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme()})
	if err == nil {
		err = c.List(ctx, namespaces)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces.Items {
		if strings.HasPrefix(ns.Name, "reprise-demo") {
			t.Errorf("namespace %s is left behind", ns.Name)
		}
	}
}
