// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// listed is how many pods a text names.
const listed = 5

// describe says what is alive of a Job that goes on.
func describe(job *batchv1.Job, live []*corev1.Pod) string {
	switch {
	case len(live) > 0:
		return list(live)
	case ptr.Deref(job.Spec.Suspend, false):
		return fmt.Sprintf("Job %s is suspended, though not by Reprise", job.Name)
	default:
		return fmt.Sprintf("Job %s has no live pod yet", job.Name)
	}
}

func list(pods []*corev1.Pod) string {
	var b strings.Builder
	for i, pod := range pods {
		if i == listed {
			fmt.Fprintf(&b, ", and %d more", len(pods)-listed)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Sentence(pod))
	}
	return b.String()
}

// Sentence says of one pod where it is and what it does or waits for.
func Sentence(pod *corev1.Pod) string {
	s := "pod " + pod.Name
	if pod.Spec.NodeName != "" {
		s += " on node " + pod.Spec.NodeName
	}
	if pod.DeletionTimestamp != nil {
		return s + " is terminating since " + terminatingSince(pod).UTC().Format(time.RFC3339)
	}
	s += " is " + string(pod.Status.Phase)
	if why := WaitsFor(pod); why != "" {
		s += ": " + why
	}
	return s
}

// terminatingSince: the deletion timestamp of a pod is the end of its grace period.
func terminatingSince(pod *corev1.Pod) time.Time {
	at := pod.DeletionTimestamp.Time
	if g := pod.DeletionGracePeriodSeconds; g != nil {
		at = at.Add(-time.Duration(*g) * time.Second)
	}
	return at
}

// due returns when the grace of the first pod that is to end is over; zero if none is to end.
func due(pods []*corev1.Pod) time.Time {
	var first time.Time
	for _, pod := range pods {
		if end := pod.DeletionTimestamp; end != nil && (first.IsZero() || end.Time.Before(first)) {
			first = end.Time
		}
	}
	return first
}

// lastEnd returns when the last container ended, zero if none has.
func lastEnd(pods []corev1.Pod) time.Time {
	var last time.Time
	for i := range pods {
		for _, s := range pods[i].Status.ContainerStatuses {
			if t := s.State.Terminated; t != nil && t.FinishedAt.After(last) {
				last = t.FinishedAt.Time
			}
		}
	}
	return last
}

// WaitsFor tells why a pod does not run: that it fits on no node, or what its first waiting container waits for.
func WaitsFor(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return joined(c.Reason, c.Message)
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if w := s.State.Waiting; w != nil && w.Reason != "" {
				return joined(w.Reason, w.Message)
			}
		}
	}
	return ""
}

func joined(reason, message string) string {
	if message == "" {
		return reason
	}
	return cut(reason + ": " + message)
}

// cut bounds a text that comes from elsewhere.
func cut(s string) string {
	const most = 512
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
