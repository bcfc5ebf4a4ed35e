// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// informers is the cache of one process. The scheduler fills it, kind by kind.
type informers struct {
	process *process
	filled  chan struct{} // closed when every kind is

	mu      sync.Mutex
	ordered []*informer // by kind; replaced as a whole, never changed
	indexes map[schema.GroupVersionKind]map[string]client.IndexerFunc
	started bool
}

var _ cache.Cache = (*informers)(nil)

func newInformers(p *process) *informers {
	return &informers{process: p, filled: make(chan struct{}), indexes: map[schema.GroupVersionKind]map[string]client.IndexerFunc{}}
}

// GetInformer returns the informer of a kind, once it is filled if the cache has started.
func (c *informers) GetInformer(ctx context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(o, c.process.sim.scheme)
	if err != nil {
		return nil, err
	}
	return c.GetInformerForKind(ctx, gvk)
}

// GetInformerForKind is GetInformer by the name of the kind.
func (c *informers) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	i, started := c.informer(gvk)
	if started {
		if err := i.wait(ctx); err != nil {
			return nil, err
		}
	}
	return i, nil
}

func (c *informers) informer(gvk schema.GroupVersionKind) (*informer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := slices.BinarySearchFunc(c.ordered, gvk.Kind, func(i *informer, kind string) int { return strings.Compare(i.gvk.Kind, kind) })
	if known {
		return c.ordered[at], c.started
	}
	i := newInformer(c.process, gvk, c.indexes[gvk])
	c.ordered = slices.Insert(slices.Clone(c.ordered), at, i)
	if c.started {
		c.process.sim.network.signal()
	}
	return i, c.started
}

// all returns the informers in order.
func (c *informers) all() []*informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ordered
}

// RemoveInformer is used by nobody.
func (c *informers) RemoveInformer(context.Context, client.Object) error {
	return fmt.Errorf("removing an informer is not simulated")
}

// Start has the scheduler fill the cache from now on.
func (c *informers) Start(ctx context.Context) error {
	c.mu.Lock()
	c.started = true
	c.mu.Unlock()
	c.process.sim.network.signal()
	select {
	case <-ctx.Done():
	case <-c.process.dead:
	}
	return nil
}

func (c *informers) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// WaitForCacheSync waits until every kind is filled.
func (c *informers) WaitForCacheSync(ctx context.Context) bool {
	for _, i := range c.all() {
		if i.wait(ctx) != nil {
			return false
		}
	}
	return true
}

// IndexField adds an index. Indexes are searched, not kept: histories are small.
func (c *informers) IndexField(_ context.Context, o client.Object, field string, of client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(o, c.process.sim.scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexes[gvk] == nil {
		c.indexes[gvk] = map[string]client.IndexerFunc{}
	}
	c.indexes[gvk][field] = of
	return nil
}

// Get reads from the cache.
func (c *informers) Get(ctx context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	var o client.GetOptions
	o.ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(out, c.process.sim.scheme)
	if err != nil {
		return err
	}
	i, _ := c.informer(gvk)
	if err := i.wait(ctx); err != nil {
		return err
	}
	found, ok := i.get(key)
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
		found, _ = found.DeepCopyObject().(client.Object)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found).Elem())
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return nil
}

// List reads from the cache.
func (c *informers) List(ctx context.Context, out client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	gvk, err := apiutil.GVKForObject(out, c.process.sim.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	i, _ := c.informer(gvk)
	if err := i.wait(ctx); err != nil {
		return err
	}
	var found []runtime.Object
	for _, item := range i.list() {
		matches, err := c.matches(gvk, item, &o)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
			found = append(found, item.DeepCopyObject())
		} else {
			found = append(found, item)
		}
	}
	return meta.SetList(out, found)
}

func (c *informers) matches(gvk schema.GroupVersionKind, item client.Object, o *client.ListOptions) (bool, error) {
	if o.Namespace != "" && item.GetNamespace() != o.Namespace {
		return false, nil
	}
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labelsOf(item)) {
		return false, nil
	}
	if o.FieldSelector == nil {
		return true, nil
	}
	for _, requirement := range o.FieldSelector.Requirements() {
		of := c.index(gvk, requirement.Field)
		if of == nil {
			return false, fmt.Errorf("there is no index %s of %s", requirement.Field, gvk.Kind)
		}
		if !slices.Contains(of(item), requirement.Value) {
			return false, nil
		}
	}
	return true, nil
}

func (c *informers) index(gvk schema.GroupVersionKind, field string) client.IndexerFunc {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.indexes[gvk][field]
}

var _ toolscache.DoneChecker = done{}

// done tells of something that is over when its channel is closed.
type done struct {
	name string
	over <-chan struct{}
}

// Name says what is waited for.
func (d done) Name() string { return d.name }

// Done is closed when it is over.
func (d done) Done() <-chan struct{} { return d.over }
