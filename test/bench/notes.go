// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Notes are when things happened in a namespace, each once for an object, as a watch told of them: what the API server stores
// has whole seconds only.
type Notes struct {
	tail   *Tail
	counts func(watch.Event) bool
	seen   map[types.UID]bool
	times  []time.Time
}

// Note begins to note. The API server keeps what happens for Collect.
func (b *Bench) Note(ctx context.Context, list client.ObjectList, namespace string, counts func(watch.Event) bool) (*Notes, error) {
	tail, err := b.Tail(ctx, list, namespace)
	if err != nil {
		return nil, err
	}
	return &Notes{tail: tail, counts: counts, seen: map[types.UID]bool{}}, nil
}

// metadataOf is a list of a kind of which only the metadata are sent: it costs the same whatever the kind.
func metadataOf(kind schema.GroupVersionKind) client.ObjectList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// created counts objects that are new since a whole second.
func created(since time.Time) func(watch.Event) bool {
	return func(e watch.Event) bool {
		o, ok := e.Object.(client.Object)
		return ok && e.Type == watch.Added && !o.GetCreationTimestamp().Time.Before(since)
	}
}

// Collect waits until something has happened to n objects, and returns how many milliseconds after a time.
func (n *Notes) Collect(ctx context.Context, objects int, after time.Time) ([]float64, error) {
	defer n.tail.Stop()
	for len(n.times) < objects {
		e, err := n.tail.Next(ctx)
		if err != nil {
			return nil, fmt.Errorf("%d of %d happened: %w", len(n.times), objects, err)
		}
		n.note(e, time.Now())
	}
	var late []float64
	for _, t := range n.times {
		late = append(late, milliseconds(t.Sub(after)))
	}
	return late, nil
}

func (n *Notes) note(e watch.Event, now time.Time) {
	o, ok := e.Object.(client.Object)
	if !ok || n.seen[o.GetUID()] || !n.counts(e) {
		return
	}
	n.seen[o.GetUID()] = true
	n.times = append(n.times, now)
}
