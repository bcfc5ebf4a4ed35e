// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ending is an API server whose watches end: each tells what it holds, and then closes, or refuses to open at all.
type ending struct {
	client.WithWatch
	watches []func() (watch.Interface, error)
	opened  []string // the versions from which they were
	stored  []corev1.Pod
}

func (e *ending) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	var o client.ListOptions
	o.ApplyOptions(options)
	e.opened = append(e.opened, o.Raw.ResourceVersion)
	next := e.watches[0]
	e.watches = e.watches[1:]
	return next()
}

func (e *ending) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.SetResourceVersion("90")
	pods, ok := list.(*corev1.PodList)
	if ok {
		pods.Items = e.stored
	}
	return nil
}

// telling is a watch that tells some events and is closed then.
func telling(events ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		w := watch.NewFakeWithChanSize(len(events), false)
		for _, e := range events {
			w.Action(e.Type, e.Object)
		}
		w.Stop()
		return w, nil
	}
}

func podAt(name, version string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Name, p.ResourceVersion = name, version
	return p
}

// told reads so many events of a tail, and returns the names of their objects.
func toldBy(t *testing.T, e *ending, n int) string {
	t.Helper()
	tail, err := (&Bench{Client: e}).Tail(t.Context(), &corev1.PodList{}, "ns")
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Stop()
	var names []string
	for range n {
		event, err := tail.Next(t.Context())
		if err != nil {
			t.Fatalf("after %v: %v", names, err)
		}
		names = append(names, event.Object.(*corev1.Pod).Name)
	}
	return strings.Join(names, " ")
}

func TestAWatchThatTheAPIServerEndsIsOpenedAgainWhereItEnded(t *testing.T) {
	e := &ending{watches: []func() (watch.Interface, error){
		telling(watch.Event{Type: watch.Added, Object: podAt("a", "91")}, watch.Event{Type: watch.Bookmark, Object: podAt("", "95")}),
		telling(),
		telling(watch.Event{Type: watch.Added, Object: podAt("b", "96")}),
	}}
	if told := toldBy(t, e, 2); told != "a b" {
		t.Errorf("told: %s", told)
	}
	if from := strings.Join(e.opened, " "); from != "90 95 95" {
		t.Errorf("opened at %s", from)
	}
}

func TestWhereAWatchIsTooOldWhatThereIsIsTold(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old resource version")
	for name, end := range map[string][]func() (watch.Interface, error){
		"told by the watch": {telling(watch.Event{Type: watch.Error, Object: &expired.ErrStatus})},
		"refused":           {telling(), func() (watch.Interface, error) { return nil, expired }},
	} {
		e := &ending{
			watches: append(end, telling(watch.Event{Type: watch.Added, Object: podAt("c", "99")})),
			stored:  []corev1.Pod{*podAt("a", "80"), *podAt("b", "85")},
		}
		if told := toldBy(t, e, 3); told != "a b c" {
			t.Errorf("%s: told: %s", name, told)
		}
		if from := e.opened[len(e.opened)-1]; from != "90" {
			t.Errorf("%s: opened again at %s", name, from)
		}
	}
}
