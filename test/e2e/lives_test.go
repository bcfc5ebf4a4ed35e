// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// life is one container's process, by the clock of the container runtime.
type life struct {
	Run, Pod, Container string
	UID                 types.UID // of the pod
	Created             time.Time // nothing of it ran yet
	Started             time.Time
	Finished            time.Time // zero while it goes on
	ExitCode            *int
}

func (l life) String() string {
	const clock = "15:04:05.000"
	end := "goes on"
	if !l.Finished.IsZero() {
		end = "ended " + l.Finished.Format(clock)
	}
	if l.ExitCode != nil {
		end += fmt.Sprintf(" with code %d", *l.ExitCode)
	}
	return fmt.Sprintf("%s of run %s (pod %s): began %s, %s", l.Container, l.Run, l.Pod, l.Started.Format(clock), end)
}

// podLog remembers every pod of a namespace as it was last seen, those that are gone included.
type podLog struct {
	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
}

// followPods watches the pods of the namespace until the end of the test.
func followPods(w *world) *podLog {
	l := &podLog{pods: map[types.UID]*corev1.Pod{}}
	clients, err := kubernetes.NewForConfig(here.Config())
	w.Expect(err).NotTo(HaveOccurred())
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(w.ns))
	informer := factory.Core().V1().Pods().Informer()
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    l.saw,
		UpdateFunc: func(_, after any) { l.saw(after) },
		DeleteFunc: l.saw,
	})
	w.Expect(err).NotTo(HaveOccurred())
	factory.Start(w.ctx.Done())
	factory.WaitForCacheSync(w.ctx.Done())
	return l
}

func (l *podLog) saw(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if pod, ok := o.(*corev1.Pod); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pods[pod.UID] = pod
	}
}

// all returns the pods by UID.
func (l *podLog) all() map[types.UID]*corev1.Pod {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.pods)
}

// podsOf returns the pods of a run as they were last seen, by age.
func (w *world) podsOf(run string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, p := range w.pods.all() {
		if p.Labels[batchv1alpha1.LabelRun] == run {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// lives returns the containers of the namespace's pods in the order of their start. On a node of ours they come from the
// events of the container runtime, to the nanosecond. Elsewhere they are what the kubelet has reported of the runtime's
// clock, in whole seconds.
func (w *world) lives() []life {
	var all []life
	if node != nil {
		all = w.journal()
	} else {
		all = w.reported()
	}
	slices.SortStableFunc(all, func(a, b life) int { return a.Started.Compare(b.Started) })
	return all
}

func (w *world) journal() []life {
	var all []life
	journal := node.Follow()
	if err := journal.Err(); err != nil {
		w.t.Errorf("the journal of the container runtime has gaps: %v", err)
	}
	pods := w.pods.all()
	for _, c := range journal.Containers() {
		if c.PodNamespace != w.ns || c.Started.IsZero() {
			continue
		}
		l := life{Pod: c.PodName, Container: c.Name, UID: types.UID(c.PodUID), Created: c.Created, Started: c.Started, Finished: c.Finished, ExitCode: c.ExitCode}
		if pod := pods[l.UID]; pod != nil {
			l.Run = pod.Labels[batchv1alpha1.LabelRun]
		}
		all = append(all, l)
	}
	return all
}

func (w *world) reported() []life {
	var all []life
	for _, pod := range w.pods.all() {
		for _, s := range pod.Status.ContainerStatuses {
			l := life{Run: pod.Labels[batchv1alpha1.LabelRun], Pod: pod.Name, Container: s.Name, UID: pod.UID}
			switch {
			case s.State.Running != nil:
				l.Started = s.State.Running.StartedAt.Time
			case s.State.Terminated != nil && !s.State.Terminated.StartedAt.IsZero():
				code := int(s.State.Terminated.ExitCode)
				l.Started, l.Finished, l.ExitCode = s.State.Terminated.StartedAt.Time, s.State.Terminated.FinishedAt.Time, &code
			default:
				continue
			}
			l.Created = l.Started
			all = append(all, l)
		}
	}
	return all
}

// livesOf returns the containers of a run.
func (w *world) livesOf(run string) []life {
	return slices.DeleteFunc(w.lives(), func(l life) bool { return l.Run != run })
}

// working waits until the container of a run is at work and returns its pod as last seen.
func (w *world) working(run string) *corev1.Pod {
	w.t.Helper()
	w.Eventually(func() bool {
		pods := w.podsOf(run)
		return len(w.livesOf(run)) > 0 && len(pods) > 0 && pods[len(pods)-1].Status.Phase == corev1.PodRunning
	}).Should(BeTrue(), "the container of %s runs", run)
	pods := w.podsOf(run)
	return pods[len(pods)-1]
}

// life1 waits until the one container of a run has ended and returns it.
func (w *world) life1(run string) life {
	w.t.Helper()
	w.Eventually(func() []life { return w.livesOf(run) }).Should(ConsistOf(HaveField("Finished.IsZero()", false)), "the container of %s", run)
	return w.livesOf(run)[0]
}

// oneAfterTheOther checks that each of the runs had one container, which was made after that of the run before had ended.
func (w *world) oneAfterTheOther(runs ...string) {
	w.t.Helper()
	for i := range runs[1:] {
		before, after := w.life1(runs[i]), w.life1(runs[i+1])
		w.noOverlap(before, after)
	}
}

// noOverlap checks that a container was made after another had ended.
func (w *world) noOverlap(before, after life) {
	w.t.Helper()
	w.Expect(before.Finished).NotTo(BeZero(), "%s", before)
	w.Expect(after.Created).To(BeTemporally(">=", before.Finished), "%s\nmust come before\n%s", before, after)
}

// mostAtOnce returns how many of the containers were at work at the same time.
func mostAtOnce(lives []life) (most int) {
	type edge struct {
		at   time.Time
		step int
	}
	var edges []edge
	for _, l := range lives {
		edges = append(edges, edge{l.Created, 1})
		if !l.Finished.IsZero() {
			edges = append(edges, edge{l.Finished, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.step, b.step)) })
	now := 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}
