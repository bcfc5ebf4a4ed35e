// SPDX-License-Identifier: Apache-2.0

package jobwork

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// confirmedAs gives an object the label of the run, and a person's word about the run with that UID.
func confirmedAs(o metav1.Object, value string) {
	o.SetLabels(map[string]string{batchv1alpha1.LabelRunUID: uid})
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[batchv1alpha1.AnnotationConfirmStopped] = value
	o.SetAnnotations(annotations)
}

func podConfirmed(value string) podChange {
	return func(pod *corev1.Pod) { confirmedAs(pod, value) }
}

func jobConfirmed(value string) jobChange {
	return func(job *batchv1.Job) { confirmedAs(job, value) }
}

func ownerless(job *batchv1.Job) { job.OwnerReferences = nil }

func TestAPodThatAPersonConfirmedToBeGoneDoesNotLive(t *testing.T) {
	unlabelled := func(pod *corev1.Pod) { pod.Labels = nil }
	for name, c := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"confirmed by the UID of its run":             {aPod("p", podConfirmed(uid)), false},
		"confirmed on a node that never answers":      {aPod("p", terminating, podConfirmed(uid)), false},
		"confirmed by another UID":                    {aPod("p", terminating, podConfirmed("another")), true},
		"confirmed by the word yes":                   {aPod("p", podConfirmed("true")), true},
		"of no run, and confirmed by an empty value":  {aPod("p", podConfirmed(""), unlabelled), true},
		"of no run, and confirmed by the UID of some": {aPod("p", podConfirmed(uid), unlabelled), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Lives(&c.pod); got != c.want {
				t.Errorf("lives: %t", got)
			}
		})
	}
}

