// SPDX-License-Identifier: Apache-2.0

package api

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/reservation"
	"reprise.dev/reprise/internal/run"
)

// A manager that crashed before the test began. What it left behind says so.
const (
	crashedID    = "manager-before"
	crashedEpoch = "1.1"

	wasRunning    = "Scheduler crash recovery: run was Running when previous instance manager-before stopped"
	wasCancelling = "Scheduler crash recovery: run was Cancelling when previous instance manager-before stopped"
)

// ranFor is how long ago the crashed manager had claimed what it left.
const ranFor = 90 * time.Second

func crashed() *batchv1alpha1.Incarnation {
	return &batchv1alpha1.Incarnation{ID: crashedID, Epoch: crashedEpoch}
}

func inQueue(name string) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Spec.Queue = name }
}

func ofType(name string) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Spec.Type = name }
}

func adopting(r *batchv1alpha1.JobRun) { r.Spec.RecoveryPolicy = batchv1alpha1.RecoveryAdopt }

func retries(n int32) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) { r.Spec.RetryPolicy.MaxRetries = &n }
}

// claimed creates a run and claims it as the crashed manager did; of the work nothing exists yet.
func (w *world) claimed(r *batchv1alpha1.JobRun, change ...func(*batchv1alpha1.JobRunStatus)) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.create(r)
	started := time.Now().Add(-ranFor)
	c := run.Claim{Incarnation: crashed()}
	if r.Spec.Work.Job != nil {
		c.JobName = jobwork.Name(r)
	} else {
		c.Deadline = ptr.To(started.Add(10 * time.Minute))
	}
	w.setStatus(r, func(s *batchv1alpha1.JobRunStatus) {
		c.Apply(r, started)
		for _, f := range change {
			f(s)
		}
	})
	return r
}

// createJob creates the Job of a claimed run as the crashed manager did.
func (w *world) createJob(r *batchv1alpha1.JobRun) {
	w.t.Helper()
	w.create(w.lateJob(r))
}

// lateJob is what the crashed manager creates, or has still on its way, for a run.
func (w *world) lateJob(r *batchv1alpha1.JobRun) *batchv1.Job {
	e, err := epoch.Parse(crashedEpoch)
	w.Expect(err).NotTo(HaveOccurred())
	return jobwork.Build(r, e)
}

// working leaves a run whose pod is at work.
func (w *world) working(r *batchv1alpha1.JobRun, change ...func(*batchv1alpha1.JobRunStatus)) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.claimed(r, change...)
	w.createJob(r)
	w.podOf(r)
	return r
}

// workEnded leaves a run whose Job has ended since, however it did.
func (w *world) workEnded(r *batchv1alpha1.JobRun, change ...func(*batchv1alpha1.JobRunStatus)) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.claimed(r, change...)
	w.createJob(r)
	w.Eventually(func() bool { return jobEnded(w.job(r)) }).Should(BeTrue(), "the Job of %s ends", r.Name)
	return r
}

func jobEnded(j *batchv1.Job) bool {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// job reads the Job of a run.
func (w *world) job(r *batchv1alpha1.JobRun) *batchv1.Job {
	w.t.Helper()
	j := &batchv1.Job{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: jobwork.Name(r)}, j)).To(Succeed())
	return j
}

// slotFree waits until the slot of a run is free.
func (w *world) slotFree(name string) *batchv1alpha1.JobRun {
	w.t.Helper()
	w.Eventually(func() batchv1alpha1.SlotState { return w.get(name).Status.Slot }).
		Should(Equal(batchv1alpha1.SlotFree), func() string { return w.story() })
	return w.get(name)
}

// orphans returns the log lines about resolved orphans, by the name of the run. More than one about the same run is an error.
func (w *world) orphans(m *manager) map[string]map[string]any {
	w.t.Helper()
	found := map[string]map[string]any{}
	for _, line := range m.log.with("orphan resolved") {
		name, _ := line["name"].(string)
		w.Expect(found).NotTo(HaveKey(name), "an orphan is resolved once")
		found[name] = line
	}
	return found
}

// summary waits for the one line that a manager writes once every orphan was evaluated.
func (w *world) summary(m *manager) map[string]any {
	w.t.Helper()
	w.Eventually(func() int { return len(m.log.with("scheduler_startup_cleanup")) }).Should(Equal(1))
	return m.log.with("scheduler_startup_cleanup")[0]
}

// counts are the numbers of a summary.
func counts(runningFailed, cancellingFailed, adopted, recorded int) OmegaMatcher {
	return And(
		HaveKeyWithValue("running_failed", BeNumerically("==", runningFailed)),
		HaveKeyWithValue("cancelling_failed", BeNumerically("==", cancellingFailed)),
		HaveKeyWithValue("adopted", BeNumerically("==", adopted)),
		HaveKeyWithValue("recorded", BeNumerically("==", recorded)),
		HaveKey("by_type"),
	)
}

// resources are the kinds that a namespace may hold and that can be listed, but for Events, which only report.
var resources = sync.OnceValues(func() ([]schema.GroupVersionResource, error) {
	d, err := discovery.NewDiscoveryClientForConfig(plane.Config())
	if err != nil {
		return nil, err
	}
	lists, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	listable := discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists)
	all, err := discovery.GroupVersionResources(listable)
	if err != nil {
		return nil, err
	}
	var kept []schema.GroupVersionResource
	for gvr := range all {
		if gvr.Resource != "events" {
			kept = append(kept, gvr)
		}
	}
	return kept, nil
})

