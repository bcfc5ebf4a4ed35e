// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// wakes adds keys to the work queue of a controller from anywhere in this process. What is woken before the controller has
// started is remembered.
type wakes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
	early map[types.NamespacedName]struct{}
}

// source is the event source to give to the controller.
func (w *wakes) source() source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = q
		for key := range w.early {
			q.Add(ctrl.Request{NamespacedName: key})
		}
		w.early = nil
		return nil
	})
}

func (w *wakes) wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(ctrl.Request{NamespacedName: key})
		return
	}
	if w.early == nil {
		w.early = map[types.NamespacedName]struct{}{}
	}
	w.early[key] = struct{}{}
}
