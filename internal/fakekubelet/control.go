// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// poll is the time between two looks at the pods while a call waits for one.
const poll = 10 * time.Millisecond

// EventKind is what happened to the containers of a pod.
type EventKind string

const (
	// Started says that the containers began to run.
	Started EventKind = "Started"
	// Ended says that the containers ended, of their own, because the pod was deleted, or because it was removed by force.
	Ended EventKind = "Ended"
)

// Event is one entry of the history.
type Event struct {
	// Kind of the event.
	Kind EventKind
	// At is when it happened, by this process's clock.
	At time.Time
	// Pod as it was right before. It is shared: do not change it.
	Pod *corev1.Pod
}

// History returns what happened to the containers of all pods, in order. An event is recorded right before it is written
// to the API server, so that an effect of it never comes first.
func (k *Kubelet) History() []Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.history)
}

// HoldTermination makes the terminating pods of a namespace live on, however long their grace period, as on a node that
// does not answer.
func (k *Kubelet) HoldTermination(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[namespace] = true
}

// ReleaseTermination takes HoldTermination back: the terminating pods of the namespace end now.
func (k *Kubelet) ReleaseTermination(namespace string) {
	k.mu.Lock()
	delete(k.held, namespace)
	k.mu.Unlock()
	pods, err := k.pods.Pods(namespace).List(labels.Everything())
	if err != nil {
		panic(err) // a read of memory
	}
	for _, pod := range pods {
		k.enqueue(pod)
	}
}

// WaitRunning waits until a pod with these labels runs in the namespace, and returns it: the first by name.
func (k *Kubelet) WaitRunning(ctx context.Context, namespace string, match map[string]string) (*corev1.Pod, error) {
	var found *corev1.Pod
	err := wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		pods, err := k.pods.Pods(namespace).List(labels.SelectorFromSet(match))
		if err != nil {
			return false, err
		}
		pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
		if len(pods) == 0 {
			return false, nil
		}
		found = slices.MinFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("no pod with labels %v runs in namespace %s: %w", match, namespace, err)
	}
	return found.DeepCopy(), nil
}

// Finish waits until the pod runs and ends it: its first container with the exit code, the others with 0.
func (k *Kubelet) Finish(ctx context.Context, pod types.NamespacedName, exitCode int32) error {
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		live, err := k.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		switch live.Status.Phase {
		case corev1.PodSucceeded, corev1.PodFailed:
			return false, fmt.Errorf("it has ended already: %s", live.Status.Phase)
		case corev1.PodRunning:
		default:
			return false, nil
		}
		b := behaviour{exitCodes: map[string]int32{live.Spec.Containers[0].Name: exitCode}, reason: "Error"}
		err = k.end(ctx, live, exitsBy(b), time.Now())
		if apierrors.IsConflict(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("pod %s cannot be finished: %w", pod, err)
	}
	return nil
}

func (k *Kubelet) isHeld(namespace string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held[namespace]
}

// startOf returns when the containers of a pod started; the zero time if they did not. What was started by a kubelet
// before this one is read from the status.
func (k *Kubelet) startOf(pod *corev1.Pod) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.lives[pod.UID]; l != nil {
		return l.started
	}
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return time.Time{}
}

// record notes an event once, however often its write is tried.
func (k *Kubelet) record(kind EventKind, pod *corev1.Pod, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.lives[pod.UID]
	switch {
	case l == nil && kind == Started:
		k.lives[pod.UID] = &life{started: now}
	case l != nil && kind == Ended && !l.ended:
		l.ended = true
	default:
		return
	}
	k.history = append(k.history, Event{Kind: kind, At: now, Pod: pod.DeepCopy()})
}
