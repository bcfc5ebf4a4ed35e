// SPDX-License-Identifier: Apache-2.0

package incarnation

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Ended tells whether the process of another incarnation is known to have ended: its calls have ended with it. False
// means that it cannot be seen, not that the process lives. A pod that is gone counts as ended; whoever deletes a pod by
// force gives up that knowledge. The last process that was found to have ended is not looked for again: what it left is many runs.
func (s *Self) Ended(ctx context.Context, other *batchv1alpha1.Incarnation) (bool, error) {
	switch {
	case s.options.Alone:
		return true, nil
	case other == nil || other.Pod == nil:
		return false, nil
	case s.options.Pod != nil && s.options.Pod.UID == other.Pod.UID:
		// A pod runs one container of a name at a time, and this process is it.
		return other.ID != s.options.ID, nil
	}
	if known := s.ended.Load(); known != nil && same(known, other.Pod) {
		return true, nil
	}
	gone, err := s.gone(ctx, other.Pod)
	if gone {
		s.ended.Store(other.Pod.DeepCopy())
	}
	return gone, err
}

// same reports whether two identities are one process.
func same(a, b *batchv1alpha1.PodIdentity) bool {
	return a.UID == b.UID && a.Namespace == b.Namespace && a.Name == b.Name && a.StartedAt.Equal(&b.StartedAt)
}

// gone looks for the process in its pod, live.
func (s *Self) gone(ctx context.Context, other *batchv1alpha1.PodIdentity) (bool, error) {
	pod := &corev1.Pod{}
	err := s.options.Reader.Get(ctx, client.ObjectKey{Namespace: other.Namespace, Name: other.Name}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("looking for manager pod %s/%s: %w", other.Namespace, other.Name, err)
	}
	return pod.UID != other.UID || terminated(pod, other), nil
}

// terminated reports whether no container of the pod can be the process that started at identity.StartedAt: each has been
// started again since, or has ended since. A status that speaks of an earlier instance says nothing: it may be behind.
func terminated(pod *corev1.Pod, identity *batchv1alpha1.PodIdentity) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return false
	}
	for _, c := range pod.Status.ContainerStatuses {
		restarted := c.State.Running != nil && c.State.Running.StartedAt.After(identity.StartedAt.Time)
		if !restarted && !endedSince(c.State.Terminated, identity) && !endedSince(c.LastTerminationState.Terminated, identity) {
			return false
		}
	}
	return true
}

// endedSince goes by whole seconds, as the API does: an instance that ended in the second in which the process started may be
// the one before it.
func endedSince(t *corev1.ContainerStateTerminated, identity *batchv1alpha1.PodIdentity) bool {
	return t != nil && t.FinishedAt.After(identity.StartedAt.Time)
}
