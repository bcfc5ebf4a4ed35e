// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/realnode"
)

// These tests are not parallel: nothing else can go on while the one node has no kubelet.

func TestTheKubeletIsKilledAndComesBack(t *testing.T) {
	i := install(t, 2)
	i.queue("default", 2)
	i.create(i.jobRun("ends", untilFinished(0), retries(1)), i.jobRun("goes-on", untilFinished(0), retries(1)))
	ends, goesOn := i.atWork("ends"), i.atWork("goes-on")
	back := i.loseKubelet()
	i.nodeIsReady(corev1.ConditionUnknown)
	i.signal(ends, syscall.SIGTERM)
	i.ended(ends)
	i.Expect(i.get("ends").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning), "nobody tells of its end")

	back()
	i.nodeIsReady(corev1.ConditionTrue)
	i.eventually("ends", batchv1alpha1.JobRunCompleted)
	i.Expect(i.get("goes-on").Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
	i.Expect(i.finish("goes-on").ID).To(Equal(goesOn.ID))
	i.eventually("goes-on", batchv1alpha1.JobRunCompleted)
	i.keepsPromises()
	i.Expect(i.seen.handovers()).To(BeEmpty(), "the managers went on")
}

func TestTheKubeletDoesNotComeBackUntilAPersonHasConfirmedThatNothingLives(t *testing.T) {
	i := install(t, 2)
	i.queue("default", 1)
	i.create(i.jobRun("lost", untilFinished(0), retries(1), recovered(batchv1alpha1.RecoveryFail)))
	old := i.atWork("lost")
	back := i.loseKubelet()
	holder := i.seen.leader().Holder
	i.kill(i.leading()) // it was on that machine, too
	i.succeeded(holder)

	lost := i.eventually("lost", batchv1alpha1.JobRunFailed)
	i.Eventually(i.phase("lost-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	i.nodeIsReady(corev1.ConditionUnknown)
	i.Eventually(i.stopConfirmed("lost")).Should(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", batchv1alpha1.ReasonStopOverdue),
		HaveField("Message", And(ContainSubstring("pod "+old.PodName), ContainSubstring("on node "+realnode.NodeName))),
	), "a person can read what keeps the slot")
	i.kill(old) // the machine is off
	i.Expect(i.get("lost").Status.Slot).To(Equal(batchv1alpha1.SlotHeld), "nobody can see that nothing lives")
	i.Expect(i.get("lost-r1").Status.Phase).To(Equal(batchv1alpha1.JobRunQueued))

	i.kubectl("annotate", "jr", "lost", fmt.Sprintf("%s=%s", batchv1alpha1.AnnotationConfirmStopped, lost.UID))
	i.slotFree("lost")
	i.Expect(i.stopConfirmed("lost")()).To(And(
		HaveField("Status", metav1.ConditionTrue), HaveField("Reason", batchv1alpha1.ReasonConfirmedByPerson), HaveField("Message", ContainSubstring(old.PodName)),
	))
	i.eventually("lost-r1", batchv1alpha1.JobRunRunning)
	back()
	i.nodeIsReady(corev1.ConditionTrue)
	retry := i.atWork("lost-r1")
	i.Expect(retry.Created).To(BeTemporally(">", i.ended(old).Finished))
	i.finish("lost-r1")
	i.settled("lost", batchv1alpha1.ConditionComplete)
	i.keepsPromises()
	i.Expect(i.ofRun("lost")).To(ConsistOf(HaveField("ID", old.ID)), "what was on the lost node is not begun again")
	i.Expect(i.ofRun("lost-r1")).To(HaveLen(1))
}

func TestTheMachineGoesOffAndOnAndNobodyHasToDoAnything(t *testing.T) {
	slow(t)
	i := install(t, 2)
	i.queue("default", 2)
	i.create(
		i.jobRun("fails", untilFinished(0), retries(1), recovered(batchv1alpha1.RecoveryFail)),
		i.jobRun("adopts", untilFinished(0), retries(1), recovered(batchv1alpha1.RecoveryAdopt)),
	)
	i.atWork("fails")
	i.atWork("adopts")
	back := i.loseKubelet()
	for _, c := range i.containers() {
		i.kill(c)
	}
	i.nodeIsReady(corev1.ConditionUnknown)
	back()
	i.nodeIsReady(corev1.ConditionTrue)
	for _, run := range []string{"fails", "adopts"} {
		i.eventually(run, batchv1alpha1.JobRunFailed)
		i.finish(run + "-r1")
		i.settled(run, batchv1alpha1.ConditionComplete)
	}
	i.keepsPromises()
}

// loseKubelet kills the kubelet, and returns what starts it again: at the end of the test at the latest.
func (i *installation) loseKubelet() (back func()) {
	i.t.Helper()
	i.Expect(i.node.KillKubelet()).To(Succeed())
	back = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		i.Expect(i.node.StartKubelet(ctx)).To(Succeed())
	})
	i.t.Cleanup(back)
	return back
}

// nodeIsReady waits until the node's condition Ready has the status.
func (i *installation) nodeIsReady(status corev1.ConditionStatus) {
	i.t.Helper()
	began := time.Now()
	i.Eventually(func() corev1.ConditionStatus {
		n := &corev1.Node{}
		i.Expect(i.Get(i.ctx, client.ObjectKey{Name: realnode.NodeName}, n)).To(Succeed())
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status
			}
		}
		return ""
	}).Should(Equal(status), "the node's condition Ready")
	i.t.Logf("the node's condition Ready was %s after %s", status, time.Since(began).Round(time.Second))
}

// stopConfirmed reads the condition of a run that tells whether its work is known to have stopped, for Eventually.
func (i *installation) stopConfirmed(run string) func() metav1.Condition {
	return func() metav1.Condition {
		if c := meta.FindStatusCondition(i.get(run).Status.Conditions, batchv1alpha1.ConditionStopConfirmed); c != nil {
			return *c
		}
		return metav1.Condition{}
	}
}
