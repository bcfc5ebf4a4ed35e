// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	// pageSize of a live list of pods.
	pageSize = 500
	// runsAtOnce is for how many runs one list asks, which keeps its URL below 5 KB.
	runsAtOnce = 100
)

// podLists reads the pods of runs live. For each list the API server walks through all pods of the namespace, whatever is
// asked for, so no two are on their way in a namespace at once: who asks meanwhile gets the next one, together with all who
// ask by then. Nobody gets one that began earlier, since it may show what was before.
//
// A Job's own status is no proof that none of its pods lives. It is what the Job controller counted in its cache, which may be
// behind: after a change of its leader it may not know of a pod that its predecessor made last. Nor does it count a pod that
// was taken from the Job by an edit of its labels or owner.
type podLists struct {
	live client.Reader

	mu sync.Mutex
	// asking are those that wait for the next list, by namespace. A namespace is there while a list of it is on its way.
	asking map[string][]*asker
}

// asker waits for the pods of one run.
type asker struct {
	ctx  context.Context
	run  types.UID
	pods []corev1.Pod
	err  error
	done chan struct{}
}

// of returns the pods that carry the UID of a run, by a list that begins after the call. Others may have got the same pods:
// they are only to be read.
func (l *podLists) of(ctx context.Context, namespace string, run types.UID) ([]corev1.Pod, error) {
	a := &asker{ctx: ctx, run: run, done: make(chan struct{})}
	l.mu.Lock()
	if l.asking == nil {
		l.asking = map[string][]*asker{}
	}
	_, busy := l.asking[namespace]
	l.asking[namespace] = append(l.asking[namespace], a)
	l.mu.Unlock()
	if !busy {
		go l.serve(namespace)
	}
	select {
	case <-a.done:
		return a.pods, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve lists for those that ask until nobody does.
func (l *podLists) serve(namespace string) {
	for askers := l.next(namespace); len(askers) > 0; askers = l.next(namespace) {
		pods, err := l.list(namespace, askers)
		for _, a := range askers {
			a.pods, a.err = pods[a.run], err
			close(a.done)
		}
	}
}

// next returns those that the next list is for, none if nobody asks any more.
func (l *podLists) next(namespace string) []*asker {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.asking[namespace]
	if len(all) == 0 {
		delete(l.asking, namespace)
		return nil
	}
	n := min(len(all), runsAtOnce)
	l.asking[namespace] = all[n:]
	return all[:n]
}

// list returns the pods of all who ask, by the UIDs of their runs. It ends early once none of them waits any more.
func (l *podLists) list(namespace string, askers []*asker) (map[types.UID][]corev1.Pod, error) {
	ctx, end := whileAnyWaits(askers)
	defer end()
	uids := make([]string, len(askers))
	for i, a := range askers {
		uids[i] = string(a.run)
	}
	theirs, err := k8slabels.NewRequirement(batchv1alpha1.LabelRunUID, selection.In, uids)
	if err != nil {
		return nil, err
	}
	selector := client.MatchingLabelsSelector{Selector: k8slabels.NewSelector().Add(*theirs)}
	pods := map[types.UID][]corev1.Pod{}
	page := &corev1.PodList{}
	for more := true; more; more = page.Continue != "" {
		from := page.Continue
		page = &corev1.PodList{}
		if err := l.live.List(ctx, page, client.InNamespace(namespace), selector, client.Limit(pageSize), client.Continue(from)); err != nil {
			return nil, err
		}
		for _, p := range page.Items {
			run := types.UID(p.Labels[batchv1alpha1.LabelRunUID])
			pods[run] = append(pods[run], p)
		}
	}
	return pods, nil
}

// whileAnyWaits returns a context that ends when the contexts of all who ask have ended, or by the function, which must be called.
func whileAnyWaits(askers []*asker) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(askers[0].ctx))
	var waiting atomic.Int64
	waiting.Store(int64(len(askers)))
	stops := make([]func() bool, len(askers))
	for i, a := range askers {
		stops[i] = context.AfterFunc(a.ctx, func() {
			if waiting.Add(-1) == 0 {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
