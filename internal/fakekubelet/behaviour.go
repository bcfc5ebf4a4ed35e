// SPDX-License-Identifier: Apache-2.0

package fakekubelet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotations of a pod that say what its containers do. A pod without any runs and succeeds at once.
const (
	// AnnotationRunsFor says how long a pod runs: RunsImmediately, RunsUntilFinished, or a duration such as "1500ms".
	AnnotationRunsFor = "fakekubelet/runs-for"
	// AnnotationExitCode is the exit code of the first container ("3"), or of containers by name ("main=3,side=0").
	// Containers that it does not name exit with 0.
	AnnotationExitCode = "fakekubelet/exit-code"
	// AnnotationReason is the reason that failed containers end with, such as "OOMKilled". Default: "Error".
	AnnotationReason = "fakekubelet/reason"
	// AnnotationWaiting keeps a pod from ever running: its containers wait for this reason, such as "ImagePullBackOff".
	AnnotationWaiting = "fakekubelet/waiting"
)

// Values of AnnotationRunsFor.
const (
	// RunsImmediately ends the pod as soon as it was seen running. The default.
	RunsImmediately = "immediately"
	// RunsUntilFinished runs the pod until Finish or its deletion ends it.
	RunsUntilFinished = "until-finished"
)

// exitTerminated is what a process reports that SIGTERM ended: 128 + 15.
const exitTerminated = 143

// behaviour is what the annotations of a pod ask for.
type behaviour struct {
	endless   bool
	runsFor   time.Duration
	exitCodes map[string]int32
	reason    string
	waiting   string
}

// behaviourOf reads the annotations of a pod. An error is the test's mistake.
func behaviourOf(pod *corev1.Pod) (behaviour, error) {
	b := behaviour{reason: pod.Annotations[AnnotationReason], waiting: pod.Annotations[AnnotationWaiting]}
	if b.reason == "" {
		b.reason = "Error"
	}
	var err error
	switch v := pod.Annotations[AnnotationRunsFor]; v {
	case "", RunsImmediately:
	case RunsUntilFinished:
		b.endless = true
	default:
		if b.runsFor, err = time.ParseDuration(v); err != nil {
			return b, fmt.Errorf("annotation %s: %w", AnnotationRunsFor, err)
		}
	}
	if b.exitCodes, err = parseExitCodes(pod); err != nil {
		return b, fmt.Errorf("annotation %s: %w", AnnotationExitCode, err)
	}
	return b, nil
}

func parseExitCodes(pod *corev1.Pod) (map[string]int32, error) {
	codes := map[string]int32{}
	value := pod.Annotations[AnnotationExitCode]
	if value == "" {
		return codes, nil
	}
	for item := range strings.SplitSeq(value, ",") {
		name, code, named := strings.Cut(item, "=")
		if !named {
			name, code = pod.Spec.Containers[0].Name, item
		}
		n, err := strconv.ParseInt(code, 10, 32)
		if err != nil {
			return nil, err
		}
		codes[name] = int32(n)
	}
	return codes, nil
}
