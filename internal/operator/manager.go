// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	httpwork "reprise.dev/reprise/internal/executor/http"
	"reprise.dev/reprise/internal/incarnation"
)

// Scheme knows every kind that the manager reads or writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(batchv1alpha1.AddToScheme(s))
	return s
}

// newLease returns the lock of the leader election, nil for a process that is alone, and what bounds its calls.
func newLease(restConfig *rest.Config, o Options) (resourcelock.Interface, httpwork.Leader, error) {
	if !o.LeaderElect {
		return nil, incarnation.Always{}, nil
	}
	// A client of its own: the lease must not wait behind the work.
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.LeaseNamespace, leaseName,
		resourcelock.ResourceLockConfig{Identity: o.ID}, restConfig, leaseClientDeadline(o))
	if err != nil {
		return nil, nil, fmt.Errorf("preparing the leader election: %w", err)
	}
	lease := incarnation.NewLease(lock, o.LeaseDuration, clock.RealClock{})
	return lease, lease, nil
}

// leaseClientDeadline is what resourcelock takes for the renew deadline: requests about the lease time out after half of it. A
// leader that is cut off tries one more after its deadline, to give the lease up, and is to have ended before another leads. No
// single request may use up the deadline itself.
func leaseClientDeadline(o Options) time.Duration {
	return min(o.RenewDeadline, (o.LeaseDuration-o.RenewDeadline)*4/5)
}

// stopTimeout bounds the end of the controllers once calls are drained.
const stopTimeout = 10 * time.Second

// workConfig is how the controllers ask the API server.
func workConfig(restConfig *rest.Config) *rest.Config {
	c := rest.CopyConfig(restConfig)
	// The API server's priority and fairness is the limit; one on this side would throttle the work.
	c.QPS = -1
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
	return c
}

func newManager(restConfig *rest.Config, o Options, lock resourcelock.Interface) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(workConfig(restConfig), ctrl.Options{
		Scheme:                              Scheme(),
		Logger:                              o.Log,
		MapperProvider:                      newMapper,
		Cache:                               cacheOptions(o.Namespaces),
		Metrics:                             metrics(o),
		HealthProbeBindAddress:              o.ProbeAddress,
		LeaderElection:                      o.LeaderElect,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &o.LeaseDuration,
		RenewDeadline:                       &o.RenewDeadline,
		RetryPeriod:                         &o.RetryPeriod,
		GracefulShutdownTimeout:             ptr.To(stopTimeout),
		// Several managers in one process are normal in tests; their metrics then share names.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	// Both answer while the caches still fill: a manager with a long queue is not a broken one.
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, nil
}

// cacheOptions keeps what nobody reads out of memory: only Jobs and pods that work for runs, no managed fields, and nothing twice
// that runs have in common.
func cacheOptions(namespaces []string) cache.Options {
	ours, err := labels.NewRequirement(batchv1alpha1.LabelRunUID, selection.Exists, nil)
	utilruntime.Must(err)
	selector := labels.NewSelector().Add(*ours)
	only := map[string]cache.Config{}
	for _, ns := range namespaces {
		only[ns] = cache.Config{}
	}
	return cache.Options{
		DefaultNamespaces: only,
		DefaultTransform:  cache.TransformStripManagedFields(),
		NewInformer:       newInformer,
		ByObject: map[client.Object]cache.ByObject{
			&batchv1alpha1.JobRun{}: {Transform: newSharing().run},
			&batchv1.Job{}:          {Label: selector, Transform: stripJob},
			&corev1.Pod{}:           {Label: selector, Transform: stripPod},
		},
	}
}

// stripJob drops the pod template of a cached Job. Cached Jobs are never written back.
func stripJob(o any) (any, error) {
	if j, ok := o.(*batchv1.Job); ok {
		j.ManagedFields = nil
		j.Spec.Template = corev1.PodTemplateSpec{}
	}
	return o, nil
}

// stripPod drops everything but the identity and phase of a cached pod.
func stripPod(o any) (any, error) {
	if p, ok := o.(*corev1.Pod); ok {
		p.ManagedFields = nil
		p.Spec = corev1.PodSpec{NodeName: p.Spec.NodeName}
		p.Status = corev1.PodStatus{Phase: p.Status.Phase}
	}
	return o, nil
}

func metrics(o Options) metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddress}
	if o.MetricsSecure {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}
