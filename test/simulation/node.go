// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/invariant"
)

// deed is what one attempt of some work comes to.
type deed struct {
	takes time.Duration
	// code is the exit code of a pod, or the status of a response; 0 and 200 are success. -1: no answer ever.
	code int
	// dies is how long it takes to end when asked to.
	dies time.Duration
}

// deedOf draws what becomes of an attempt, from the name of its run and the number of the attempt.
func (s *sim) deedOf(run string, attempt int32, good int, bad ...int) deed {
	c := s.chance.of("deed of " + run).nth(int(attempt))
	d := deed{takes: c.of("takes").between(50*time.Millisecond, 60*time.Second), code: good, dies: c.of("dies").between(time.Millisecond, 20*time.Second)}
	if !c.of("good").hits(0.65) {
		d.code = pick(c.of("bad"), bad...)
	}
	if c.of("long").hits(0.05) {
		d.takes *= 3
	}
	if c.of("hangs").hits(0.05) { // the node does not answer for a while
		d.dies += 2 * time.Minute
	}
	return d
}

// act writes into the log of the work.
func (s *sim) act(a invariant.Act) {
	a.At = s.now()
	s.history.Acts = append(s.history.Acts, a)
	what := "ends"
	if a.Began {
		what = "begins"
	}
	s.trace("work %s of %s/%s attempt %d %s", a.Work, a.Namespace, a.Name, a.Attempt, what)
}

func (s *sim) lookAtPod(key client.ObjectKey, in time.Duration) {
	name := "node " + key.String()
	if s.jobs[name] {
		return
	}
	s.jobs[name] = true
	s.after(in, name, func() {
		s.jobs[name] = false
		s.syncPod(key)
		s.changed()
	})
}

// syncPod does what the scheduler and the kubelet do with a pod of a run.
func (s *sim) syncPod(key client.ObjectKey) {
	ctx := context.Background()
	pod := &corev1.Pod{}
	if s.direct.Get(ctx, key, pod) != nil || pod.Labels[batchv1alpha1.LabelRunUID] == "" {
		return
	}
	name, attempt := pod.Labels[batchv1alpha1.LabelRun], attemptOf(pod)
	d := s.deedOf(name, attempt, 0, 1, 2, 42)
	c := s.chance.of("node " + name).nth(int(attempt))
	asked := pod.DeletionTimestamp != nil
	switch {
	case pod.Spec.NodeName == "" && asked && !ended(pod):
		// No node ever took it, so the pod garbage collector fails it.
		s.once(pod, "collected", c.of("collected").between(time.Second, 20*time.Second), func() { s.endPod(pod, 137) })
	case pod.Spec.NodeName == "":
	case ended(pod):
		if asked {
			s.dropPod(pod)
		}
	case pod.Status.Phase != corev1.PodRunning:
		s.once(pod, "runs", c.of("pull").between(time.Millisecond, 3*time.Second), func() { s.startPod(pod) })
	case asked:
		s.once(pod, "killed", d.dies, func() { s.endPod(pod, 137) })
	default:
		s.once(pod, "ends", d.takes, func() { s.endPod(pod, int32(d.code)) })
	}
}

// once has something happen to a pod, as it is then, unless that is on the agenda or done already.
func (s *sim) once(pod *corev1.Pod, what string, in time.Duration, do func()) {
	name := "node " + what + " " + string(pod.UID)
	if s.jobs[name] {
		return
	}
	s.jobs[name] = true
	key, uid := client.ObjectKeyFromObject(pod), pod.UID
	s.after(in, name, func() {
		*pod = corev1.Pod{}
		if s.direct.Get(context.Background(), key, pod) != nil || pod.UID != uid || ended(pod) {
			return
		}
		do()
		s.changed()
	})
}

func (s *sim) startPod(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		s.endPod(pod, 137)
		return
	}
	s.act(actOf(pod, true))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &metav1.Time{Time: s.now()}
	s.must(s.direct.Status().Update(context.Background(), pod))
}

func (s *sim) endPod(pod *corev1.Pod, code int32) {
	if pod.Status.Phase == corev1.PodRunning {
		s.act(actOf(pod, false))
	}
	pod.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	at := metav1.NewTime(s.now())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, StartedAt: at, FinishedAt: at}},
	}}
	s.must(s.direct.Status().Update(context.Background(), pod))
}

// dropPod tells the server that nothing of a pod is left on its node.
func (s *sim) dropPod(pod *corev1.Pod) {
	if *pod.DeletionGracePeriodSeconds > 0 {
		s.must(s.direct.Delete(context.Background(), pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID}))
	}
}

func actOf(pod *corev1.Pod, began bool) invariant.Act {
	return invariant.Act{
		Began: began, Work: invariant.Pod, Execution: string(pod.UID), Namespace: pod.Namespace, Name: pod.Labels[batchv1alpha1.LabelRun],
		UID: types.UID(pod.Labels[batchv1alpha1.LabelRunUID]), Key: environment(pod, jobwork.EnvIdempotencyKey), Attempt: attemptOf(pod),
	}
}

func attemptOf(pod *corev1.Pod) int32 {
	n, err := strconv.ParseInt(environment(pod, jobwork.EnvAttempt), 10, 32)
	if err != nil {
		return -1
	}
	return int32(n)
}

func environment(pod *corev1.Pod, name string) string {
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}
