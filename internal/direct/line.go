// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// defaultMaxWaiting is how many requests of a queue wait at this process if the queue does not say.
const defaultMaxWaiting = 100

// line counts the requests that wait at this process, for each queue.
type line struct {
	mu      sync.Mutex
	waiting map[types.NamespacedName]int
}

func newLine() *line { return &line{waiting: map[types.NamespacedName]int{}} }

// join lets a request wait until it leaves, which it may do more than once. The problem says why it may not wait.
func (l *line) join(q *batchv1alpha1.JobQueue) (leave func(), p *problem) {
	limit := defaultMaxWaiting
	if n := q.Spec.Direct.MaxWaiting; n != nil {
		limit = int(*n)
	}
	key := types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[key] >= limit {
		return nil, refuse(http.StatusTooManyRequests, "TooManyWaiting", "%d requests wait for queue %s here already; try again later", limit, q.Name).again(comeAgain)
	}
	l.waiting[key]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waiting[key]--; l.waiting[key] == 0 {
			delete(l.waiting, key)
		}
	}), nil
}
