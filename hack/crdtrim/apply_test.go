// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"reprise.dev/reprise/internal/controlplane"
)

// Plain `kubectl apply` keeps the whole object in an annotation, and refuses what does not fit.
func TestPlainKubectlApplyAcceptsTheGeneratedCRDs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // a first build of the binaries takes minutes
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, args := range [][]string{
		{"apply", "-f", "../../config/crd/bases"},
		{"apply", "-f", "../../config/crd/bases"}, // the second time it works on the annotation
		{"wait", "--for=condition=Established", "--timeout=60s", "-f", "../../config/crd/bases"},
		{"explain", "jobrun.spec.work.job.template"},
	} {
		if out, err := plane.Kubectl(ctx, args...).CombinedOutput(); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
}
