// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// pages has a cache fill from a consistent list in pages, of the size that client-go chooses. Streamed initial events cost more
// than twice as much for each object, and a list of any version, which a client-go reflector asks for first otherwise, comes as
// one answer, however long it is.
type pages struct{ cache.ListerWatcherWithContext }

// IsWatchListSemanticsUnSupported has client-go list, and not stream.
func (pages) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext asks for one page.
func (p pages) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	return p.ListerWatcherWithContext.ListWithContext(ctx, options)
}

// List is ListWithContext for callers without a context.
func (p pages) List(options metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context.
func (p pages) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), options)
}
