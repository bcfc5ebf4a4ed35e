// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/fakekubelet"
	"reprise.dev/reprise/internal/invariant"
)

const (
	// calm is how long nothing may change before a history counts as settled: longer than every back-off, lease and deadline in
	// it, those apart that an object in it tells of (see unsettled).
	calm = 4 * time.Second
	// notice is how late the server may write down that a connection broke.
	notice = time.Second
)

// history is one namespace with its managers, its load and what was seen of them.
type history struct {
	*load
	posts []*post

	managing     context.Context
	stopManagers context.CancelFunc
	stopRecorder context.CancelFunc
	managers     sync.WaitGroup
	recorders    sync.WaitGroup
}

// newHistory makes a namespace with its queues and schedules, and watches it.
func newHistory(t *testing.T, s *server, seed uint64) *history {
	t.Helper()
	h := &history{load: &load{world: newWorld(t), server: s, seed: seed}}
	recording, stopRecorder := context.WithCancel(context.Background())
	h.stopRecorder = stopRecorder
	h.managing, h.stopManagers = context.WithCancel(context.Background())
	t.Cleanup(h.end)
	h.seen = record(recording, h.client, h.ns, &h.recorders)
	h.queues()
	return h
}

// addPost makes a place for a manager, which is not started yet. That of managerA is in a pod.
func (h *history) addPost(name, logs string, alone bool) {
	p := &post{t: h.t, name: name, dir: logs, alone: alone}
	p.args = []string{
		"--kubeconfig=" + plane.Kubeconfig(), "--namespaces=" + h.ns, "--leader-elect-namespace=" + h.ns,
		"--leader-elect=" + strconv.FormatBool(!p.alone), "--leader-elect-lease-duration=" + leaseDuration.String(),
		"--leader-elect-renew-deadline=" + renewDeadline.String(), "--leader-elect-retry-period=" + retryPeriod.String(),
		"--health-probe-bind-address=0", "--metrics-bind-address=0", "--allow-outgoing-cidr=127.0.0.0/8", "--startup-window=0",
	}
	if name == managerA {
		p.pod, p.env = newPod(h.managing, h.world, name, &h.managers)
	}
	h.posts = append(h.posts, p)
}

// begin starts the managers.
func (h *history) begin() {
	h.t.Helper()
	for _, p := range h.posts {
		h.managers.Go(func() { p.keep(h.managing) })
	}
	h.eventually("a manager leads", h.led)
}

// end stops everything of the history that still runs.
func (h *history) end() {
	h.stopManagers()
	h.managers.Wait()
	h.stopRecorder()
	h.recorders.Wait()
}

// led reports whether a present process leads, and has looked at what it found.
func (h *history) led() bool {
	return slices.ContainsFunc(h.posts, func(p *post) bool {
		c, _ := p.present()
		return c != nil && c.leads()
	})
}

// unsettled names what is still to come.
func (h *history) unsettled() []string {
	var all []string
	add := func(settled bool, kind, name string, state ...any) {
		if !settled {
			all = append(all, fmt.Sprintf("%s %s: %v", kind, name, state))
		}
	}
	for _, r := range seen[*batchv1alpha1.JobRun](h.load.seen) {
		s := r.Status
		done := s.Phase.Terminal() && s.Slot != batchv1alpha1.SlotHeld && !owed(s.Announcements)
		waits := s.Phase == batchv1alpha1.JobRunQueued && meta.IsStatusConditionTrue(s.Conditions, batchv1alpha1.ConditionStalled) // for a person
		add(done || waits, "run", r.Name, s.Phase, s.Slot, s.Message, s.Announcements, s.Conditions)
	}
	for _, g := range seen[*batchv1alpha1.JobGroup](h.load.seen) {
		add(g.Status.Phase.Terminal() && !owed(g.Status.Announcements), "group", g.Name, g.Status.Phase, g.Status.Settled, g.Status.Message)
	}
	for _, dr := range seen[*batchv1alpha1.DirectReservation](h.load.seen) {
		add(dr.Status.Phase.Terminal(), "reservation", dr.Name, dr.Status.Phase, dr.Status.Message)
	}
	for _, sj := range seen[*batchv1alpha1.ScheduledJob](h.load.seen) {
		done := sj.Spec.RunAt == nil || sj.Status.FiredAt != nil || sj.Spec.Suspend
		add(done && len(sj.Status.Active) == 0, "schedule", sj.Name, sj.Status.Active)
	}
	for _, pod := range seen[*corev1.Pod](h.load.seen) {
		add(pod.Labels[batchv1alpha1.LabelRun] == "" || pod.Status.Phase != corev1.PodRunning, "pod", pod.Name, pod.Status.Phase)
	}
	return all
}

