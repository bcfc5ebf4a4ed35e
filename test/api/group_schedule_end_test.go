// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAScheduledJobDeletedWhileItsGroupIsAtWorkTakesItAlongAndFreesNoSlotEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, grouping(members{w.podded("a"), w.podded("b")})))
	name := w.tick("sj", 10)
	w.podOf(w.eventually(name+"-a", batchv1alpha1.JobRunRunning))
	w.create(w.jobRun("next", exits("0")))
	kubelet.HoldTermination(w.ns)
	w.Expect(w.Delete(w.ctx, w.readSchedule("sj"), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.groupGone(name)
	w.terminating(name + "-a")
	w.Eventually(w.allRuns).Should(Equal([]string{"next"}))
	w.Consistently(w.phase("next")).WithTimeout(still).Should(Equal("Queued"), "the pod is alive")
	kubelet.ReleaseTermination(w.ns)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.slotFree("next")
	w.Expect(w.lives()).To(Equal([]string{"Started " + name + "-a", "Ended " + name + "-a", "Started next", "Ended next"}))
	w.idempotent(m)
}

func TestAScheduledJobDeletedAloneLeavesItsGroupToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, grouping(members{w.calling("a", s.URL+"/hold"), w.calling("b", s.URL)})))
	name := w.tick("sj", 10)
	w.stands(name, "Running: a Running, b Waiting")
	w.Expect(w.Delete(w.ctx, w.readSchedule("sj"), client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.Eventually(func() []metav1.OwnerReference { return w.readGroup(name).OwnerReferences }).Should(BeEmpty())
	release()
	w.ends(name, "Completed: a Completed, b Completed")
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{name + "-a", name + "-b"}))
}

func TestAManagerMayDieAtAnyWriteOfTheReplacementOfAGroup(t *testing.T) {
	// The wait, the request to end, the new group, and its record.
	const writes = 4
	writesOfSchedule := func(r request) bool {
		switch {
		case r.method == http.MethodPut:
			return strings.HasSuffix(r.path, "/scheduledjobs/sj/status") || saying(`"halt":{`, saying(`"status":{"phase":"Running"`, recordOfGroup))(r)
		default:
			return r.method == http.MethodPost && strings.HasSuffix(r.path, "/jobgroups")
		}
	}
	for when, landed := range map[string]bool{"before it lands": false, "after it has landed": true} {
		for n := range writes {
			t.Run(fmt.Sprintf("write %d, %s", n+1, when), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.queue("default", 5)
				x := newWire(t)
				before := w.start()
				w.create(w.schedule("sj", "", tomorrow, replacing, grouping(members{w.podded("a", adopting), w.podded("b", exits("0"))})))
				first := w.tick("sj", 20)
				w.podOf(w.eventually(first+"-a", batchv1alpha1.JobRunRunning))
				w.stands(first, "Running: a Running, b Waiting")
				w.settle()
				before.stop()
				dying := w.startOn(x.dies(int64(n+1), landed, writesOfSchedule).config(), x.mortal)
				w.Expect(w.summary(dying)).To(counts(0, 0, 1, 0))
				second := w.tick("sj", 10)
				w.died(x)
				dying.stop()
				m := w.start()
				w.endPod(w.eventually(second+"-a", batchv1alpha1.JobRunRunning), 0)
				w.ends(second, "Completed: a Completed, b Completed")
				old := w.readGroup(first)
				w.Expect(old.Status.Phase).To(BeElementOf(batchv1alpha1.JobGroupCancelled, batchv1alpha1.JobGroupFailed), "the latter if a member was being stopped")
				w.Expect(old.Status.Halt.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
				w.neverMade(old, "b")
				w.Expect(groupNames(w.groupsOf("sj"))).To(Equal([]string{first, second}))
				w.Expect(w.lives()).To(Equal([]string{
					"Started " + first + "-a", "Ended " + first + "-a", "Started " + second + "-a", "Ended " + second + "-a",
					"Started " + second + "-b", "Ended " + second + "-b",
				}))
				w.Eventually(func() int32 { return w.readSchedule("sj").Status.ActiveCount }).Should(BeZero())
				w.idempotent(m)
			})
		}
	}
}
