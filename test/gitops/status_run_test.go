// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"reprise.dev/reprise/internal/operator"
)

func TestTheStatusOfARunInEveryPhase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(`
kind: JobQueue
metadata: {name: one}
spec: {concurrency: {limit: 1}}
---
kind: JobQueue
metadata: {name: many}
spec: {concurrency: {limit: 20}}
---
kind: JobRun
metadata: {name: slow}
spec: {queue: one, work: {http: {url: URL/hold}}}
`)
	w.is(w.get("JobRun", "slow"), inProgress)
	w.start()
	w.reaches("JobRun", "slow", "Running")
	w.is(w.get("JobRun", "slow"), inProgress)

	w.apply(`
kind: JobRun
metadata: {name: waits}
spec: {queue: one, work: {http: {url: URL}}}
---
kind: JobRun
metadata: {name: dropped}
spec: {queue: one, work: {http: {url: URL}}}
---
kind: JobRun
metadata: {name: nowhere}
spec: {queue: missing, work: {http: {url: URL}}}
---
kind: JobRun
metadata: {name: idle}
spec: {queue: many, work: {http: {url: URL/none, skipStatusCodes: [204]}}}
---
kind: JobRun
metadata: {name: lost}
spec: {queue: many, work: {http: {url: URL/fail}}, retryPolicy: {maxRetries: 1, baseDelaySeconds: 1}}
---
kind: JobRun
metadata: {name: silent}
spec: {queue: many, staleAfterSeconds: 1, work: {http: {url: URL/hold}}}
---
kind: JobRun
metadata: {name: later}
spec: {queue: many, work: {http: {url: URL/fail}}, retryPolicy: {maxRetries: 1, baseDelaySeconds: 3600}}
`)
	w.is(w.reaches("JobRun", "idle", "Skipped"), current)
	w.patch("jr", "dropped", `{"cancel":true}`)
	w.is(w.reaches("JobRun", "dropped", "Cancelled"), current)
	w.is(w.get("JobRun", "waits"), inProgress)

	// A run that waits for a person is Queued, and so in progress. Why it waits is said beside it.
	words := w.is(w.says("JobRun", "nowhere", "Stalled", "QueueNotFound"), inProgress)
	w.Expect(words).To(ContainSubstring("JobQueue missing does not exist"))

	// An attempt whose chain goes on.
	w.reaches("JobRun", "later-r1", "Queued")
	w.is(w.reaches("JobRun", "later", "Failed"), inProgress)
	w.is(w.get("JobRun", "later-r1"), inProgress)

	// A retry by hand that is refused, since one waits: whoever asked for it is to know.
	w.apply("kind: JobRun\nmetadata: {name: refused}\nspec: {retryOf: later}\n")
	words = w.is(w.reaches("JobRun", "refused", "Skipped"), failed)
	w.Expect(words).To(ContainSubstring("is to be retried by later-r1"))

	// Work that seems to hang.
	w.is(w.says("JobRun", "silent", "Stale", "NoSignOfLife"), inProgress)

	// A chain that has failed for good: all its attempts have.
	w.says("JobRun", "lost", "Failed", "RetriesExhausted")
	words = w.is(w.get("JobRun", "lost"), failed)
	w.Expect(words).To(ContainSubstring("all 1 automatic retries are used up"))
	w.is(w.get("JobRun", "lost-r1"), failed)

	w.let()
	w.is(w.reaches("JobRun", "slow", "Completed"), current)
	w.becomes("JobRun", "waits", current)

	// Whatever ended: an edit that is allowed then is seen, and changes nothing.
	for name, want := range map[string]verdict{"slow": current, "idle": current, "dropped": current, "lost": failed, "later": inProgress} {
		w.patch("jr", name, `{"ttlSecondsAfterFinished":86400}`)
		w.is(w.observed("JobRun", name), want)
	}
}

func TestTheStatusOfAChainThatARetrySaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.apply(`
kind: JobRun
metadata: {name: saved}
spec:
  retryPolicy: {maxRetries: 1, baseDelaySeconds: 1}
  work: {job: {template: {spec: {template: {metadata: {annotations: {fakekubelet/runs-for: until-finished}}, spec: {containers: [{name: main, image: example.org/work}]}}}}}}
`)
	w.ends("saved", 3)
	w.reaches("JobRun", "saved", "Failed")
	w.is(w.get("JobRun", "saved"), inProgress)
	w.ends("saved-r1", 0)
	w.is(w.says("JobRun", "saved", "Complete", "Succeeded"), current)
	w.is(w.get("JobRun", "saved-r1"), current)
	w.Expect(w.phase("JobRun", "saved")()).To(Equal("Failed"))
}

func TestTheStatusOfARunWhileItsWorkIsBeingStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	kubelet.HoldTermination(w.ns)
	t.Cleanup(func() { kubelet.ReleaseTermination(w.ns) })
	w.apply(pods("stopped") + "\n---\n" + pods("timed") + "  timeoutSeconds: 1\n  retryPolicy: {maxRetries: 0}\n")
	w.running("stopped")
	w.patch("jr", "stopped", `{"cancel":true}`)
	w.is(w.reaches("JobRun", "stopped", "Cancelling"), inProgress)
	kubelet.ReleaseTermination(w.ns)
	w.is(w.reaches("JobRun", "stopped", "Cancelled"), current)
	w.says("JobRun", "timed", "Failed", "Timeout")
	w.is(w.get("JobRun", "timed"), failed)
}

func TestTheStatusOfARunThatAnEarlierManagerLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.start()
	w.apply(pods("left") + `  retryPolicy: {maxRetries: 0}` + "\n")
	w.running("left")
	stop()
	stop = w.start(func(o *operator.Options) { o.CleanupStaleOnStartup = false })
	w.is(w.says("JobRun", "left", "Orphaned", "ManagerRestarted"), inProgress)
	stop()
	w.start()
	w.is(w.reaches("JobRun", "left", "Failed"), failed)
}

func TestAnObjectThatIsBeingDeletedIsTerminating(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(`
kind: JobRun
metadata: {name: going, finalizers: [example.org/kept]}
spec: {work: {http: {url: URL}}}
`)
	w.does("", "delete", "jr", "going", "--wait=false")
	result, err := judge(w.get("JobRun", "going"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.kstatus.String()).To(Equal("Terminating")) // Argo CD decides that itself, without a script
	w.does("", "patch", "jr", "going", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	w.gone("JobRun", "going")
}

// pods is the manifest of a run whose pod runs until something ends it. More of its spec may follow.
func pods(name string) string {
	return `
kind: JobRun
metadata: {name: ` + name + `}
spec:
  work: {job: {template: {spec: {template: {metadata: {annotations: {fakekubelet/runs-for: until-finished}}, spec: {containers: [{name: main, image: example.org/work}]}}}}}}
`
}

// observed waits until the present spec of an object was seen, also by what its conditions say, and returns it.
func (w *world) observed(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	var u *unstructured.Unstructured
	w.Eventually(func() error {
		u = w.get(kind, name)
		return unseen(u)
	}).Should(Succeed())
	return u
}
