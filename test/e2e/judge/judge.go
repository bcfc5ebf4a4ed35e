// SPDX-License-Identifier: Apache-2.0

// Package judge tells from what others have written down, the container runtime and the leader lease, whether managers followed
// one another and containers kept apart as promised. It holds no client and no clock.
package judge

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/realnode"
)

// Acts joins what the runtime wrote down with the pods that a watch has seen, by UID: the runtime knows when, the pod knows of
// which run. Work begins when its container is made, which is just before its process starts. Containers of pods that are no run's
// are left out, and so are those whose process never started.
func Acts(containers []realnode.Container, pods map[string]*corev1.Pod) ([]invariant.Act, error) {
	var acts []invariant.Act
	for _, c := range containers {
		pod := pods[c.PodUID]
		if pod == nil {
			return nil, fmt.Errorf("container %s is of pod %s/%s with UID %s, which no watch has seen", c.ID, c.PodNamespace, c.PodName, c.PodUID)
		}
		began, ofRun := invariant.PodAct(c.Created, true, pod)
		if !ofRun || c.Started.IsZero() {
			continue
		}
		began.Execution = c.ID
		acts = append(acts, began)
		if !c.Finished.IsZero() {
			acts = append(acts, began.End(c.Finished, false))
		}
	}
	slices.SortStableFunc(acts, func(a, b invariant.Act) int { return a.At.Compare(b.At) })
	return acts, nil
}
