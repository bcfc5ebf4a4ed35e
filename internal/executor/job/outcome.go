// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// outcome tells how a finished Job ended, by the condition that ended it and what its pods left behind.
func outcome(r *batchv1alpha1.JobRun, job *batchv1.Job, end *batchv1.JobCondition, pods []corev1.Pod) *executor.Outcome {
	switch {
	case end.Type == batchv1.JobComplete:
		return &executor.Outcome{
			Phase: batchv1alpha1.JobRunCompleted, Reason: batchv1alpha1.ReasonSucceeded,
			Message: fmt.Sprintf("Job %s completed", job.Name), Result: success(pods),
		}
	case end.Reason == batchv1.JobReasonDeadlineExceeded:
		return &executor.Outcome{
			Phase: batchv1alpha1.JobRunFailed, Reason: batchv1alpha1.ReasonTimeout,
			Message: fmt.Sprintf("Job %s did not end within %d s", job.Name, ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0)),
		}
	default:
		return failure(r, job, end, failuresOf(pods))
	}
}

// success returns exit code 0 where a container can be seen that exited with it.
func success(pods []corev1.Pod) *batchv1alpha1.WorkResult {
	for _, pod := range pods {
		for _, s := range pod.Status.ContainerStatuses {
			if t := s.State.Terminated; pod.Status.Phase == corev1.PodSucceeded && t != nil && t.ExitCode == 0 {
				return &batchv1alpha1.WorkResult{ExitCode: ptr.To[int32](0)}
			}
		}
	}
	return nil
}

// failed is a pod that failed, with the containers that made it fail, in the order in which they ended.
type failed struct {
	pod        *corev1.Pod
	containers []exit
}

// exit is a container that ended with an error.
type exit struct {
	name  string
	state *corev1.ContainerStateTerminated
}

// failure tells of a failed Job: what failed first decides the message and the exit code, and all together decide whether
// there was nothing to do.
func failure(r *batchv1alpha1.JobRun, job *batchv1.Job, end *batchv1.JobCondition, failures []failed) *executor.Outcome {
	o := &executor.Outcome{Phase: batchv1alpha1.JobRunFailed, Reason: batchv1alpha1.ReasonWorkFailed}
	if len(failures) == 0 {
		o.Message = fmt.Sprintf("Job %s failed: %s; its pods are gone", job.Name, joined(end.Reason, end.Message))
		return o
	}
	deciding := failures[0]
	if own := nothingToDo(workOf(r), job, failures); own != nil {
		o.Phase, o.Reason = batchv1alpha1.JobRunSkipped, batchv1alpha1.ReasonNothingToDo
		deciding = *own
	}
	o.Message = fmt.Sprintf("pod %s: %s", deciding.pod.Name, deciding.why())
	if n := len(failures) - 1; n > 0 {
		o.Message += fmt.Sprintf(" (%d more failed)", n)
	}
	if len(deciding.containers) > 0 {
		o.Result = &batchv1alpha1.WorkResult{ExitCode: &deciding.containers[0].state.ExitCode}
	}
	return o
}

// nothingToDo returns the first pod that said so if every failure that the Job counted is a container's own word, given by
// an exit code, that there was nothing to do. A failed pod that nobody can see any more, or one that was ended from
// outside, gives no such word: work cut short must not pass for work that was not needed.
func nothingToDo(w *batchv1alpha1.JobWork, job *batchv1.Job, failures []failed) *failed {
	if w == nil {
		return nil
	}
	var said []*failed
	for i := range failures {
		f := &failures[i]
		if !f.own() {
			continue // if the Job counted it, the comparison below tells
		}
		if slices.ContainsFunc(f.containers, func(e exit) bool { return !slices.Contains(w.SkipExitCodes, e.state.ExitCode) }) {
			return nil
		}
		said = append(said, f)
	}
	if len(said) == 0 || int(job.Status.Failed) > len(said) {
		return nil
	}
	return said[0]
}

// own reports whether the containers of the pod ended by themselves: nobody deleted or evicted it, and no runtime or
// kernel made up the exit codes.
func (f failed) own() bool {
	if f.pod.DeletionTimestamp != nil || f.pod.Status.Reason != "" || disrupted(f.pod) || len(f.containers) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.containers, func(e exit) bool { return e.state.Reason != "" && e.state.Reason != "Error" })
}

func disrupted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// why says what made the pod fail.
func (f failed) why() string {
	switch {
	case f.pod.Status.Reason != "":
		return joined(f.pod.Status.Reason, f.pod.Status.Message)
	case len(f.containers) == 0:
		return "it failed, and no container says why"
	}
	c := f.containers[0]
	s := fmt.Sprintf("container %s exited with code %d", c.name, c.state.ExitCode)
	if reason := c.state.Reason; reason != "" && reason != "Error" {
		s += " (" + reason + ")"
	}
	if f.pod.DeletionTimestamp != nil {
		s += " when the pod was deleted"
	}
	return s
}

// failuresOf returns the failed pods in the order in which they failed; those whose time is unknown come last.
func failuresOf(pods []corev1.Pod) []failed {
	var fs []failed
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodFailed {
			fs = append(fs, failed{pod: &pods[i], containers: exits(&pods[i])})
		}
	}
	slices.SortStableFunc(fs, func(a, b failed) int {
		if len(a.containers) == 0 || len(b.containers) == 0 {
			return len(b.containers) - len(a.containers)
		}
		return a.containers[0].state.FinishedAt.Compare(b.containers[0].state.FinishedAt.Time)
	})
	return fs
}

// exits returns the containers of a pod that ended with an error, but for sidecars, which decide nothing.
func exits(pod *corev1.Pod) []exit {
	var es []exit
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range statuses {
			if t := s.State.Terminated; t != nil && t.ExitCode != 0 && !sidecar(pod, s.Name) {
				es = append(es, exit{name: s.Name, state: t})
			}
		}
	}
	slices.SortStableFunc(es, func(a, b exit) int { return a.state.FinishedAt.Compare(b.state.FinishedAt.Time) })
	return es
}

func sidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}
