// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
	"reprise.dev/reprise/internal/schedule"
)

func TestOnlyRunsThatMayNeedSomethingAreLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		want bool
	}{
		"one that only waits for its turn":     {queued("a"), false},
		"one that is to be cancelled":          {queued("a", cancelled), true},
		"one that is yet to be resolved":       {queued("a", naming("sj")), true},
		"one that is held":                     {queued("a", func(r *batchv1alpha1.JobRun) { run.Hold(r, "Reason", "", noon) }), true},
		"a retry, whose parent is asked":       {queued("a", child("b")), true},
		"a tick, whose ScheduledJob is asked":  {queued("a", ticked("sj", tick)), true},
		"a member, whose JobGroup is asked":    {queued("a", memberOf("b")), true},
		"one with an owner, which is asked":    {queued("a", ownedBy("sj", "uid")), true},
		"one that is Running":                  {queued("a", running(mine)), true},
		"one that has failed":                  {queued("a", failed(true)), true},
		"one that waits for a time of its own": {queued("a", func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = at(noon) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(needsAttention(c.run)).To(Equal(c.want))
		})
	}
}

func wakened(names ...string) []reconcile.Request {
	var requests []reconcile.Request
	for _, n := range names {
		requests = append(requests, request("ns", n))
	}
	return requests
}

func TestARunWakesTheRootOfItsChainAndTheRetryThatWaitsToBeRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		run  *batchv1alpha1.JobRun
		want []reconcile.Request
	}{
		"a chain of its own":      {queued("a"), nil},
		"a root with a retry":     {queued("a", withRetry("a-r1", "uid-a-r1")), wakened("a-r1")},
		"a retry":                 {queued("a-r1", child("a")), wakened("a")},
		"a retry that is retried": {queued("a-r1", child("a"), withRetry("a-r2", "uid")), wakened("a", "a-r2")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(relatives(t.Context(), c.run)).To(Equal(c.want))
			g.Expect(concernsRelatives(c.run)).To(Equal(c.want != nil))
		})
	}
}

func TestAScheduledJobWakesTheRunsOfTheTicksThatItHandledLast(t *testing.T) {
	g := NewWithT(t)
	g.Expect(latestOf(t.Context(), scheduledJob())).To(BeEmpty())
	g.Expect(latestOf(t.Context(), scheduledJob(func(sj *batchv1alpha1.ScheduledJob) {
		sj.Status.LastRunName, sj.Status.LastSkippedTime = "sj-1", at(tick)
	}))).To(Equal(wakened("sj-1", schedule.RunName("sj", tick))))
}

func TestAScheduledJobThatAppearsWakesTheRunsThatAreToDoWhatItSays(t *testing.T) {
	b := start(t, queued("waits", naming("sj")), queued("another", naming("other")), queued("ticked", ticked("sj", tick)))
	NewWithT(t).Expect(b.r.waitingFor(t.Context(), scheduledJob())).To(Equal(wakened("waits")))
}

func TestAJobOrPodWakesTheRunThatItWorksFor(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{batchv1alpha1.LabelRun: "a"}}}
	g.Expect(worksFor(t.Context(), pod)).To(Equal(wakened("a")))
	g.Expect(labelled.Generic(event.GenericEvent{Object: pod})).To(BeTrue())
	g.Expect(labelled.Generic(event.GenericEvent{Object: &batchv1.Job{}})).To(BeFalse())
}

func TestOnlyTheEndOfAPodCompletesAStop(t *testing.T) {
	in := func(phase corev1.PodPhase) client.Object { return &corev1.Pod{Status: corev1.PodStatus{Phase: phase}} }
	g := NewWithT(t)
	g.Expect(podEnds.Update(event.UpdateEvent{ObjectOld: in(corev1.PodRunning), ObjectNew: in(corev1.PodSucceeded)})).To(BeTrue())
	g.Expect(podEnds.Update(event.UpdateEvent{ObjectOld: in(corev1.PodPending), ObjectNew: in(corev1.PodFailed)})).To(BeTrue())
	g.Expect(podEnds.Update(event.UpdateEvent{ObjectOld: in(corev1.PodFailed), ObjectNew: in(corev1.PodFailed)})).To(BeFalse())
	g.Expect(podEnds.Update(event.UpdateEvent{ObjectOld: in(corev1.PodPending), ObjectNew: in(corev1.PodRunning)})).To(BeFalse())
	g.Expect(podEnds.Create(event.CreateEvent{Object: in(corev1.PodSucceeded)})).To(BeFalse())
	g.Expect(podEnds.Delete(event.DeleteEvent{Object: in(corev1.PodRunning)})).To(BeTrue())
}

func TestTheExecutorIsThatOfTheWork(t *testing.T) {
	g := NewWithT(t)
	pods, calls := &work{}, &work{}
	e := Executors{Job: pods, HTTP: calls}
	g.Expect(e.For(queued("a"))).To(BeIdenticalTo(pods))
	g.Expect(e.For(queued("a", calling))).To(BeIdenticalTo(calls))
	g.Expect(e.For(queued("a", naming("sj")))).To(BeNil())
}
