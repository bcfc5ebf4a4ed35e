// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/explain"
)

// again is how long a connection that broke waits before it is made anew.
const again = time.Second

// Live is a snapshot that is kept up to date.
type Live struct {
	client    client.WithWatch
	namespace string
	clock     clock.Clock

	mu      sync.Mutex
	objects map[string]map[types.UID]client.Object // by the plural of the kind
	unread  []string
	trouble map[string]error // why what is shown of a kind may be out of date

	changed chan struct{}
}

// Watch reads the namespace as far as the user may, and keeps watching it until the context ends. It returns once everything was
// read. Connections that break are made again.
func Watch(ctx context.Context, c client.WithWatch, namespace string, clk clock.Clock) (*Live, error) {
	l := &Live{client: c, namespace: namespace, clock: clk, objects: map[string]map[types.UID]client.Object{}, trouble: map[string]error{}, changed: make(chan struct{}, 1)}
	versions := map[string]string{}
	for _, k := range kinds() {
		version, err := l.list(ctx, k)
		if k.optional && apierrors.IsForbidden(err) {
			l.unread = append(l.unread, k.lost()...)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", k.plural, err)
		}
		versions[k.plural] = version
	}
	for _, k := range kinds() {
		if version, read := versions[k.plural]; read && !k.minor {
			go l.keep(ctx, k, version)
		}
	}
	return l, nil
}

// Changed receives after something has changed. Changes in quick succession may be one.
func (l *Live) Changed() <-chan struct{} { return l.changed }

// Snapshot returns what there is now, and why that may be out of date.
func (l *Live) Snapshot() (explain.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := explain.Snapshot{Namespace: l.namespace, Unread: slices.Clone(l.unread)}
	for _, objects := range l.objects {
		for _, o := range objects {
			_ = add(&s, o) // list has added it before
		}
	}
	return s, errors.Join(slices.Collect(maps.Values(l.trouble))...)
}

// list reads a kind anew and returns the version from which to watch it.
func (l *Live) list(ctx context.Context, k kind) (string, error) {
	list, ok := k.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return "", fmt.Errorf("%T is no list", k.list)
	}
	if err := l.client.List(ctx, list, append(k.opts, client.InNamespace(l.namespace))...); err != nil {
		return "", err
	}
	found := map[types.UID]client.Object{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is no object", item)
		}
		found[o.GetUID()] = o
		return add(&explain.Snapshot{}, o)
	})
	if err != nil {
		return "", err
	}
	l.update(func() {
		l.objects[k.plural] = found
		delete(l.trouble, k.plural)
	})
	return list.GetResourceVersion(), nil
}

// keep watches a kind. When the watch ends, as each does after a while, it goes on from a new list.
func (l *Live) keep(ctx context.Context, k kind, version string) {
	for ctx.Err() == nil {
		err := l.follow(ctx, k, version)
		for ctx.Err() == nil {
			if err != nil {
				l.update(func() { l.trouble[k.plural] = err })
			}
			select {
			case <-ctx.Done():
			case <-l.clock.After(again):
			}
			if version, err = l.list(ctx, k); err == nil {
				break
			}
		}
	}
}

func (l *Live) follow(ctx context.Context, k kind, version string) error {
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}
	w, err := l.client.Watch(ctx, k.list, append(slices.Clone(k.opts), client.InNamespace(l.namespace), from)...)
	if err != nil {
		return fmt.Errorf("watching %s: %w", k.plural, err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		o, ok := event.Object.(client.Object)
		if !ok || event.Type == watch.Error {
			return nil // the version is too old, for one; a new list settles it
		}
		l.update(func() {
			if event.Type == watch.Deleted {
				delete(l.objects[k.plural], o.GetUID())
			} else {
				l.objects[k.plural][o.GetUID()] = o
			}
		})
	}
	return nil
}

func (l *Live) update(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}