// marker begins the names of what idempotent adds to the namespace itself.
const marker = "marker-"

// busyResources are those of them that change while anything happens.
func busyResources() []schema.GroupVersionResource {
	var kinds []schema.GroupVersionResource
	for _, name := range []string{"jobruns", "jobgroups", "jobqueues", "scheduledjobs", "directreservations", "queueledgers"} {
		kinds = append(kinds, batchv1alpha1.GroupVersion.WithResource(name))
	}
	return append(kinds, batchv1.SchemeGroupVersion.WithResource("jobs"), corev1.SchemeGroupVersion.WithResource("pods"))
}

// versions returns the version of every object of the namespace that is of these kinds, by resource and name.
func (w *world) versions(kinds []schema.GroupVersionResource) map[string]string {
	w.t.Helper()
	config := plane.Config()
	config.WarningHandler = rest.NoWarnings{} // some of the kinds are deprecated
	c, err := metadata.NewForConfig(config)
	w.Expect(err).NotTo(HaveOccurred())
	found := map[string]string{}
	for _, kind := range kinds {
		list, err := c.Resource(kind).Namespace(w.ns).List(w.ctx, metav1.ListOptions{})
		w.Expect(err).NotTo(HaveOccurred())
		for _, o := range list.Items {
			if !strings.HasPrefix(o.Name, marker) {
				found[kind.Resource+"/"+o.Name] = o.ResourceVersion
			}
		}
	}
	return found
}

// quiet is for how long nothing may change in a namespace that has settled: more than the second for which a manager holds
// back the counts of a queue.
const quiet = 1500 * time.Millisecond

// settle waits until nothing changes any more and the queues show it: a write that they hold back may come late on a busy
// machine.
func (w *world) settle() {
	w.t.Helper()
	var last map[string]string
	w.Eventually(func() bool {
		now := w.versions(busyResources())
		same := maps.Equal(now, last)
		last = now
		return same && w.countsShown()
	}).WithPolling(quiet).Should(BeTrue(), func() string { return "the namespace settles\n" + w.story() })
}

// countsShown reports whether no queue counts what is no more.
func (w *world) countsShown() bool {
	w.t.Helper()
	runs, reservations, queues := &batchv1alpha1.JobRunList{}, &batchv1alpha1.DirectReservationList{}, &batchv1alpha1.JobQueueList{}
	pods := &corev1.PodList{}
	for _, list := range []client.ObjectList{runs, reservations, queues, pods} {
		w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
	}
	waits, works, reserved := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range runs.Items {
		r := &runs.Items[i]
		waits[run.Queue(r)] = waits[run.Queue(r)] || r.Status.Phase == batchv1alpha1.JobRunQueued
		works[run.Queue(r)] = works[run.Queue(r)] || run.HoldsSlot(r)
	}
	for i := range pods.Items {
		queue := pods.Items[i].Labels[batchv1alpha1.LabelQueue]
		works[queue] = works[queue] || jobwork.Lives(&pods.Items[i])
	}
	for i := range reservations.Items {
		dr := &reservations.Items[i]
		reserved[reservation.Queue(dr)] = reserved[reservation.Queue(dr)] || !dr.Status.Phase.Terminal()
	}
	return !slices.ContainsFunc(queues.Items, func(q batchv1alpha1.JobQueue) bool {
		return q.Status.Queued > 0 && !waits[q.Name] || q.Status.Running > 0 && !works[q.Name] || q.Status.Reserved > 0 && !reserved[q.Name]
	})
}

// lease changes with every manager: taking it is what raises the epoch.
const lease = "leases/reprise-manager"

// idempotent stops the manager, starts another, and expects that this changes no object but the Lease, and what is named: a
// run that is adopted names its new incarnation. That the second manager has come to its end is known by a run of its own
// queue, which it finds when it starts and executes after everything else.
func (w *world) idempotent(m *manager, changes ...string) {
	w.t.Helper()
	w.settle()
	m.stop()
	s := newServer(w.t, nil)
	everything, err := resources()
	w.Expect(err).NotTo(HaveOccurred())
	before, was := w.versions(everything), w.story()
	name := marker + rand.String(5)
	w.queue(name, 1)
	w.create(w.httpRun(name, s.URL, inQueue(name)))

	next := w.start(m.change...)
	w.Expect(w.summary(next)).To(counts(0, 0, strings.Count(strings.Join(changes, " "), "jobruns/"), 0))
	w.eventually(name, batchv1alpha1.JobRunCompleted)
	w.settle()
	next.stop()

	after := w.versions(everything)
	w.Expect(after[lease]).NotTo(Equal(before[lease]))
	for _, name := range append(changes, lease) {
		delete(before, name)
		delete(after, name)
	}
	w.Expect(after).To(Equal(before), "a second start changes nothing\nbefore:\n%s\nafter:\n%s", was, w.story())
}

// patch changes an object that may change meanwhile.
func (w *world) patch(o client.Object, change func()) {
	w.t.Helper()
	w.Eventually(func() error {
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change()
		return w.Update(w.ctx, o)
	}).Should(Succeed())
}

// cancelRun asks for the end of a run.
func (w *world) cancelRun(name string) {
	w.t.Helper()
	r := w.get(name)
	w.patch(r, func() { r.Spec.Cancel = true })
}

// suspend sets the suspension of a queue.
func (w *world) suspend(q *batchv1alpha1.JobQueue, suspended bool) {
	w.t.Helper()
	w.patch(q, func() { q.Spec.Suspend = suspended })
}
