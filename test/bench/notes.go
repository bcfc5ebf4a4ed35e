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
	watch  watch.Interface
	counts func(watch.Event) bool
	seen   map[types.UID]bool
	times  []time.Time
}

// Note begins to note. The API server keeps what happens for Collect.
func (b *Bench) Note(ctx context.Context, list client.ObjectList, namespace string, counts func(watch.Event) bool) (*Notes, error) {
	now := &metav1.PartialObjectMetadataList{}
	now.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"}) // a few; any list tells what is now
	if err := b.Client.List(ctx, now, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	w, err := b.Client.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: now.ResourceVersion}})
	if err != nil {
		return nil, err
	}
	return &Notes{watch: w, counts: counts, seen: map[types.UID]bool{}}, nil
}

// metadataOf is a list of a kind of which only the metadata are sent: it costs the same whatever the kind.
func metadataOf(kind schema.GroupVersionKind) client.ObjectList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// created counts new objects.
func created(e watch.Event) bool { return e.Type == watch.Added }

// Collect waits until something has happened to n objects, and returns how many milliseconds after a time.
func (n *Notes) Collect(ctx context.Context, objects int, after time.Time) ([]float64, error) {
	defer n.watch.Stop()
	for len(n.times) < objects {
		select {
		case e, open := <-n.watch.ResultChan():
			if !open {
				return nil, errWatchEnded
			}
			n.note(e, time.Now())
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d happened: %w", len(n.times), objects, ctx.Err())
		}
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
