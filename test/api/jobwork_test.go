// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	jobwork "reprise.dev/reprise/internal/executor/job"
	"reprise.dev/reprise/internal/fakekubelet"
)

// still is for how long nothing may happen that must not: more than the second after which the queue looks at deleted runs again.
const still = 2 * time.Second

// exits makes the pods of a run end at once, with the exit code.
func exits(code string) func(*batchv1alpha1.JobRun) {
	return podsRun(fakekubelet.RunsImmediately, code)
}

// environments returns the environment of the container of each pod of the namespace, in the order of their start.
func (w *world) environments() []map[string]string {
	var all []map[string]string
	for _, e := range kubelet.History() {
		if e.Pod.Namespace != w.ns || e.Kind != fakekubelet.Started {
			continue
		}
		env := map[string]string{}
		for _, v := range e.Pod.Spec.Containers[0].Env {
			env[v.Name] = v.Value
		}
		all = append(all, env)
	}
	return all
}

// terminating waits until the pod of a run has been asked to end.
func (w *world) terminating(run string) {
	w.t.Helper()
	w.Eventually(func() bool {
		pods := &corev1.PodList{}
		w.Expect(w.List(w.ctx, pods, client.InNamespace(w.ns), client.MatchingLabels{batchv1alpha1.LabelRun: run})).To(Succeed())
		return len(pods.Items) == 1 && pods.Items[0].DeletionTimestamp != nil
	}).Should(BeTrue(), func() string { return w.story() })
}

func TestARunOfJobWorkCompletesWithItsJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.create(w.jobRun("hello", exits("0")))
	r := w.eventually("hello", batchv1alpha1.JobRunCompleted)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSucceeded))
	w.Expect(r.Status.Result.ExitCode).To(HaveValue(BeZero()))
	w.slotFree("hello")
	job := w.job(r)
	w.Expect(job.Name).To(Equal(r.Status.JobName))
	w.Expect(metav1.IsControlledBy(job, r)).To(BeTrue())
	w.Expect(job.Spec.BackoffLimit).To(HaveValue(BeZero()))
	w.Expect(job.Labels).To(HaveKeyWithValue(batchv1alpha1.LabelRunUID, string(r.UID)))
	w.Expect(w.environments()).To(ConsistOf(And(
		HaveKeyWithValue(jobwork.EnvRun, w.ns+"/hello"),
		HaveKeyWithValue(jobwork.EnvAttempt, "0"),
		HaveKeyWithValue(jobwork.EnvIdempotencyKey, string(r.UID)),
	)))
}

func TestAFailedJobIsRetriedByAnotherRunWithTheSameKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.create(w.jobRun("flaky"))
	w.endPod(w.get("flaky"), 3)
	r := w.eventually("flaky", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkFailed))
	w.Expect(r.Status.Message).To(ContainSubstring("container main exited with code 3"))
	w.Expect(r.Status.Result.ExitCode).To(HaveValue(BeEquivalentTo(3)))
	w.endPod(w.eventually("flaky-r1", batchv1alpha1.JobRunRunning), 0)
	w.eventually("flaky-r1", batchv1alpha1.JobRunCompleted)
	w.settled("flaky", batchv1alpha1.ConditionComplete)

	w.Expect(w.keys()).To(Equal([]string{string(r.UID), string(r.UID)}))
	env := w.environments()
	w.Expect([]string{env[0][jobwork.EnvAttempt], env[1][jobwork.EnvAttempt]}).To(Equal([]string{"0", "1"}))
	w.Expect(w.lives()).To(Equal([]string{"Started flaky", "Ended flaky", "Started flaky-r1", "Ended flaky-r1"}))
}

func TestAnExitCodeThatSaysNothingToDoSkipsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.create(w.jobRun("idle", exits("42"), func(r *batchv1alpha1.JobRun) { r.Spec.Work.Job.SkipExitCodes = []int32{42} }))
	r := w.eventually("idle", batchv1alpha1.JobRunSkipped)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonNothingToDo))
	w.Expect(r.Status.Result.ExitCode).To(HaveValue(BeEquivalentTo(42)))
	w.settled("idle", batchv1alpha1.ConditionComplete)
	w.Expect(w.get("idle").Status.Retry).To(BeNil())
}

func TestAJobThatTakesTooLongFailsWithTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.create(w.jobRun("slow", retries(0), within(1)), w.jobRun("next", exits("0")))
	r := w.eventually("slow", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonTimeout))
	w.Expect(r.Status.Message).To(ContainSubstring("did not end within 1 s"))
	w.settled("slow", batchv1alpha1.ConditionFailed)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.lives()).To(Equal([]string{"Started slow", "Ended slow", "Started next", "Ended next"}))
}

func TestACancelledJobHasStoppedBeforeItIsCancelledAndBeforeTheNextRunStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.create(w.jobRun("victim"), w.jobRun("next", exits("0")))
	w.podOf(w.get("victim"))
	kubelet.HoldTermination(w.ns)
	w.cancelRun("victim")
	w.eventually("victim", batchv1alpha1.JobRunCancelling)
	w.terminating("victim")
	w.Consistently(func() []string { return []string{w.phase("victim")(), w.phase("next")()} }).
		WithTimeout(still).Should(Equal([]string{"Cancelling", "Queued"}), "the pod is alive")

	kubelet.ReleaseTermination(w.ns)
	r := w.eventually("victim", batchv1alpha1.JobRunCancelled)
	w.Expect(r.Status.Slot).To(Equal(batchv1alpha1.SlotFree))
	w.settled("victim", batchv1alpha1.ConditionComplete)
	w.Expect(w.get("victim").Status.Retry).To(BeNil())
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.lives()).To(Equal([]string{"Started victim", "Ended victim", "Started next", "Ended next"}))
}

func TestARunDeletedWhileItsPodTakesItsGraceFreesNoSlotEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.create(w.jobRun("deleted"), w.jobRun("next", exits("0")))
	w.podOf(w.get("deleted"))
	kubelet.HoldTermination(w.ns)
	w.Expect(w.Delete(w.ctx, w.get("deleted"))).To(Succeed())
	w.terminating("deleted")
	w.Eventually(w.phase("deleted")).Should(ContainSubstring("not found"))
	w.Consistently(w.phase("next")).WithTimeout(still).Should(Equal("Queued"), "the pod is alive")

	kubelet.ReleaseTermination(w.ns)
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(w.lives()).To(Equal([]string{"Started deleted", "Ended deleted", "Started next", "Ended next"}))
}

func TestAJobDeletedByHandFailsItsRunWhichIsRetriedOnceThePodHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.create(w.jobRun("robbed"))
	w.podOf(w.get("robbed"))
	kubelet.HoldTermination(w.ns)
	w.Expect(w.Delete(w.ctx, w.job(w.get("robbed")), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	w.terminating("robbed")
	w.Consistently(w.lives).WithTimeout(still).Should(Equal([]string{"Started robbed"}), "the pod is alive")

	kubelet.ReleaseTermination(w.ns)
	r := w.eventually("robbed", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonWorkMissing))
	w.Expect(r.Status.Message).To(ContainSubstring("was removed while the run was Running"))
	w.endPod(w.eventually("robbed-r1", batchv1alpha1.JobRunRunning), 0)
	w.settled("robbed", batchv1alpha1.ConditionComplete)
	w.Expect(w.lives()).To(Equal([]string{"Started robbed", "Ended robbed", "Started robbed-r1", "Ended robbed-r1"}))
}

func TestTheWorkOfAQueueUsesItsSlotsAndNeverOneMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const runs, limit = 20, 3
	w.queue("three", limit)
	name := func(i int) string { return fmt.Sprintf("run-%02d", i) }
	for i := range limit {
		w.create(w.jobRun(name(i), inQueue("three")))
	}
	for i := limit; i < runs; i++ {
		w.create(w.jobRun(name(i), inQueue("three"), podsRun("100ms", "0")))
	}
	for i := range limit {
		w.podOf(w.get(name(i)))
	}
	for i := range limit {
		w.endPod(w.get(name(i)), 0)
	}
	for i := range runs {
		w.eventually(name(i), batchv1alpha1.JobRunCompleted)
	}
	now, most, started := 0, 0, 0
	for _, e := range kubelet.History() {
		switch {
		case e.Pod.Namespace != w.ns:
		case e.Kind == fakekubelet.Started:
			now, started = now+1, started+1
			most = max(most, now)
		default:
			now--
		}
	}
	w.Expect(started).To(Equal(runs), "each run works once")
	w.Expect(most).To(Equal(limit))
}
