// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// noting notes what a fake watch tells of objects made since a time.
func noting(since time.Time) (*Notes, *watch.FakeWatcher) {
	w := watch.NewFakeWithChanSize(10, false)
	return &Notes{tail: &Tail{watch: w}, counts: created(since), seen: map[types.UID]bool{}}, w
}

func podOf(uid types.UID, made time.Time) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID, p.CreationTimestamp = uid, metav1.NewTime(made)
	return p
}

func TestAnObjectIsNotedOnceAndOnlyForWhatCounts(t *testing.T) {
	since := time.Now().Add(-time.Second)
	n, w := noting(since)
	w.Add(podOf("old", since.Add(-time.Second)))
	w.Modify(podOf("a", since))
	w.Add(podOf("b", since))
	w.Add(podOf("b", since))
	w.Add(podOf("c", since))
	late, err := n.Collect(t.Context(), 2, since)
	if err != nil {
		t.Fatal(err)
	}
	if len(late) != 2 || late[0] < 1000 || late[1] < late[0] || len(w.ResultChan()) != 0 {
		t.Errorf("they came %v ms after a second ago", late)
	}
}

func TestWhoeverWaitsForNotesIsToldHowFarItCameAndWhyItEnded(t *testing.T) {
	n, _ := noting(time.Now())
	ended := errors.New("the manager has ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, err := n.Collect(ctx, 2, time.Now()); !errors.Is(err, ended) || !strings.HasPrefix(err.Error(), "0 of 2") {
		t.Errorf("the error is %v", err)
	}
}
