// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// noting notes what a fake watch tells.
func noting(counts func(watch.Event) bool) (*Notes, *watch.FakeWatcher) {
	w := watch.NewFakeWithChanSize(10, false)
	return &Notes{watch: w, counts: counts, seen: map[types.UID]bool{}}, w
}

func podOf(uid types.UID) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID = uid
	return p
}

func TestAnObjectIsNotedOnceAndOnlyForWhatCounts(t *testing.T) {
	n, w := noting(created)
	w.Modify(podOf("a"))
	w.Add(podOf("b"))
	w.Add(podOf("b"))
	w.Add(podOf("c"))
	late, err := n.Collect(t.Context(), 2, time.Now().Add(-time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if len(late) != 2 || late[0] < 1000 || late[1] < late[0] {
		t.Errorf("they came %v ms after a second ago", late)
	}
}

func TestAWatchThatEndsIsNotTakenForTheLastObject(t *testing.T) {
	n, w := noting(created)
	w.Add(podOf("a"))
	w.Stop()
	if _, err := n.Collect(t.Context(), 2, time.Now()); !errors.Is(err, errWatchEnded) {
		t.Errorf("the error is %v", err)
	}
}
