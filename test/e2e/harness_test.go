// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

const (
	// patience bounds every wait of these tests. It is long because the machine may be busy; a wait ends as soon as it can.
	patience = 2 * time.Minute
	// pause is how often is looked.
	pause = 200 * time.Millisecond
)

// world is one test's namespace and what is in it.
type world struct {
	*WithT
	t   *testing.T
	ctx context.Context
	client.Client
	ns   string
	pods *podLog
}

// newWorld makes a namespace that the suite's manager serves and that goes with the test. It enforces the restricted Pod
// Security Standard, and its default queue has one slot.
func newWorld(t *testing.T) *world {
	t.Helper()
	if err := ensureManager(); err != nil {
		t.Fatalf("Reprise cannot be installed: %v", err)
	}
	w := newBareWorld(t)
	w.queue("default", 1)
	return w
}

// newBareWorld makes a namespace without a manager, and without a queue, for tests that run managers of their own (see apart).
func newBareWorld(t *testing.T) *world {
	t.Helper()
	if err := ensureCRDs(); err != nil {
		t.Fatalf("the definitions cannot be installed: %v", err)
	}
	return newEmptyWorld(t)
}

// newEmptyWorld makes a namespace on a cluster that may not know Reprise, for tests that install it.
func newEmptyWorld(t *testing.T) *world {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	g.SetDefaultEventuallyPollingInterval(pause)
	c, err := client.New(here.Config(), client.Options{Scheme: operator.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	g.Expect(c.Create(ctx, ns)).To(Succeed())
	w := &world{WithT: g, t: t, ctx: ctx, Client: c, ns: ns.Name}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.story())
		}
		_ = c.Delete(context.Background(), ns)
	})
	w.pods = followPods(w)
	w.Eventually(func() error { // pods are refused before it exists, and a Job tries again late
		return w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "default"}, &corev1.ServiceAccount{})
	}).Should(Succeed())
	return w
}

// create creates objects in order.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.Expect(w.Create(w.ctx, o)).To(Succeed(), "creating %T %s", o, o.GetName())
	}
}

// patch changes an object that was read.
func (w *world) patch(o client.Object, change func()) {
	w.t.Helper()
	before := o.DeepCopyObject().(client.Object)
	change()
	w.Expect(w.Patch(w.ctx, o, client.MergeFrom(before))).To(Succeed())
}

// queue creates a JobQueue with a limit, without the throttle that follows the start of a manager.
func (w *world) queue(name string, limit int32, change ...func(*batchv1alpha1.JobQueue)) *batchv1alpha1.JobQueue {
	w.t.Helper()
	q := &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	q.Spec.Concurrency = &batchv1alpha1.QueueConcurrency{Limit: &limit}
	q.Spec.Startup = &batchv1alpha1.QueueStartup{WindowSeconds: new(int32(0))}
	for _, c := range change {
		c(q)
	}
	w.create(q)
	return q
}

// get reads a run.
func (w *world) get(name string) *batchv1alpha1.JobRun {
	w.t.Helper()
	r := &batchv1alpha1.JobRun{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, r)).To(Succeed())
	return r
}

// phase reads the phase of a run, for Eventually.
func (w *world) phase(name string) func() string {
	return func() string {
		r := &batchv1alpha1.JobRun{}
		if err := w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, r); err != nil {
			return err.Error()
		}
		return string(r.Status.Phase)
	}
}

// eventually waits until a run is in the phase and returns it. It gives up when the run has ended otherwise.
func (w *world) eventually(name string, phase batchv1alpha1.JobRunPhase) *batchv1alpha1.JobRun {
	w.t.Helper()
	read := w.phase(name)
	w.Eventually(func() (string, error) {
		now := read()
		if now != string(phase) && batchv1alpha1.JobRunPhase(now).Terminal() {
			return now, StopTrying("it has ended as " + now)
		}
		return now, nil
	}).Should(Equal(string(phase)), "the phase of %s", name)
	return w.get(name)
}

// settled waits until the root of a chain tells of its end by the condition.
func (w *world) settled(name, condition string) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.Eventually(func() bool { return meta.IsStatusConditionTrue(w.get(name).Status.Conditions, condition) }).
		Should(BeTrue(), "condition %s of %s", condition, name)
	return w.get(name)
}

// slotFree waits until a run has given its slot back.
func (w *world) slotFree(name string) {
	w.t.Helper()
	w.Eventually(func() batchv1alpha1.SlotState { return w.get(name).Status.Slot }).Should(Equal(batchv1alpha1.SlotFree))
}

// cancelRun asks a run to end.
func (w *world) cancelRun(name string) {
	w.t.Helper()
	r := w.get(name)
	w.patch(r, func() { r.Spec.Cancel = true })
}

// kubectl runs kubectl in the namespace and returns what it prints.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := here.Kubectl(w.ctx, append([]string{"-n", w.ns}, args...)...).CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// events returns what events of the reason say about a run, for Eventually.
func (w *world) events(run, reason string) func() []string {
	return func() []string {
		events := &corev1.EventList{}
		if err := w.List(w.ctx, events, client.InNamespace(w.ns)); err != nil {
			return []string{err.Error()}
		}
		var said []string
		for _, e := range events.Items {
			if e.InvolvedObject.Name == run && e.Reason == reason {
				said = append(said, e.Message)
			}
		}
		return said
	}
}

// managers tells how often the containers of the suite's managers have ended: a run that was at work then may have failed by it.
func (w *world) managers() string {
	pods := &corev1.PodList{}
	if err := w.List(context.Background(), pods, client.InNamespace(managerNamespace)); err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			fmt.Fprintf(&b, "manager %s: ready %t, restarted %d times\n", p.Name, s.Ready, s.RestartCount)
		}
	}
	return b.String()
}

// story tells what is in the namespace, for a failed test.
func (w *world) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace %s\n%s", w.ns, w.managers())
	runs := &batchv1alpha1.JobRunList{}
	_ = w.List(context.Background(), runs, client.InNamespace(w.ns)) // the definitions may be gone
	for _, r := range runs.Items {
		fmt.Fprintf(&b, "run %s: %s %s %s slot=%s\n", r.Name, r.Status.Phase, r.Status.Reason, r.Status.Message, r.Status.Slot)
	}
	queues := &batchv1alpha1.JobQueueList{}
	_ = w.List(context.Background(), queues, client.InNamespace(w.ns))
	for _, q := range queues.Items {
		fmt.Fprintf(&b, "queue %s: %+v\n", q.Name, q.Status)
	}
	for _, l := range w.lives() {
		fmt.Fprintf(&b, "container %s\n", l)
	}
	events := &corev1.EventList{}
	if err := w.List(context.Background(), events, client.InNamespace(w.ns)); err != nil {
		fmt.Fprintln(&b, err)
	}
	for _, e := range events.Items {
		fmt.Fprintf(&b, "event %s %s/%s %s: %s\n", e.LastTimestamp.Format("15:04:05"), e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
	}
	return b.String()
}
