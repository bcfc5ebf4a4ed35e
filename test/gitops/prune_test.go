// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

const (
	interval = time.Second
	// still is for how long nothing may happen that must not.
	still = 2 * time.Second
)

func clientKey(o client.Object) client.ObjectKey { return client.ObjectKeyFromObject(o) }

func TestARunThatIsAppliedAgainAfterItsEndDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const run = "kind: JobRun\nmetadata: {name: migrate}\nspec: {work: {http: {url: URL}}}\n"
	w.apply(run)
	first := w.reaches("JobRun", "migrate", "Completed")
	w.apply(run)
	w.Expect(w.get("JobRun", "migrate").GetResourceVersion()).To(Equal(first.GetResourceVersion()))
	w.Consistently(w.called, still).Should(HaveLen(1))

	// Other work under the same name is refused. Deleted and made anew it is another run.
	out, err := w.kubectl(w.manifests("kind: JobRun\nmetadata: {name: migrate}\nspec: {work: {http: {url: URL/two}}}\n"), "apply", "--server-side", "-f", "-")
	w.Expect(err).To(HaveOccurred())
	w.Expect(out).To(ContainSubstring("immutable"))
	w.does("", "delete", "jr", "migrate")
	w.apply(run)
	second := w.reaches("JobRun", "migrate", "Completed")
	w.Expect(second.GetUID()).NotTo(Equal(first.GetUID()))
	w.Expect(w.called()).To(Equal([]string{"migrate", "migrate"}))
}

func TestPruningARunWhoseRetryWaitsLeavesTheRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.apply("kind: JobRun\nmetadata: {name: flaky}\nspec: {work: {http: {url: URL/fail}}, retryPolicy: {maxRetries: 1, baseDelaySeconds: 3}}\n")
	w.reaches("JobRun", "flaky-r1", "Queued")
	w.does("", "delete", "jr", "flaky")
	w.reaches("JobRun", "flaky-r1", "Failed")
	w.Expect(w.called()).To(Equal([]string{"flaky", "flaky-r1"}))

	// To end a chain, its latest run is cancelled, or deleted.
	w.apply("kind: JobRun\nmetadata: {name: over}\nspec: {work: {http: {url: URL/fail}}, retryPolicy: {maxRetries: 1, baseDelaySeconds: 8}}\n")
	w.reaches("JobRun", "over-r1", "Queued")
	w.does("", "delete", "jr", "over", "over-r1")
	w.Consistently(w.called, 8*time.Second+still).Should(HaveLen(3))
}

func TestPruningAScheduledJobTakesItsRunsAlongAndStopsTheirWork(t *testing.T) {
	for _, propagation := range []string{"background", "foreground"} {
		t.Run(propagation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			w.apply(`
kind: ScheduledJob
metadata: {name: often}
spec:
  schedule: "@every 1s"
  concurrencyPolicy: Forbid
  runTemplate:
    work: {job: {template: {spec: {template: {metadata: {annotations: {fakekubelet/runs-for: until-finished}}, spec: {containers: [{name: main, image: example.org/work}]}}}}}}
`)
			w.Eventually(w.pods).Should(HaveLen(1))
			w.does("", "delete", "sj", "often", "--cascade="+propagation, "--timeout=60s")
			w.Eventually(w.pods).Should(BeEmpty())
			runs := &batchv1alpha1.JobRunList{}
			w.Eventually(func() int {
				w.Expect(w.List(w.ctx, runs, client.InNamespace(w.ns))).To(Succeed())
				return len(runs.Items)
			}).Should(BeZero())
			w.Eventually(w.atWork("default")).Should(BeZero(), "its slot is free")
			w.Consistently(w.pods, still).Should(BeEmpty(), "nothing fires any more")
		})
	}
}

// atWork reads how many slots of a queue are used by runs, for Eventually.
func (w *world) atWork(queue string) func() int64 {
	return func() int64 {
		n, _, _ := unstructured.NestedInt64(w.get("JobQueue", queue).Object, "status", "running")
		return n
	}
}

// pods lists the pods of the namespace.
func (w *world) pods() ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := w.List(w.ctx, pods, client.InNamespace(w.ns))
	return pods.Items, err
}

func TestAScheduledJobThatIsMadeAnewDoesNotRepeatATickWhoseRunIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const once = "kind: ScheduledJob\nmetadata: {name: once}\nspec: {runAt: \"2026-01-01T00:00:00Z\", runTemplate: {work: {http: {url: URL}}}}\n"
	const run = "once-1767225600"
	w.apply(once)
	w.reaches("JobRun", run, "Completed")
	w.does("", "delete", "sj", "once", "--cascade=orphan")
	w.apply(once)
	w.Eventually(func() string {
		at, _, _ := unstructured.NestedString(w.get("ScheduledJob", "once").Object, "status", "firedRunAt")
		return at
	}).Should(Equal("2026-01-01T00:00:00Z"), "the tick is settled")
	w.becomes("ScheduledJob", "once", current)
	w.Consistently(w.called, still).Should(HaveLen(1))

	// With its runs gone there is nothing that remembers the tick.
	w.does("", "delete", "jr", run)
	w.does("", "delete", "sj", "once")
	w.apply(once)
	w.Eventually(w.called).Should(HaveLen(2))
}

