// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// unseen says what of an object does not speak of its present spec. kubectl wait asks the conditions, kstatus the status.
func unseen(u *unstructured.Unstructured) error {
	seen, _, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if err != nil || seen != u.GetGeneration() {
		return fmt.Errorf("%s %s: generation %d, of which status has observed %d: %w", u.GetKind(), u.GetName(), u.GetGeneration(), seen, err)
	}
	for _, c := range conditions(u) {
		if c["observedGeneration"] != u.GetGeneration() {
			return fmt.Errorf("%s %s: generation %d, condition %s is of %v", u.GetKind(), u.GetName(), u.GetGeneration(), c["type"], c["observedGeneration"])
		}
	}
	return nil
}

// running waits until a pod of the run is at work, and returns it.
func (w *world) running(run string) *corev1.Pod {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	pod, err := kubelet.WaitRunning(ctx, w.ns, map[string]string{batchv1alpha1.LabelRun: run})
	w.Expect(err).NotTo(HaveOccurred())
	return pod
}

// ends waits until a pod of the run is at work, and ends it.
func (w *world) ends(run string, exitCode int32) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	w.Expect(kubelet.Finish(ctx, client.ObjectKeyFromObject(w.running(run)), exitCode)).To(Succeed())
}

func TestTheStatusOfAScheduledJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const schedule = `
kind: ScheduledJob
metadata: {name: %s}
spec:
  schedule: "%s"
  runTemplate: {work: {http: {url: URL/fail}}, retryPolicy: {maxRetries: 0}}
`
	w.apply(fmt.Sprintf(schedule, "often", "@every 1s") + "---" + fmt.Sprintf(schedule, "never", "0 0 30 2 *"))
	w.is(w.get("ScheduledJob", "often"), inProgress)
	w.start()
	w.becomes("ScheduledJob", "often", current)
	w.Eventually(w.called).ShouldNot(BeEmpty())
	w.Eventually(func() string {
		u := w.get("ScheduledJob", "often")
		name, _, _ := unstructured.NestedString(u.Object, "status", "lastRunName")
		return w.phase("JobRun", name)()
	}).Should(Equal("Failed"))
	w.is(w.get("ScheduledJob", "often"), current)

	w.patch("sj", "often", `{"suspend":true}`)
	words := w.is(w.observed("ScheduledJob", "often"), current)
	w.Expect(words).To(ContainSubstring("suspend"))

	words = w.is(w.says("ScheduledJob", "never", "Stalled", "InvalidSchedule"), failed)
	w.Expect(words).To(ContainSubstring("there is no such date"))
	w.patch("sj", "never", `{"schedule":"0 0 28 2 *"}`)
	w.is(w.observed("ScheduledJob", "never"), current)
}

func TestTheStatusOfWhatMakesRunsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: none}
spec: {hard: {count/jobruns.batch.reprise.dev: "0"}}
`, "apply", "-f", "-")
	const count = `{"count/jobruns.batch.reprise.dev":"0"}`
	w.does("", "patch", "quota", "none", "--subresource=status", "--type=merge", "-p", `{"status":{"hard":`+count+`,"used":`+count+`}}`)
	w.apply(`
kind: ScheduledJob
metadata: {name: refused}
spec: {runAt: "2026-01-01T00:00:00Z", runTemplate: {work: {http: {url: URL}}}}
---
kind: JobGroup
metadata: {name: refused}
spec: {members: [{name: a, runTemplate: {work: {http: {url: URL}}}}]}
`)
	w.start()
	w.is(w.says("ScheduledJob", "refused", "Stalled", "RunRejected"), failed)
	words := w.is(w.says("JobGroup", "refused", "Stalled", "MemberRejected"), failed)
	w.Expect(words).To(ContainSubstring("exceeded quota"))
	w.does("", "delete", "quota", "none")
	w.becomes("ScheduledJob", "refused", current)
	w.becomes("JobGroup", "refused", current)
	w.Eventually(w.called).Should(HaveLen(2))
}

func TestTheStatusOfAQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("kind: JobQueue\nmetadata: {name: q}\nspec: {concurrency: {limit: 1}}\n")
	w.is(w.get("JobQueue", "q"), inProgress)
	w.start()
	w.becomes("JobQueue", "q", current)
	w.apply(`