func TestAConfirmationOnAJobCountsUnlessTheJobGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		job  *batchv1.Job
		want bool
	}{
		"one that we stopped":                             {aJob(aRun(), sealedAs(SealedStopped), jobConfirmed(uid)), true},
		"one that is being deleted and waits for its pod": {aJob(aRun(), beingDeleted, jobConfirmed(uid)), true},
		"one that was left behind by its run":             {aJob(aRun(), ownerless, jobConfirmed(uid)), true},
		"one that is at work for its run":                 {aJob(aRun(), jobConfirmed(uid)), false},
		"another value":                                   {aJob(aRun(), sealedAs(SealedStopped), jobConfirmed("another")), false},
		"no confirmation":                                 {aJob(aRun(), sealedAs(SealedStopped)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := JobConfirmedStopped(c.job); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWhatAPersonConfirmedToBeGoneHoldsUpNoStop(t *testing.T) {
	r := aRun()
	lost := aPod("p", terminating)
	gone := aPod("p", terminating, podConfirmed(uid))
	for name, c := range map[string]struct {
		sight   Sight
		life    executor.Life
		stopped bool
		detail  string
	}{
		"the pod of a stopped Job": {
			Sight{Job: aJob(r, sealedAs(SealedStopped), suspensionSeen), Pods: []corev1.Pod{gone}}, executor.Unknown, true, "the work was stopped"},
		"the pod of a Job that was removed": {
			Sight{Pods: []corev1.Pod{gone}, Closed: true}, executor.Unknown, true, "its pods have ended"},
		"the pod of a Job that was removed, while its name is free": {
			Sight{Pods: []corev1.Pod{gone}}, executor.Unknown, true, "its pods have ended"},
		"one of two pods": {
			Sight{Job: aJob(r, sealedAs(SealedStopped), suspensionSeen), Pods: []corev1.Pod{gone, lost}}, executor.Alive, false, "pod p on node n1"},
		"a Job that is being deleted": {
			Sight{Job: aJob(r, beingDeleted, jobConfirmed(uid))}, executor.Unknown, true, "a person has confirmed"},
		"a stopped Job of which the Job controller says nothing": {
			Sight{Job: aJob(r, sealedAs(SealedStopped), jobConfirmed(uid))}, executor.Unknown, true, "a person has confirmed"},
		"a Job, but not its pod": {
			Sight{Job: aJob(r, sealedAs(SealedStopped), jobConfirmed(uid)), Pods: []corev1.Pod{lost}}, executor.Alive, false, "pod p on node n1"},
		"a Job that is at work": {
			Sight{Job: aJob(r, jobConfirmed(uid))}, executor.Alive, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := Judge(r, c.sight)
			g.Expect(e.Life).To(Equal(c.life))
			g.Expect(e.Stopped).To(Equal(c.stopped))
			g.Expect(e.Detail).To(ContainSubstring(c.detail))
		})
	}
}

func TestAnOutcomeWinsOverAConfirmation(t *testing.T) {
	g := NewWithT(t)
	e := Judge(aRun(), Sight{Job: aJob(aRun(), completed, jobConfirmed(uid))})
	g.Expect(e.Life).To(Equal(executor.Ended))
	g.Expect(e.Outcome.Phase).To(Equal(batchv1alpha1.JobRunCompleted))
}

func TestAPersonsWordCountsOnlyOnceNothingMoreCanBegin(t *testing.T) {
	r := aRun()
	lost := []corev1.Pod{aPod("p", terminating)}
	for name, c := range map[string]struct {
		sight Sight
		want  bool
	}{
		"the pods of a stopped Job":                                 {Sight{Job: aJob(r, sealedAs(SealedStopped), suspensionSeen), Pods: lost}, true},
		"the pods of a removed Job, whose name is taken":            {Sight{Job: aJob(r, sealedAs(SealedPlaceholder)), Pods: lost}, true},
		"the pods of a removed Job, whose name is in foreign hands": {Sight{Pods: lost, Closed: true}, true},
		"the last pods of a finished Job":                           {Sight{Job: aJob(r, completed), Pods: lost}, true},
		"a suspension that the Job controller has not seen":         {Sight{Job: aJob(r, sealedAs(SealedStopped)), Pods: lost}, false},
		"a Job that is going, and frees its name":                   {Sight{Job: aJob(r, sealedAs(SealedStopped), suspensionSeen, beingDeleted), Pods: lost}, false},
		"a Job that is at work":                                     {Sight{Job: aJob(r), Pods: lost}, false},
		"the pods of a removed Job, whose name is free":             {Sight{Pods: lost}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := Judge(r, c.sight)
			if e.Stopped || e.Confirmable != c.want {
				t.Errorf("stopped %t, confirmable %t", e.Stopped, e.Confirmable)
			}
		})
	}
}

func TestStoppedWorkIsDueAtTheEndOfTheFirstGrace(t *testing.T) {
	g := NewWithT(t)
	later := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: second.Add(time.Hour)} }
	r := aRun()
	pods := []corev1.Pod{aPod("running"), aPod("q", terminating, later), aPod("p", terminating)}
	for name, s := range map[string]Sight{
		"its Job is gone":          {Pods: pods, Closed: true},
		"its Job has ended":        {Job: aJob(r, completed), Pods: pods},
		"its Job was stopped":      {Job: aJob(r, sealedAs(SealedStopped), suspensionSeen), Pods: pods},
		"its Job is said to be so": {Job: aJob(r, beingDeleted, jobConfirmed(uid)), Pods: pods},
	} {
		g.Expect(Judge(r, s).Due).To(Equal(second.Add(30*time.Second)), name)
	}
	g.Expect(Judge(r, Sight{Pods: pods[:1], Closed: true}).Due).To(BeZero(), "nobody has asked the pod to end")
}

func TestWorkWhosePodsHaveEndedTellsWhenUntilItsJobSaysHow(t *testing.T) {
	g := NewWithT(t)
	r := aRun()
	ended := aPod("p", exited("main", 1, "Error", 7))
	g.Expect(Judge(r, Sight{Job: aJob(r), Pods: []corev1.Pod{ended}}).EndedAt).To(BeTemporally("==", second.Add(7*time.Second)))
	g.Expect(Judge(r, Sight{Job: aJob(r), Pods: []corev1.Pod{ended, aPod("q")}}).EndedAt).To(BeZero(), "another pod lives")
	g.Expect(Judge(r, Sight{Job: aJob(r)}).EndedAt).To(BeZero(), "there was none yet")
	g.Expect(Judge(r, Sight{Job: aJob(r, failedPods(1)), Pods: []corev1.Pod{ended}}).EndedAt).To(BeZero(), "the Job has said how")
}
