// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// pages has a cache fill from a consistent list in pages, of the size that client-go chooses. Streamed initial events cost more
// than twice as much for each object, and a list of any version, which a client-go reflector asks for first otherwise, comes as
// one answer, however long it is.
//
// A list after that, when a watch was away, is told to the handlers object by object, in its order, while queues admit. What waits
// in queues is therefore put into the order in which they serve it: otherwise a later run would be admitted because an earlier one
// of the same list is yet to be told of. The first list needs no order: nothing is admitted before all of it was told.
type pages struct {
	cache.ListerWatcherWithContext
	// queued says that the objects wait in queues.
	queued bool
}

func newPages(from cache.ListerWatcher, of runtime.Object) pages {
	p := pages{ListerWatcherWithContext: cache.ToListerWatcherWithContext(from)}
	switch of.(type) {
	case *batchv1alpha1.JobRun, *batchv1alpha1.DirectReservation:
		p.queued = true
	}
	return p
}

// IsWatchListSemanticsUnSupported has client-go list, and not stream.
func (pages) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext asks for one page; for all of them, in the order of queues, if a watch was away.
func (p pages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	// So client-go asks while it has listed nothing yet.
	first := options.ResourceVersion == "0"
	if first {
		options.ResourceVersion = ""
	}
	if p.queued && !first && options.Continue == "" {
		return p.inTurn(ctx, options)
	}
	return p.ListerWatcherWithContext.ListWithContext(ctx, options)
}

// inTurn asks for all pages, of the size in the options (zero: one list), and returns what is in them in the order in which queues
// serve it.
func (p pages) inTurn(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	all := pager.New(p.ListerWatcherWithContext.ListWithContext)
	all.PageSize = options.Limit
	list, _, err := all.ListWithAlloc(ctx, options)
	if err != nil {
		return nil, err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractListWithAlloc(list)
	if err != nil {
		return nil, err
	}
	admission.InTurn(items)
	return &metainternalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: about.GetResourceVersion()}, Items: items}, nil
}

// List is ListWithContext for callers without a context.
func (p pages) List(options metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context.
func (p pages) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), options)
}
