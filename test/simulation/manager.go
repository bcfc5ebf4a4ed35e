// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// stopTimeout is how long the controllers may take to end in good order, as in the product.
const stopTimeout = 10 * time.Second

// errLeaseLost ends a process, as it does with client-go's election.
var errLeaseLost = errors.New("leader election lost")

// smallManager is a controller-runtime manager on the simulated network.
type smallManager struct {
	process   *process
	client    *cached
	live      *remote
	cache     *informers
	log       logr.Logger
	elector   *elector // nil: the process is alone
	elected   chan struct{}
	runnables []manager.Runnable
}

var _ manager.Manager = (*smallManager)(nil)

func newManager(p *process, log logr.Logger, e *elector) *smallManager {
	live := &remote{Client: p.sim.direct, process: p}
	c := newInformers(p)
	return &smallManager{process: p, client: &cached{remote: live, cache: c}, live: live, cache: c, log: log, elector: e, elected: make(chan struct{})}
}

// Add adds what is to run; it is started by Start.
func (m *smallManager) Add(r manager.Runnable) error {
	m.runnables = append(m.runnables, r)
	return nil
}

// Start runs the process: the caches, the election, and then everything that was added, one after another, since that is one
// order and not any. It returns when ctx ends, something fails, the lease is lost or the process is killed.
func (m *smallManager) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { _ = m.cache.Start(context.WithoutCancel(ctx)) }()
	if !m.cache.WaitForCacheSync(ctx) {
		return m.process.err()
	}
	lost := make(chan error, 1)
	if m.elector != nil {
		if err := m.elector.acquire(ctx); err != nil {
			return m.process.err()
		}
		go func() { lost <- m.elector.renew(ctx) }()
	}
	close(m.elected)
	failed := make(chan error, len(m.runnables))
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var all sync.WaitGroup
	for _, r := range m.runnables {
		all.Go(func() {
			if err := r.Start(working); err != nil {
				failed <- err
			}
		})
		<-time.After(time.Microsecond)
	}
	select {
	case <-ctx.Done():
	case err := <-failed:
		return err
	case err := <-lost:
		if ctx.Err() == nil {
			return err
		}
	case <-m.process.dead:
		return errEnded
	}
	stop()
	m.await(&all)
	if m.elector != nil {
		m.elector.release()
	}
	return nil
}

// await waits until everything has ended, for as long as the product does.
func (m *smallManager) await(all *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(stopTimeout):
	case <-m.process.dead:
	}
}

// Elected is closed when this process leads.
func (m *smallManager) Elected() <-chan struct{} { return m.elected }

// GetClient reads from the cache.
func (m *smallManager) GetClient() client.Client { return m.client }

// GetAPIReader reads live.
func (m *smallManager) GetAPIReader() client.Reader { return m.live }

// GetCache is the cache.
func (m *smallManager) GetCache() cache.Cache { return m.cache }

// GetFieldIndexer adds indexes to the cache.
func (m *smallManager) GetFieldIndexer() client.FieldIndexer { return m.cache }

// GetScheme knows the kinds.
func (m *smallManager) GetScheme() *runtime.Scheme { return m.process.sim.scheme }

// GetRESTMapper knows the resources.
func (m *smallManager) GetRESTMapper() meta.RESTMapper { return m.process.sim.direct.RESTMapper() }

// GetEventRecorder keeps Events for the checker.
func (m *smallManager) GetEventRecorder(string) recorder.EventRecorder { return &notes{m.process} }

// GetEventRecorderFor is the same for events of the old kind.
func (m *smallManager) GetEventRecorderFor(string) record.EventRecorder {
	return record.NewFakeRecorder(0)
}

// GetLogger is the process's logger.
func (m *smallManager) GetLogger() logr.Logger { return m.log }

// GetControllerOptions lets controllers of several processes have the same names.
func (m *smallManager) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: ptr.To(true)}
}

// GetHTTPClient is none: there is no network.
func (m *smallManager) GetHTTPClient() *http.Client { return nil }

// GetConfig is none.
func (m *smallManager) GetConfig() *rest.Config { return nil }

// AddMetricsServerExtraHandler serves nothing.
func (m *smallManager) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck serves nothing.
func (m *smallManager) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck serves nothing.
func (m *smallManager) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer is none.
func (m *smallManager) GetWebhookServer() webhook.Server { return nil }

// GetConverterRegistry is none.
func (m *smallManager) GetConverterRegistry() conversion.Registry { return nil }
