// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podStatus tells the API server of the container in which the processes of a post run, as a kubelet does: sooner or later. A
// nil one tells nothing.
type podStatus struct {
	client client.Client
	key    client.ObjectKey
	wake   chan struct{}

	mu     sync.Mutex
	state  corev1.ContainerState
	last   corev1.ContainerState
	starts int32
}

// newPod makes the pod of a post. The fake kubelet leaves it alone, since it is on another node.
func newPod(ctx context.Context, w *world, name string, done *sync.WaitGroup) (status *podStatus, env []string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	pod.Spec = corev1.PodSpec{NodeName: "managers", Containers: []corev1.Container{{Name: "manager", Image: "example.org/manager"}}}
	w.create(pod)
	status = &podStatus{client: w.client, key: client.ObjectKeyFromObject(pod), wake: make(chan struct{}, 1)}
	done.Go(func() { status.tell(ctx) })
	return status, []string{"POD_NAME=" + name, "POD_NAMESPACE=" + w.ns, "POD_UID=" + string(pod.UID)}
}

// runs notes that the container was started.
func (s *podStatus) runs(at time.Time) {
	s.note(func() {
		if s.state.Terminated != nil {
			s.last = s.state
		}
		s.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}}
		s.starts++
	})
}

// ended notes that the container has ended.
func (s *podStatus) ended(at time.Time) {
	s.note(func() {
		s.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.NewTime(at)}}
	})
}

func (s *podStatus) note(change func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	change()
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// tell writes what was noted last, until ctx ends.
func (s *podStatus) tell(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		for s.write(ctx) != nil && ctx.Err() == nil {
			wait(poll, ctx.Done())
		}
	}
}

func (s *podStatus) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	pod := &corev1.Pod{}
	if err := s.client.Get(ctx, s.key, pod); err != nil {
		return err
	}
	s.mu.Lock()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "manager", Image: "example.org/manager", State: s.state, LastTerminationState: s.last, RestartCount: s.starts - 1,
	}}
	s.mu.Unlock()
	return s.client.Status().Update(ctx, pod)
}
