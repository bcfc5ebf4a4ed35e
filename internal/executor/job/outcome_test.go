// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestOutcome(t *testing.T) {
	const (
		completedRun = batchv1alpha1.JobRunCompleted
		failedRun    = batchv1alpha1.JobRunFailed
		skippedRun   = batchv1alpha1.JobRunSkipped
	)
	evicted := func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
	}
	disrupted := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	}
	initFailed := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{terminated("setup", 3, "Error", 1)}
	}
	sidecarKilled := func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{terminated("proxy", 137, "Error", 0)}
	}
	deadline := func(job *batchv1.Job) {
		ends(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)(job)
		job.Spec.ActiveDeadlineSeconds = ptr.To[int64](30)
	}

	for name, c := range map[string]struct {
		run      *batchv1alpha1.JobRun
		job      jobChange
		pods     []corev1.Pod
		phase    batchv1alpha1.JobRunPhase
		reason   string
		exitCode *int32
		message  string
	}{
		"success tells its exit code": {
			job: completed, pods: []corev1.Pod{aPod("p", exited("main", 0, "Completed", 1))},
			phase: completedRun, reason: batchv1alpha1.ReasonSucceeded, exitCode: ptr.To[int32](0), message: "completed"},
		"success whose pods are gone": {
			job: completed, phase: completedRun, reason: batchv1alpha1.ReasonSucceeded, message: "completed"},
		"a passed deadline is a timeout": {
			job: deadline, phase: failedRun, reason: batchv1alpha1.ReasonTimeout, message: "did not end within 30 s"},
		"a passed deadline is a timeout, whatever the exit codes say": {
			run: aRun(skips(3)), job: deadline, pods: []corev1.Pod{aPod("p", exited("main", 3, "Error", 1))},
			phase: failedRun, reason: batchv1alpha1.ReasonTimeout, message: "did not end within 30 s"},
		"a failure names pod, container and exit code": {
			job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 7, "Error", 1))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](7),
			message: "pod p: container main exited with code 7"},
		"a failure by lack of memory says so": {
			job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 137, "OOMKilled", 1))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](137),
			message: "pod p: container main exited with code 137 (OOMKilled)"},
		"an eviction says why": {
			job: failedPods(1), pods: []corev1.Pod{aPod("p", evicted)},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, message: "pod p: Evicted: The node was low on resource: memory."},
		"a failed pod without a word": {
			job: failedPods(1), pods: []corev1.Pod{aPod("p", phase(corev1.PodFailed))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, message: "pod p: it failed, and no container says why"},
		"a failure of which no pod is left gives the Job's own words": {
			job: failedPods(1), phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed,
			message: "failed: BackoffLimitExceeded; its pods are gone"},
		"a pod that was deleted at work": {
			job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 143, "Error", 1), terminating)},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](143), message: "when the pod was deleted"},
		"the container that failed first decides": {
			job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("late", 2, "Error", 9), exited("early", 1, "Error", 4))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](1), message: "container early"},
		"the pod that failed first decides": {
			job: failedPods(3), pods: []corev1.Pod{aPod("silent", evicted), aPod("late", exited("main", 2, "Error", 9)), aPod("early", exited("main", 1, "Error", 4))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](1), message: "pod early: container main exited with code 1 (2 more failed)"},
		"a sidecar decides nothing": {
			job: failedPods(1), pods: []corev1.Pod{aPod("p", sidecarKilled, exited("main", 1, "Error", 4))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](1), message: "container main"},

		"a skip exit code": {
			run: aRun(skips(3, 4)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 3, "Error", 1))},
			phase: skippedRun, reason: batchv1alpha1.ReasonNothingToDo, exitCode: ptr.To[int32](3), message: "container main exited with code 3"},
		"a skip exit code of an init container": {
			run: aRun(skips(3)), job: failedPods(1), pods: []corev1.Pod{aPod("p", initFailed)},
			phase: skippedRun, reason: batchv1alpha1.ReasonNothingToDo, exitCode: ptr.To[int32](3), message: "container setup"},
		"a skip exit code beside a container that succeeded": {
			run: aRun(skips(3)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 3, "Error", 1), exited("side", 0, "Completed", 1))},
			phase: skippedRun, reason: batchv1alpha1.ReasonNothingToDo, exitCode: ptr.To[int32](3)},
		"another exit code": {
			run: aRun(skips(3)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 1, "Error", 1))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](1)},
		"a skip exit code beside a container that failed": {
			run: aRun(skips(3)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 3, "Error", 1), exited("side", 1, "Error", 2))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](3)},
		"skip exit codes of all pods": {
			run: aRun(skips(3)), job: failedPods(2), pods: []corev1.Pod{aPod("p", exited("main", 3, "Error", 1)), aPod("q", exited("main", 3, "Error", 2))},
			phase: skippedRun, reason: batchv1alpha1.ReasonNothingToDo, exitCode: ptr.To[int32](3)},
		"a skip exit code of one pod and a failure of another": {
			run: aRun(skips(3)), job: failedPods(2), pods: []corev1.Pod{aPod("p", exited("main", 3, "Error", 1)), aPod("q", exited("main", 1, "Error", 2))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](3)},
		"a skip exit code of one pod while another was cut short, and is gone": {
			run: aRun(skips(3)), job: failedPods(2), pods: []corev1.Pod{aPod("p", exited("main", 3, "Error", 1))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](3)},
		"a skip exit code after a disruption that the pod failure policy ignored": {
			run: aRun(skips(3)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 143, "Error", 1), disrupted), aPod("q", exited("main", 3, "Error", 2))},
			phase: skippedRun, reason: batchv1alpha1.ReasonNothingToDo, exitCode: ptr.To[int32](3), message: "pod q: container main exited with code 3"},
		"an exit code that the kernel made up is no word of the work": {
			run: aRun(skips(137)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 137, "OOMKilled", 1))},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](137)},
		"an exit code of an evicted pod is no word of the work": {
			run: aRun(skips(137)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 137, "Error", 1), evicted)},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](137)},
		"an exit code of a deleted pod is no word of the work": {
			run: aRun(skips(143)), job: failedPods(1), pods: []corev1.Pod{aPod("p", exited("main", 143, "Error", 1), terminating)},
			phase: failedRun, reason: batchv1alpha1.ReasonWorkFailed, exitCode: ptr.To[int32](143)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := c.run
			if r == nil {
				r = aRun()
			}
			o := Judge(r, Sight{Job: aJob(r, c.job), Pods: c.pods}).Outcome
			g.Expect(o).NotTo(BeNil())
			g.Expect(o.Phase).To(Equal(c.phase))
			g.Expect(o.Reason).To(Equal(c.reason))
			g.Expect(o.Message).To(ContainSubstring(c.message))
			if c.exitCode == nil {
				g.Expect(o.Result).To(BeNil())
			} else {
				g.Expect(o.Result.ExitCode).To(HaveValue(Equal(*c.exitCode)))
			}
		})
	}
}
