// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/controlplane"
)

// noon is the time of fake clocks.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var (
	// live is an administrator's client of the API server; cached reads from the caches of the fronts.
	live   client.WithWatch
	cached client.Client
	caches cache.Cache
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	o := controlplane.Options{CRDDirs: []string{"config/crd/bases"}}
	os.Exit(controlplane.RunTests(m, controlplane.Acquire, o, func(ctx context.Context, p *controlplane.Plane) (undo func(), err error) {
		config, scheme := p.Config(), newScheme()
		if live, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
			return nil, err
		}
		if caches, err = cache.New(config, cache.Options{Scheme: scheme}); err != nil {
			return nil, err
		}
		cached, err = client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: caches}})
		if err != nil {
			return nil, err
		}
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		ended := make(chan error, 1)
		go func() { ended <- caches.Start(running) }()
		caches.WaitForCacheSync(ctx)
		return func() {
			stop()
			<-ended
		}, nil
	}))
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, batchv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}
