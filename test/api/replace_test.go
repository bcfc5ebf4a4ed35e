// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

func replacing(sj *batchv1alpha1.ScheduledJob) {
	sj.Spec.ConcurrencyPolicy = batchv1alpha1.ConcurrencyReplace
}

// running makes a ScheduledJob run what the run does.
func running(r *batchv1alpha1.JobRun) func(*batchv1alpha1.ScheduledJob) {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunTemplate = &r.Spec.JobRunTemplateSpec }
}

// tomorrow keeps a one-time ScheduledJob from firing until a test says so, by tick.
func tomorrow(sj *batchv1alpha1.ScheduledJob) { runsAt(time.Now().Add(24 * time.Hour))(sj) }

// tick fires a one-time ScheduledJob, for that many seconds ago, and returns the name of what the tick makes. So a test
// says when a tick comes.
func (w *world) tick(name string, ago int) string {
	w.t.Helper()
	at := time.Now().Add(-time.Duration(ago) * time.Second).Truncate(time.Second)
	sj := w.readSchedule(name)
	w.patch(sj, func() { sj.Spec.RunAt = ptr.To(metav1.NewTime(at)) })
	return schedule.RunName(name, at)
}

func TestATickReplacesARunOnlyOnceItsPodHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 5)
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, replacing, running(w.jobRun(""))))
	first := w.tick("sj", 20)
	w.podOf(w.eventually(first, batchv1alpha1.JobRunRunning))
	kubelet.HoldTermination(w.ns)
	second := w.tick("sj", 10)
	w.eventually(first, batchv1alpha1.JobRunCancelling)
	w.terminating(first)
	w.Expect(w.get(first).Status.Halt).To(HaveValue(Equal(batchv1alpha1.Halt{
		Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonReplaced,
		Message: "replaced by the tick of " + w.readSchedule("sj").Spec.RunAt.UTC().Format(time.RFC3339),
	})))
	w.Consistently(w.allRuns).WithTimeout(still).Should(Equal([]string{first}), "the pod is alive, and a slot is free")
	sj := w.readSchedule("sj")
	w.Expect(sj.Status.ReplacingSince.Time).To(BeTemporally("==", sj.Spec.RunAt.Time))
	w.Expect(meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionReady).Message).To(ContainSubstring("waits until 1 earlier runs are cancelled"))

	kubelet.ReleaseTermination(w.ns)
	w.podOf(w.eventually(second, batchv1alpha1.JobRunRunning))
	r := w.get(first)
	w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunCancelled))
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	w.Expect(r.Spec.Cancel).To(BeFalse(), "a controller writes no spec")
	w.Expect(w.lives()).To(Equal([]string{"Started " + first, "Ended " + first, "Started " + second}))
	w.endPod(w.get(second), 0)
	w.eventually(second, batchv1alpha1.JobRunCompleted)
	w.Eventually(func() int32 { return w.readSchedule("sj").Status.ActiveCount }).Should(BeZero())
	w.Expect(w.readSchedule("sj").Status.ReplacingSince).To(BeNil())
	w.idempotent(m)
}

func TestATickReplacesARunWhosePodTakesItsTimeAfterTheRunHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 5)
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, replacing, running(w.jobRun("", retries(0), within(2)))))
	kubelet.HoldTermination(w.ns)
	first := w.tick("sj", 20)
	w.terminating(first)
	second := w.tick("sj", 10)
	w.Consistently(w.allRuns).WithTimeout(still).Should(Equal([]string{first}), "the pod is alive")
	kubelet.ReleaseTermination(w.ns)
	w.endPod(w.eventually(second, batchv1alpha1.JobRunRunning), 0)
	w.settled(second, batchv1alpha1.ConditionComplete)
	w.Expect(w.lives()).To(Equal([]string{"Started " + first, "Ended " + first, "Started " + second, "Ended " + second}))
	w.idempotent(m)
}

func TestATickReplacesAChainWhoseRetryWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsAtFirst})
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, replacing, running(w.httpRun("", s.URL+"/flaky", backOff(3600)))))
	first := w.tick("sj", 20)
	w.Eventually(w.phase(first + "-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	second := w.tick("sj", 10)
	w.eventually(first+"-r1", batchv1alpha1.JobRunCancelled)
	root := w.settled(first, batchv1alpha1.ConditionComplete)
	w.Expect(root.Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))
	w.Expect(root.Status.Halt).To(BeNil())
	w.Expect(meta.FindStatusCondition(root.Status.Conditions, batchv1alpha1.ConditionComplete).Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	w.Eventually(w.phase(second + "-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	w.Expect(s.runs()).To(Equal([]string{first, second}))

	w.forward(second + "-r1")
	w.settled(second, batchv1alpha1.ConditionComplete)
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{first, second, second + "-r1"}))
}

func TestATickReplacesWhatAPersonHasStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	w.queue("default", 1)
	m := w.start()
	w.create(w.schedule("sj", s.URL+"/hold", tomorrow, replacing))
	byHand := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "by-hand"}}
	byHand.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
	w.create(byHand)
	w.Eventually(s.runs).Should(Equal([]string{"by-hand"}))
	name := w.tick("sj", 10)
	w.eventually("by-hand", batchv1alpha1.JobRunCancelled)
	w.Eventually(s.runs).Should(Equal([]string{"by-hand", name}))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.cancelRun(name)
	w.settled(name, batchv1alpha1.ConditionComplete)
	w.idempotent(m)
}

func TestTicksThatReplaceEachOtherNeverOverlapAndEachIsAccountedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 5)
	m := w.start()
	w.create(w.schedule("sj", "", replacing, running(w.jobRun("", adopting)), onSchedule("@every 2s")))
	w.Eventually(func() int { return len(w.fires("sj")) }).Should(BeNumerically(">=", 4))
	w.pause("sj")
	most, _ := w.atOnce()
	w.Expect(most).To(Equal(1))
	runs := w.fires("sj")
	for _, r := range runs[:len(runs)-1] {
		w.Expect(w.eventually(r.Name, batchv1alpha1.JobRunCancelled).Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	}
	last := runs[len(runs)-1]
	w.cancelRun(last.Name)
	w.settled(last.Name, batchv1alpha1.ConditionComplete)
	sj := w.readSchedule("sj")
	ticks := last.Spec.ScheduledTime.Sub(sj.CreationTimestamp.Time) / (2 * time.Second)
	w.Expect(sj.Status.MissedRuns).To(BeEquivalentTo(int(ticks)-len(runs)), "a tick has its run, or was overtaken and counted")
	w.idempotent(m)
}

