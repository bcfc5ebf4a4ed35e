// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNodesAreReadyOnceEachOfThemSaysSo(t *testing.T) {
	node := func(status corev1.ConditionStatus) corev1.Node {
		n := *kwokNode(0)
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: status}}
		return n
	}
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		want  bool
	}{
		"one says nothing yet": {[]corev1.Node{node(corev1.ConditionTrue), *kwokNode(1)}, false},
		"one says no":          {[]corev1.Node{node(corev1.ConditionFalse), node(corev1.ConditionTrue)}, false},
		"each says so":         {[]corev1.Node{node(corev1.ConditionTrue), node(corev1.ConditionTrue)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := everyNodeIsReady(tc.nodes); got != tc.want {
				t.Errorf("ready: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheNodesHaveRoomForAllPodsAtOnce(t *testing.T) {
	if room := kwokNode(0).Status.Allocatable.Pods().Value() * podsNodes; room < podsRuns {
		t.Errorf("%d nodes have room for %d pods, not for %d", podsNodes, room, podsRuns)
	}
}

func TestWatchesAreNoRequestsOfARun(t *testing.T) {
	if got := asked(map[string]float64{"POST jobs": 2, "PUT jobs/status": 3, "WATCH pods": 7}); got != 5 {
		t.Errorf("%v requests, want 5", got)
	}
}
