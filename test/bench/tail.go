// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tail tells what happens in a namespace from a moment on. The API server ends a watch now and then: it is opened again where it
// ended. If that is too long ago, what there is by then is told as if it had just been added, also what is older than the moment.
type Tail struct {
	client    client.WithWatch
	list      client.ObjectList // of the kind that is watched
	namespace string
	version   string // of what was told last
	watch     watch.Interface
	missed    []watch.Event
}

// Tail begins now: what is there already is not told. The API server keeps for Next what happens. Stop must be called.
func (b *Bench) Tail(ctx context.Context, list client.ObjectList, namespace string) (*Tail, error) {
	now := &metav1.PartialObjectMetadataList{}
	now.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"}) // a few; any list tells what is now
	if err := b.Client.List(ctx, now, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	t := &Tail{client: b.Client, list: list, namespace: namespace, version: now.ResourceVersion}
	err := t.open(ctx)
	return t, err
}

// Stop ends it.
func (t *Tail) Stop() {
	if t.watch != nil {
		t.watch.Stop()
	}
}

// Next waits for what happens next.
func (t *Tail) Next(ctx context.Context) (watch.Event, error) {
	for len(t.missed) == 0 {
		select {
		case e, open := <-t.watch.ResultChan():
			if !open || e.Type == watch.Error {
				if err := t.reopen(ctx, e.Object); err != nil {
					return watch.Event{}, err
				}
				continue
			}
			if o, ok := e.Object.(client.Object); ok {
				t.version = o.GetResourceVersion()
			}
			if e.Type != watch.Bookmark {
				return e, nil
			}
		case <-ctx.Done():
			return watch.Event{}, context.Cause(ctx)
		}
	}
	e := t.missed[0]
	t.missed = t.missed[1:]
	return e, nil
}

// reopen opens the watch again after it was ended, with what it said at last.
func (t *Tail) reopen(ctx context.Context, said runtime.Object) error {
	t.Stop()
	if status, ok := said.(*metav1.Status); ok && tooOld(apierrors.FromObject(status)) {
		return t.catchUp(ctx)
	}
	err := t.open(ctx)
	if tooOld(err) {
		return t.catchUp(ctx)
	}
	return err
}

func tooOld(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

func (t *Tail) open(ctx context.Context) (err error) {
	// Bookmarks keep the version young where nothing happens.
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: t.version, AllowWatchBookmarks: true}}
	t.watch, err = t.client.Watch(ctx, t.list, client.InNamespace(t.namespace), from)
	return err
}

// catchUp tells what there is, and goes on from there.
func (t *Tail) catchUp(ctx context.Context) error {
	list, ok := t.list.DeepCopyObject().(client.ObjectList)
	if !ok {
		return fmt.Errorf("%T cannot be listed", t.list)
	}
	if err := t.client.List(ctx, list, client.InNamespace(t.namespace)); err != nil {
		return err
	}
	t.version = list.GetResourceVersion()
	err := meta.EachListItem(list, func(o runtime.Object) error {
		t.missed = append(t.missed, watch.Event{Type: watch.Added, Object: o})
		return nil
	})
	if err != nil {
		return err
	}
	return t.open(ctx)
}