func owed(announcements []batchv1alpha1.Announcement) bool {
	return slices.ContainsFunc(announcements, func(a batchv1alpha1.Announcement) bool { return a.State == batchv1alpha1.AnnouncementOwed })
}

// settle waits until nothing changes any more, and reports what still does.
func (h *history) settle() []string {
	var left []string
	settled := within(patience, func() bool {
		if h.load.seen.quiet() < calm || !h.led() || h.server.busy() {
			return false
		}
		left = h.unsettled()
		return len(left) == 0
	})
	if !settled && len(left) == 0 {
		left = []string{"something goes on changing, calls are in flight, or nobody leads"}
	}
	return left
}

// restart kills all managers once more and returns what the next ones write although everything has settled.
func (h *history) restart() []string {
	before, _ := h.load.seen.versions()
	known := map[string]bool{}
	for _, v := range before {
		known[describe(v)] = true
	}
	for _, p := range h.posts {
		p.kill(0)
	}
	h.eventually("a manager leads after one more restart", h.led)
	within(patience, func() bool { return h.load.seen.quiet() >= calm })
	after, _ := h.load.seen.versions()
	changed := []string{}
	for _, v := range after {
		_, ledger := v.Object.(*batchv1alpha1.QueueLedger)
		if pod, ok := v.Object.(*corev1.Pod); ledger || ok && pod.Labels[batchv1alpha1.LabelRun] == "" {
			continue
		}
		if text := describe(v); !known[text] {
			changed = append(changed, text)
		}
	}
	return changed
}

func describe(v invariant.Version) string {
	return fmt.Sprintf("%s %T %s %s", v.Type, v.Object, v.Object.GetName(), v.Object.GetResourceVersion())
}

// history puts together what there is to be checked.
func (h *history) history(settled bool, changed []string) invariant.History {
	versions, complete := h.load.seen.versions()
	all := invariant.History{
		Versions: versions, Complete: complete, LeaseDuration: leaseDuration, Notice: notice,
		Announcements: h.server.heard(h.ns), Deleted: h.deleted, Settled: settled, RestartChanged: changed, Until: time.Now(),
	}
	all.Acts = slices.Concat(h.server.calls(h.ns), pods(h.ns), h.acts)
	slices.SortStableFunc(all.Acts, func(a, b invariant.Act) int { return a.At.Compare(b.At) })
	for _, p := range h.posts {
		all.Managers = append(all.Managers, p.managers()...)
	}
	return all
}

// pods returns what the kubelet wrote down of the pods of runs.
func pods(ns string) []invariant.Act {
	var acts []invariant.Act
	for _, e := range kubelet.History() {
		if e.Pod.Namespace != ns {
			continue
		}
		env := map[string]string{}
		for _, v := range e.Pod.Spec.Containers[0].Env {
			env[v.Name] = v.Value
		}
		attempt, err := strconv.ParseInt(env["REPRISE_ATTEMPT"], 10, 32)
		if err != nil {
			attempt = -1
		}
		_, name, _ := strings.Cut(env["REPRISE_RUN"], "/")
		acts = append(acts, invariant.Act{
			At: e.At, Began: e.Kind == fakekubelet.Started, Work: invariant.Pod, Execution: string(e.Pod.UID), Namespace: ns, Name: name,
			UID: uidOf(e.Pod), Key: env["REPRISE_IDEMPOTENCY_KEY"], Attempt: int32(attempt),
		})
	}
	return acts
}