func TestAQueueThatIsDeletedAndAppliedAgainHoldsItsRunsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const queue = "kind: JobQueue\nmetadata: {name: q}\nspec: {concurrency: {limit: 1}}\n"
	w.apply(queue)
	w.apply("kind: JobRun\nmetadata: {name: before}\nspec: {queue: q, work: {http: {url: URL}}}\n")
	w.reaches("JobRun", "before", "Completed")
	ledger := w.get("QueueLedger", "q")
	w.does("", "delete", "jq", "q")
	w.apply("kind: JobRun\nmetadata: {name: waits}\nspec: {queue: q, work: {http: {url: URL}}}\n")
	w.is(w.says("JobRun", "waits", "Stalled", "QueueNotFound"), inProgress)
	w.apply(queue)
	w.is(w.reaches("JobRun", "waits", "Completed"), current)
	w.Expect(w.get("QueueLedger", "q").GetUID()).To(Equal(ledger.GetUID()), "the fence outlives its queue")
}

func TestAGroupThatIsAppliedAgainRunsOnceAndMadeAnewTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const group = "kind: JobGroup\nmetadata: {name: seed}\nspec: {members: [{name: a, runTemplate: {work: {http: {url: URL}}}}]}\n"
	w.apply(group)
	w.reaches("JobGroup", "seed", "Completed")
	w.apply(group)
	w.Consistently(w.called, still).Should(HaveLen(1))
	w.does("", "delete", "jg", "seed")
	w.gone("JobRun", "seed-a")
	w.apply(group)
	w.reaches("JobGroup", "seed", "Completed")
	w.Expect(w.called()).To(HaveLen(2))
}

func TestAReservationThatIsPrunedGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.apply("kind: DirectReservation\nmetadata: {name: mine}\nspec: {}\n")
	w.reaches("DirectReservation", "mine", "Granted")
	w.apply("kind: JobRun\nmetadata: {name: waits}\nspec: {work: {http: {url: URL}}}\n")
	w.Consistently(w.called, still).Should(BeEmpty())
	w.does("", "delete", "dr", "mine")
	w.reaches("JobRun", "waits", "Completed")
}

// What tools mark their objects with. What the operator makes from such an object must not have it: they would prune it.
const marked = `
kind: ScheduledJob
metadata:
  name: tracked
  labels:
    app.kubernetes.io/instance: shop
    kustomize.toolkit.fluxcd.io/name: shop
    applyset.kubernetes.io/part-of: applyset-shop
    app: shop
  annotations:
    argocd.argoproj.io/tracking-id: "shop:batch.reprise.dev/ScheduledJob:x/tracked"
spec:
  runAt: "2026-01-01T00:00:00Z"
  runTemplate:
    retryPolicy: {maxRetries: 1, baseDelaySeconds: 1}
    work: {job: {template: {spec: {template: {metadata: {annotations: {fakekubelet/exit-code: "1"}}, spec: {containers: [{name: main, image: example.org/work}]}}}}}}
`

func TestWhatTheOperatorMakesBelongsToItsOwnerAndHasNoMarkOfATool(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const run = "tracked-1767225600"
	tool := []string{"apply", "--prune", "-l", "app=shop", "-f", "-"}
	for _, kind := range []string{"ScheduledJob", "JobRun", "JobQueue"} {
		tool = append(tool, "--prune-allowlist="+batchv1alpha1.GroupVersion.String()+"/"+kind)
	}
	w.does(w.manifests(marked), tool...)
	w.says("JobRun", run, "Failed", "RetriesExhausted")

	made := []client.Object{w.get("JobQueue", "default"), w.get("QueueLedger", "default"), w.get("JobRun", run), w.get("JobRun", run+"-r1")}
	jobs := &batchv1.JobList{}
	w.Expect(w.List(w.ctx, jobs, client.InNamespace(w.ns))).To(Succeed())
	w.Expect(jobs.Items).To(HaveLen(2))
	for i := range jobs.Items {
		made = append(made, &jobs.Items[i])
	}
	for _, o := range made {
		for _, mark := range []string{"app", "app.kubernetes.io/instance", "kustomize.toolkit.fluxcd.io/name", "applyset.kubernetes.io/part-of"} {
			w.Expect(o.GetLabels()).NotTo(HaveKey(mark), o.GetName())
		}
		w.Expect(o.GetAnnotations()).NotTo(HaveKey("argocd.argoproj.io/tracking-id"), o.GetName())
		w.Expect(o.GetAnnotations()).NotTo(HaveKey("kubectl.kubernetes.io/last-applied-configuration"), o.GetName())
	}
	owner := w.get("ScheduledJob", "tracked")
	for _, name := range []string{run, run + "-r1"} {
		owners := w.get("JobRun", name).GetOwnerReferences()
		w.Expect(owners).To(HaveLen(1))
		w.Expect(owners[0].UID).To(Equal(owner.GetUID()))
	}

	// The tool prunes the schedule and nothing else. The rest follows its owner.
	w.does(w.manifests(marked), tool...)
	w.get("JobRun", run)
	other := "kind: ScheduledJob\nmetadata: {name: other, labels: {app: shop}}\nspec: {runTemplate: {work: {http: {url: URL}}}}\n"
	out := w.does(w.manifests(other), tool...)
	w.Expect(out).To(ContainSubstring("tracked pruned"))
	w.Expect(out).NotTo(ContainSubstring("jobrun"))
	w.gone("JobRun", run)
	w.gone("JobRun", run+"-r1")
	w.get("JobQueue", "default")
}
