// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// step is the next thing to do for a pod.
type step string

const (
	stepNone step = ""
	// stepBind assigns the pod to the node.
	stepBind step = "bind"
	// stepWait shows containers that wait and never run.
	stepWait step = "wait"
	// stepRun starts the containers.
	stepRun step = "run"
	// stepEnd ends the containers with what they were asked to exit with.
	stepEnd step = "end"
	// stepKill ends the containers as SIGTERM does.
	stepKill step = "kill"
	// stepRemove removes a terminating pod whose containers have ended.
	stepRemove step = "remove"
)

// nextStep decides what to do for a pod, or how long to wait before it is asked again (zero: until the pod changes).
// started is when the containers started; held says that terminating pods are not to end.
func nextStep(pod *corev1.Pod, b behaviour, node string, held bool, started, now time.Time) (step, time.Duration) {
	switch {
	case pod.Spec.NodeName != "" && pod.Spec.NodeName != node:
		return stepNone, 0
	case pod.DeletionTimestamp != nil:
		return departure(pod, held), 0
	case pod.Status.Phase == corev1.PodRunning:
		return end(b, started, now)
	case ended(pod):
		return stepNone, 0
	default:
		return arrival(pod, b), 0
	}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// arrival brings a pod to where it runs, unless it is kept from it.
func arrival(pod *corev1.Pod, b behaviour) step {
	switch {
	case pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) > 0:
		return stepNone
	case pod.Spec.NodeName == "":
		return stepBind
	case b.waiting == "":
		return stepRun
	case len(pod.Status.ContainerStatuses) == 0:
		return stepWait
	default:
		return stepNone
	}
}

// departure ends a terminating pod and removes it. One that was never bound goes even if held: there is no node that could
// keep it, and the pod garbage collector removes it. With a grace period of 0 on record the API server itself removes an
// ended pod, once it has no finalizer.
func departure(pod *corev1.Pod, held bool) step {
	switch {
	case ended(pod) && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0:
		return stepNone
	case ended(pod):
		return stepRemove
	case held && pod.Spec.NodeName != "":
		return stepNone
	default:
		return stepKill
	}
}

func end(b behaviour, started, now time.Time) (step, time.Duration) {
	if b.endless {
		return stepNone, 0
	}
	if left := started.Add(b.runsFor).Sub(now); left > 0 {
		return stepNone, left
	}
	return stepEnd, 0
}