func TestAScheduleWhoseQueueIsStuckIsBounded(t *testing.T) {
	t.Run("Allow: as many as may be queued", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		open := w.gated("default")
		w.create(w.schedule("sj", s.URL, onSchedule("@every 1s"), func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MaxQueuedRuns = 3 }))
		m := w.start()
		w.Eventually(func() string { return w.ready("sj") }).Should(ContainSubstring("3 earlier runs are not settled"))
		w.Consistently(w.allRuns).WithTimeout(2 * still).Should(HaveLen(3))
		open()
		w.Eventually(w.fired("sj", batchv1alpha1.JobRunCompleted)).Should(BeNumerically(">=", 5), "it goes on when there is room")
		w.pause("sj")
		sj := w.readSchedule("sj")
		w.Expect(sj.Status.MissedRuns).To(BeNumerically(">=", 3), "what passed meanwhile is counted")
		w.Expect(s.runs()).To(ConsistOf(runNames(w.fires("sj"))))
		w.idempotent(m)
	})
	t.Run("Replace: the latest alone", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		open := w.gated("default")
		w.create(w.schedule("sj", s.URL, onSchedule("@every 1s"), replacing, func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MaxQueuedRuns = 1 }))
		m := w.start()
		w.Eventually(w.fired("sj", batchv1alpha1.JobRunCancelled)).Should(BeNumerically(">=", 3))
		w.pause("sj")
		w.Expect(w.fired("sj", batchv1alpha1.JobRunQueued)()).To(Equal(1))
		runs := w.fires("sj")
		latest := runs[len(runs)-1]
		w.Expect(latest.Status.Phase).To(Equal(batchv1alpha1.JobRunQueued), "%v", runNames(runs))
		open()
		w.eventually(latest.Name, batchv1alpha1.JobRunCompleted)
		w.idempotent(m)
		w.Expect(s.runs()).To(Equal([]string{latest.Name}))
	})
	t.Run("Replace, while a node does not answer: nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		m := w.start()
		kubelet.HoldTermination(w.ns)
		w.create(w.schedule("sj", "", running(w.jobRun("")), onSchedule("@every 2s"), replacing))
		w.Eventually(w.lives).Should(HaveLen(1))
		first := w.fires("sj")[0]
		w.Eventually(w.phase(first.Name)).Should(Equal(string(batchv1alpha1.JobRunCancelling)))
		w.Consistently(w.allRuns).WithTimeout(2 * still).Should(Equal([]string{first.Name}))
		w.pause("sj")
		kubelet.ReleaseTermination(w.ns)
		w.eventually(first.Name, batchv1alpha1.JobRunCancelled)
		w.settle()
		w.Expect(w.allRuns()).To(Equal([]string{first.Name}), "suspended, it gives up the tick that waited")
		w.idempotent(m)
	})
}

// ready reads what a ScheduledJob says of itself.
func (w *world) ready(name string) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.readSchedule(name).Status.Conditions, batchv1alpha1.ConditionReady)
	return ptr.Deref(c, metav1.Condition{}).Message
}

// pause suspends ScheduledJobs and waits until nothing happens any more.
func (w *world) pause(names ...string) {
	w.t.Helper()
	for _, name := range names {
		sj := w.readSchedule(name)
		w.patch(sj, func() { sj.Spec.Suspend = true })
		w.Eventually(func() bool {
			sj := w.readSchedule(name)
			return sj.Status.ObservedGeneration == sj.Generation
		}).Should(BeTrue())
	}
	w.settle()
}

func TestAManagerMayDieAtAnyWriteOfAReplacement(t *testing.T) {
	// The wait, the request to end, the new run, and its record.
	const writes = 4
	writesOfSchedule := func(r request) bool {
		switch {
		case r.method == http.MethodPut:
			return strings.HasSuffix(r.path, "/scheduledjobs/sj/status") || saying(`"phase":"Running"`, requestToEnd)(r)
		default:
			return r.method == http.MethodPost && strings.HasSuffix(r.path, "/jobruns")
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
				w.create(w.schedule("sj", "", tomorrow, replacing, running(w.jobRun("", adopting))))
				first := w.tick("sj", 20)
				w.podOf(w.eventually(first, batchv1alpha1.JobRunRunning))
				w.settle()
				before.stop()
				dying := w.startOn(x.dies(int64(n+1), landed, writesOfSchedule).config(), x.mortal)
				w.Expect(w.summary(dying)).To(counts(0, 0, 1, 0))
				second := w.tick("sj", 10)
				w.died(x)
				dying.stop()
				m := w.start()
				w.endPod(w.eventually(second, batchv1alpha1.JobRunRunning), 0)
				w.settled(second, batchv1alpha1.ConditionComplete)
				w.Expect(w.get(first).Status.Reason).To(BeElementOf(batchv1alpha1.ReasonReplaced, batchv1alpha1.ReasonCrashRecovery), "the latter if it was being cancelled")
				w.Expect(w.allRuns()).To(Equal([]string{first, second}))
				w.Expect(w.lives()).To(Equal([]string{"Started " + first, "Ended " + first, "Started " + second, "Ended " + second}))
				w.Expect(w.readSchedule("sj").Status.MissedRuns).To(BeZero())
				w.idempotent(m)
			})
		}
	}
}
