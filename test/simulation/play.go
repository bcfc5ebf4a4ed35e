// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/invariant"
	"reprise.dev/reprise/internal/memoryapi"
	"reprise.dev/reprise/internal/operator"
)

// scheme is made once: it does not change.
var scheme = sync.OnceValue(operator.Scheme)

// outcome is what came of a history.
type outcome struct {
	report invariant.Report
	lines  []string
	fired  []string
	flaws  []string
	stats  stats
}

// play plays a history from its beginning to its end. It is called in a bubble of its own.
func play(seed uint64, p plan, verbose bool) outcome {
	s := newSim(seed, p, verbose)
	s.prepare()
	s.run(s.begin.Add(p.Calm))
	s.conclude()
	for _, p := range s.processes {
		p.end("the history is over")
	}
	s.stats.Acts = len(s.history.Acts)
	s.history.Versions = append(s.history.Versions, s.noted.soFar()...)
	return outcome{report: invariant.Check(s.history), lines: s.lines, fired: s.fired, flaws: s.flaws, stats: s.stats}
}

func newSim(seed uint64, p plan, verbose bool) *sim {
	server, err := memoryapi.New(memoryapi.Options{Scheme: scheme(), Now: time.Now})
	if err != nil {
		panic(err)
	}
	return &sim{
		plan: p, chance: chance(seed), scheme: scheme(), server: server, direct: server.Client(nil), network: newNetwork(), begin: time.Now(),
		events: map[schema.GroupVersionKind][]memoryapi.Event{}, jobs: map[string]bool{}, calls: map[string]int{}, verbose: verbose,
	}
}

// prepare makes what there is at the beginning.
func (s *sim) prepare() {
	for _, name := range []string{namespace, systemNamespace} {
		if err := s.direct.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			panic(err)
		}
	}
	s.queues()
	for n := range s.replicas() {
		s.after(time.Duration(n)*time.Millisecond, fmt.Sprintf("start %d", n), s.launch)
	}
	for _, w := range s.plan.Wishes {
		s.after(w.At, fmt.Sprintf("wish %d", w.N), func() { s.grant(w) })
	}
	for n, x := range s.plan.Pauses {
		s.after(x.At, fmt.Sprintf("pause %d", n), func() {
			if p := s.leader(); p != nil {
				s.pause(p)
				s.after(x.For, "wake "+p.id, func() { s.wake(p) })
			}
		})
	}
}

// leader is the process that has become the leader last, unless it stands still; nil if there is none.
func (s *sim) leader() *process {
	var leader *process
	for _, p := range s.alive() {
		select {
		case <-p.manager.elected:
			if !p.paused {
				leader = p
			}
		default:
		}
	}
	return leader
}

// conclude lets everything come to its end, and looks whether a restart changes anything then.
func (s *sim) conclude() {
	s.trace("faults are over")
	s.calm.Store(true)
	for _, p := range s.alive() {
		if p.paused {
			s.wake(p)
		}
	}
	s.goOn()
	for _, sj := range s.schedules() {
		sj.Spec.Suspend = true
		_ = s.direct.Update(context.Background(), &sj)
	}
	s.changed()
	settled := s.settle(time.Hour)
	s.history.Settled = settled
	if settled {
		s.restart()
	}
	s.history.Complete = true
	s.history.LeaseDuration = leaseDuration
	s.history.Until = s.now()
	for _, p := range s.processes {
		m := invariant.Manager{ID: p.id, Began: p.began, Paused: p.pauses, Alone: !s.plan.Elected}
		if p.ended() {
			m.Ended = p.endAt
		}
		s.history.Managers = append(s.history.Managers, m)
	}
}

// patience is how long nothing must have changed for a history to be settled: longer than anything that is under way takes, be
// it a call and its lease, a back-off or a start-up window, and than what has ended is kept (ten minutes).
const patience = 11 * time.Minute

// settle runs until nothing has changed for long enough, at most for so long.
func (s *sim) settle(most time.Duration) bool {
	end := s.now().Add(most)
	for s.now().Before(end) && s.stats.Steps < maxSteps {
		version := s.versions()
		s.run(s.now().Add(patience))
		if s.versions() == version {
			return true
		}
	}
	return false
}

// versions is how many versions there have been of our kinds.
func (s *sim) versions() int { return len(s.history.Versions) }

// restart kills what leads and notes what its successor changes.
func (s *sim) restart() {
	s.trace("one more restart")
	before := s.versions()
	for _, p := range s.alive() {
		s.kill(p, "the last restart")
	}
	s.run(s.now().Add(patience))
	s.history.RestartChanged = []string{}
	for _, v := range s.history.Versions[before:] {
		kind := s.kindOf(v.Object)
		if kind != "QueueLedger" && kind != "Pod" && kind != "Job" {
			s.history.RestartChanged = append(s.history.RestartChanged, fmt.Sprintf("%s %s %s", v.Type, kind, v.Object.GetName()))
		}
	}
}

func (s *sim) schedules() []batchv1alpha1.ScheduledJob {
	list := &batchv1alpha1.ScheduledJobList{}
	_ = s.direct.List(context.Background(), list)
	return list.Items
}

// managerPod makes the pod that a process runs in.
func (s *sim) managerPod(p *process) *batchv1alpha1.PodIdentity {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "manager-" + p.id},
		Spec:       corev1.PodSpec{NodeName: "node", RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "manager", Image: "example.com/manager"}}},
	}
	if err := s.direct.Create(context.Background(), pod); err != nil {
		panic(err)
	}
	s.changed()
	return &batchv1alpha1.PodIdentity{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, StartedAt: metav1.NewTime(s.now())}
}

// buryPod shows that a process has ended, some time after.
func (s *sim) buryPod(p *process) {
	if !s.plan.InPods {
		return
	}
	s.after(s.chance.of(p.id+" buried").between(100*time.Millisecond, time.Minute), "bury "+p.id, func() {
		pod := &corev1.Pod{}
		if s.direct.Get(context.Background(), client.ObjectKey{Namespace: systemNamespace, Name: "manager-" + p.id}, pod) != nil {
			return
		}
		pod.Status.Phase = corev1.PodFailed
		_ = s.direct.Status().Update(context.Background(), pod)
		s.changed()
	})
}
