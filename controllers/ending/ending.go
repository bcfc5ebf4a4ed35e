// SPDX-License-Identifier: Apache-2.0

// Package ending keeps the end of a process from looking like a failure of what it interrupts.
package ending

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Orderly returns r without the errors of reconciles that the end of the process has interrupted: the next manager does
// what they left, and nobody should look for a fault in the log of every update.
func Orderly(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if err != nil && ctx.Err() != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("interrupted by the end of the process", "by", err.Error())
			return ctrl.Result{}, nil
		}
		return result, err
	})
}
