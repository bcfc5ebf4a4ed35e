// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/direct"
)

// addFront serves direct access over HTTP from this process, whether it leads or not.
func (op *Operator) addFront(mgr ctrl.Manager, egress http.RoundTripper) error {
	o := op.options
	if o.DirectAddress == "0" {
		return nil
	}
	front, err := direct.New(direct.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Informers: mgr.GetCache(), Egress: egress, Fit: fit, Namespaces: o.Namespaces,
		Address: o.DirectAddress, CertDir: o.DirectCertDir, Audience: o.DirectAudience, ID: o.ID, Clock: o.Clock,
		DrainTimeout: o.DrainTimeout, Log: o.Log.WithName("direct"),
	})
	if err != nil {
		return fmt.Errorf("direct access: %w", err)
	}
	return mgr.Add(&earlyEnding{Front: front, ending: op.ending, serving: &op.serving})
}

// earlyEnding is a front that begins to drain when the process is asked to end, at the same time as the calls of runs do, and
// not when those have ended.
type earlyEnding struct {
	*direct.Front
	ending  <-chan struct{}
	serving *sync.WaitGroup
}

// Start serves until ctx or the process is asked to end.
func (e *earlyEnding) Start(ctx context.Context) error {
	e.serving.Add(1)
	defer e.serving.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	return e.Front.Start(ctx)
}

// fit says whether a queue can ever grant what a direct request asks for.
func fit(q *batchv1alpha1.JobQueue, kind string, claims []batchv1alpha1.ResourceClaim) (code, message string, ok bool) {
	reason, ok := admission.Fit(admission.LimitsOf(q), kind, admission.ClaimsOf(claims))
	return reason.Code, reason.Message, ok
}