kind: JobRun
metadata: {name: slow}
spec: {queue: q, work: {http: {url: URL/hold}}}
---
kind: JobRun
metadata: {name: next}
spec: {queue: q, work: {http: {url: URL}}}
`)
	w.reaches("JobRun", "slow", "Running")
	w.patch("jq", "q", `{"suspend":true}`)
	var words string
	w.Eventually(func() string {
		words = w.is(w.observed("JobQueue", "q"), current)
		return words
	}).Should(ContainSubstring("suspended"))
	w.let()
}

func TestTheStatusOfAGroupInEveryPhase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const group = `
kind: JobGroup
metadata: {name: %s}
spec: {members: [{name: a, runTemplate: {queue: %s, work: {http: {url: URL%s, skipStatusCodes: [204]}}, retryPolicy: {maxRetries: 0}}}, {name: b, runTemplate: {queue: q, work: {http: {url: URL/none, skipStatusCodes: [204]}}}}]}
`
	w.apply(fmt.Sprintf(group, "slow", "q", "/hold"))
	w.is(w.reaches("JobGroup", "slow", "Pending"), inProgress)
	w.start()
	w.apply("kind: JobQueue\nmetadata: {name: q}\nspec: {concurrency: {limit: 20}}\n---" +
		fmt.Sprintf(group, "good", "q", "") + "---" + fmt.Sprintf(group, "bad", "q", "/fail") + "---" +
		fmt.Sprintf(group, "dropped", "q", "/hold") + "---" + fmt.Sprintf(group, "stuck", "missing", ""))
	w.is(w.reaches("JobGroup", "slow", "Running"), inProgress)
	w.is(w.reaches("JobGroup", "good", "Completed"), current)
	w.is(w.reaches("JobGroup", "bad", "Failed"), failed)
	w.reaches("JobGroup", "dropped", "Running")
	w.patch("jg", "dropped", `{"cancel":true}`)
	w.is(w.reaches("JobGroup", "dropped", "Cancelled"), current)
	w.says("JobRun", "stuck-a", "Stalled", "QueueNotFound")
	w.is(w.reaches("JobGroup", "stuck", "Running"), inProgress)
	w.let()
	w.is(w.reaches("JobGroup", "slow", "Completed"), current)
	for name, want := range map[string]verdict{"slow": current, "dropped": current, "bad": failed} {
		w.patch("jg", name, `{"ttlSecondsAfterFinished":86400}`)
		w.is(w.observed("JobGroup", name), want)
	}
}

func TestTheStatusOfAGroupThatIsNeverExecuted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.apply(`
kind: ScheduledJob
metadata: {name: often}
spec:
  schedule: "@every 1s"
  concurrencyPolicy: Forbid
  groupTemplate: {members: [{name: a, runTemplate: {work: {http: {url: URL/hold}}}}]}
`)
	groups := &batchv1alpha1.JobGroupList{}
	w.Eventually(func() int {
		w.Expect(w.List(w.ctx, groups, client.InNamespace(w.ns), client.MatchingFields{"status.phase": "Skipped"})).To(Succeed())
		return len(groups.Items)
	}).Should(Equal(1))
	w.is(w.get("JobGroup", groups.Items[0].Name), current)
	w.let()
}

func TestTheStatusOfAGroupWhileItsWorkIsBeingStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	kubelet.HoldTermination(w.ns)
	t.Cleanup(func() { kubelet.ReleaseTermination(w.ns) })
	w.apply(`
kind: JobGroup
metadata: {name: g}
spec:
  members:
    - name: a
      runTemplate:
        work: {job: {template: {spec: {template: {metadata: {annotations: {fakekubelet/runs-for: until-finished}}, spec: {containers: [{name: main, image: example.org/work}]}}}}}}
`)
	w.running("g-a")
	w.patch("jg", "g", `{"cancel":true}`)
	w.is(w.reaches("JobGroup", "g", "Cancelling"), inProgress)
	kubelet.ReleaseTermination(w.ns)
	w.is(w.reaches("JobGroup", "g", "Cancelled"), current)
}

func TestTheStatusOfAReservationInEveryPhase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const reservation = "kind: DirectReservation\nmetadata: {name: %s}\nspec: {queue: %s, waitTimeoutSeconds: %d}\n"
	w.apply("kind: JobQueue\nmetadata: {name: q}\nspec: {concurrency: {limit: 1}}\n---\n" + fmt.Sprintf(reservation, "mine", "q", 600))
	w.is(w.reaches("DirectReservation", "mine", "Pending"), inProgress)
	w.start()
	w.is(w.reaches("DirectReservation", "mine", "Granted"), current)
	w.patch("dr", "mine", `{"ttlSecondsAfterFinished":86400}`)
	w.is(w.observed("DirectReservation", "mine"), current)

	w.apply(fmt.Sprintf(reservation, "next", "q", 600) + "---\n" + fmt.Sprintf(reservation, "hasty", "q", 2) + "---\n" + fmt.Sprintf(reservation, "lost", "missing", 600))
	w.is(w.reaches("DirectReservation", "next", "Active"), inProgress)
	w.is(w.reaches("DirectReservation", "hasty", "Expired"), current)
	words := w.is(w.says("DirectReservation", "lost", "Stalled", "QueueNotFound"), inProgress)
	w.Expect(words).To(ContainSubstring("JobQueue missing does not exist"))

	w.patch("dr", "mine", `{"release":true}`)
	w.is(w.reaches("DirectReservation", "mine", "Released"), current)
	for _, name := range []string{"mine", "hasty"} {
		w.patch("dr", name, `{"ttlSecondsAfterFinished":3600,"release":true}`)
		w.is(w.observed("DirectReservation", name), current)
	}
}
