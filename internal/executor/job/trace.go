// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
)

// EnvTraceparent is by which the work joins the trace of its chain, if there are traces. A container that sets it keeps its own.
const EnvTraceparent = "TRACEPARENT"

// build returns the Job of a run, which tells its containers of the trace.
func (e *Executor) build(r *batchv1alpha1.JobRun, me epoch.Epoch) *batchv1.Job {
	job := Build(r, me)
	if e.Traceparent == nil {
		return job
	}
	value := e.Traceparent(r)
	if value == "" {
		return job
	}
	pod := &job.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			join(&containers[i], corev1.EnvVar{Name: EnvTraceparent, Value: value})
		}
	}
	return job
}

func join(c *corev1.Container, v corev1.EnvVar) {
	if !slices.ContainsFunc(c.Env, func(own corev1.EnvVar) bool { return own.Name == v.Name }) {
		c.Env = append(c.Env, v)
	}
}
