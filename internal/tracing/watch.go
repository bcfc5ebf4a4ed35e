// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// SetupWithManager has the manager show its changes of runs and groups to the Tracer while it leads: one process tells of each.
func (t *Tracer) SetupWithManager(mgr ctrl.Manager) error {
	if t == nil {
		return nil
	}
	return mgr.Add(&viewer{tracer: t, caches: mgr.GetCache()})
}

// viewer is the part of the manager that watches.
type viewer struct {
	tracer *Tracer
	caches cache.Cache
}

// NeedLeaderElection keeps those that stand by from telling everything once more.
func (v *viewer) NeedLeaderElection() bool { return true }

// Start watches until ctx ends.
func (v *viewer) Start(ctx context.Context) error {
	for _, o := range []client.Object{&batchv1alpha1.JobRun{}, &batchv1alpha1.JobGroup{}} {
		stop, err := v.watch(ctx, o)
		if err != nil {
			return fmt.Errorf("watching for traces: %w", err)
		}
		context.AfterFunc(ctx, stop)
	}
	<-ctx.Done()
	return nil
}

// watch has the changes of a kind shown, until stop is called.
func (v *viewer) watch(ctx context.Context, o client.Object) (stop func(), err error) {
	informer, err := v.caches.GetInformer(ctx, o)
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: v.changed})
	if err != nil {
		return nil, err
	}
	return func() { _ = informer.RemoveEventHandler(registration) }, nil
}

func (v *viewer) changed(old, now any) {
	switch now := now.(type) {
	case *batchv1alpha1.JobRun:
		if old, ok := old.(*batchv1alpha1.JobRun); ok && old.UID == now.UID {
			v.tracer.RunChanged(old, now)
		}
	case *batchv1alpha1.JobGroup:
		if old, ok := old.(*batchv1alpha1.JobGroup); ok && old.UID == now.UID {
			v.tracer.GroupChanged(old, now)
		}
	}
}
