// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// setRunning writes into the status of a pod that its containers run.
func setRunning(pod *corev1.Pod, now time.Time) {
	at := metav1.NewTime(now)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &at
	setReady(pod, corev1.ConditionTrue, at)
	pod.Status.InitContainerStatuses = nil
	for _, c := range pod.Spec.InitContainers {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at}}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
		}
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state})
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
}

// setWaiting writes into the status of a pod that its containers wait for a reason.
func setWaiting(pod *corev1.Pod, reason string) {
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		})
	}
}

// setEnded writes into the status of a pod that its containers have exited with what exit tells by name.
func setEnded(pod *corev1.Pod, exit func(container string) (int32, string), started, now time.Time) {
	at := metav1.NewTime(now)
	setReady(pod, corev1.ConditionFalse, at)
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.InitContainerStatuses {
		if s := &pod.Status.InitContainerStatuses[i]; s.State.Running != nil {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: metav1.NewTime(started), FinishedAt: at}}
		}
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		code, reason := exit(c.Name)
		if code != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: reason, StartedAt: metav1.NewTime(started), FinishedAt: at,
			}},
		})
	}
}

func setReady(pod *corev1.Pod, status corev1.ConditionStatus, at metav1.Time) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status, c.LastTransitionTime = status, at
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status, LastTransitionTime: at})
}

// exitsBy returns what the containers of a behaviour exit with.
func exitsBy(b behaviour) func(string) (int32, string) {
	return func(container string) (int32, string) {
		if code := b.exitCodes[container]; code != 0 {
			return code, b.reason
		}
		return 0, "Completed"
	}
}

// exitsKilled is what SIGTERM makes of every container.
func exitsKilled(string) (int32, string) { return exitTerminated, "Error" }
