// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// created returns the name of the run that a command says it has created.
func (w *world) created(out string) string {
	w.t.Helper()
	line, _, _ := strings.Cut(out, "\n")
	name, ok := strings.CutPrefix(line, "jobrun.batch.reprise.dev/")
	w.Expect(ok).To(BeTrue(), out)
	name, _, _ = strings.Cut(name, " ")
	return name
}

// file writes a file.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunWaitsForTheEndAndTellsItByTheExitCode(t *testing.T) {
	w := newWorld(t)
	s := newServer(t)
	w.manage()
	group := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Name: "both"}}
	group.Spec.GroupTemplate = &batchv1alpha1.JobGroupTemplateSpec{Members: []batchv1alpha1.GroupMember{
		{Name: "first", RunTemplate: httpWork(s.URL+"/ok", 0)}, {Name: "second", RunTemplate: httpWork(s.URL+"/ok", 0)},
	}}
	w.create(scheduledJob("good", httpWork(s.URL+"/ok", 0)), scheduledJob("bad", httpWork(s.URL+"/fails", 1)), group)

	good := w.reprise("run", "good", "--wait")
	w.Expect(good.code).To(BeZero(), good.err)
	name := w.created(good.out)
	w.Expect(good.out).To(Equal("jobrun.batch.reprise.dev/" + name + " created\n" + name + " is Completed\n"))
	w.Expect(w.run(name).Spec.ScheduledJobRef.Name).To(Equal("good"))

	bad := w.reprise("run", "bad", "--wait", "--name=asked", "--priority=7")
	w.Expect(bad.code).To(Equal(1))
	w.Expect(bad.err).To(ContainSubstring("it is retried by asked-r1\n"))
	w.Expect(bad.err).To(ContainSubstring("error: asked-r1 is Failed (WorkFailed): "))
	w.Expect(*w.run("asked").Spec.Priority).To(BeEquivalentTo(7))

	all := w.reprise("run", "sj/both", "--wait")
	w.Expect(all.code).To(BeZero(), all.err)
	w.Expect(all.out).To(MatchRegexp(`^jobgroup.batch.reprise.dev/(both-run-\S+) created\nboth-run-\S+ is Completed\n$`))

	ended := &batchv1alpha1.JobRun{}
	w.Expect(json.Unmarshal([]byte(w.does("run", "good", "--wait", "-o", "json")), ended)).To(Succeed())
	w.Expect(ended.Status.Phase).To(Equal(batchv1alpha1.JobRunCompleted), "with -o json the object is printed as it has ended")
}

func TestTheLogsOfTheWorkAreFollowed(t *testing.T) {
	w := newWorld(t)
	s := newServer(t)
	w.manage()
	w.create(scheduledJob("good", httpWork(s.URL+"/ok", 0)), jobRun("bad", httpWork(s.URL+"/fails", 0)))

	good := w.reprise("run", "good", "--follow")
	w.Expect(good.code).To(BeZero(), good.err)
	name := w.created(good.out)
	w.Expect(good.out).To(MatchRegexp(`(?s)hello from /ok\n.*` + name + ` is Completed\n$`))

	w.Eventually(w.phase("bad")).Should(Equal(batchv1alpha1.JobRunFailed))
	again := w.reprise("retry", "bad", "--follow")
	w.Expect(again.code).To(Equal(1))
	w.Expect(again.out).To(ContainSubstring("hello from /fails\n"))

	w.Expect(w.reprise("run", "good", "--follow", "-o", "name").code).To(Equal(2))
}

func TestAWaitThatEndsEarlyLeavesTheRunAlone(t *testing.T) {
	w := newWorld(t)
	s := newServer(t)
	w.manage()
	w.create(scheduledJob("slow", httpWork(s.URL+"/slow", 0)))

	late := w.reprise("run", "slow", "--wait", "--timeout=1s", "--name=late")
	w.Expect(late.code).To(Equal(124))
	w.Expect(late.err).To(ContainSubstring("error: it has not ended within 1s, and goes on\n"))

	for signal, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		c := w.begin("run", "slow", "--wait")
		w.Eventually(c.err.String).Should(ContainSubstring("is Queued"))
		c.signal(signal)
		r := c.result()
		name := w.created(r.out)
		w.Expect(r.code).To(Equal(code))
		w.Expect(r.err).To(ContainSubstring(name + " goes on; kubectl reprise cancel " + name + " ends it\n"))
		w.Expect(w.run(name).Spec.Cancel).To(BeFalse())
	}

	s.release()
	w.Eventually(w.phase("late")).Should(Equal(batchv1alpha1.JobRunCompleted))
}

func TestRunTakesWhatAFileSays(t *testing.T) {
	w := newWorld(t)
	const template = `runTemplate: {work: {http: {url: "http://127.0.0.1:1/"}}}`
	sj := "apiVersion: batch.reprise.dev/v1alpha1\nkind: ScheduledJob\nmetadata: {name: not-applied}\nspec: {schedule: '@daily', " + template + "}\n"

	name := w.created(w.does("run", "-f", file(t, sj)))
	w.Expect(w.run(name).Spec.Work.HTTP.URL).To(Equal("http://127.0.0.1:1/"))
	w.Expect(w.run(name).Spec.ScheduledJobRef).To(BeNil())

	piped := w.begin("run", "-f", "-", "-o", "name")
	_, err := piped.in.Write([]byte("# a run\n---\napiVersion: batch.reprise.dev/v1alpha1\nkind: JobRun\nmetadata: {name: piped}\nspec: {work: {http: {url: 'http://127.0.0.1:1/'}}}\n"))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(piped.in.Close()).To(Succeed())
	w.Expect(piped.result()).To(Equal(result{0, "jobrun.batch.reprise.dev/piped\n", ""}))

	typo := w.reprise("run", "-f", file(t, strings.Replace(sj, "runTemplate", "runTemplat", 1)))
	w.Expect(typo.code).To(Equal(1))
	w.Expect(typo.err).To(ContainSubstring(`unknown field "spec.runTemplat"`))

	refused := w.reprise("run", "-f", file(t, strings.Replace(sj, "http://127.0.0.1:1/", "nowhere", 1)))
	w.Expect(refused.code).To(Equal(1))
	w.Expect(refused.err).To(MatchRegexp(`(?s)^error: JobRun "not-applied-run-\S+" is not accepted:\n  spec.work.http.url: .*must be an absolute http or https address`))

	patient := w.begin("run", "-f", "-")
	_, err = patient.in.Write(bytes.Repeat([]byte("# more than a pipe holds, so that somebody reads\n"), 1<<12))
	w.Expect(err).NotTo(HaveOccurred())
	patient.signal(syscall.SIGINT)
	w.Expect(patient.result().code).To(Equal(130))
}

func TestRetryTriesTheLatestOfAChainAgain(t *testing.T) {
	w := newWorld(t)
	s := newServer(t)
	w.manage()
	later := httpWork(s.URL+"/fails", 3)
	later.RetryPolicy.BaseDelaySeconds = ptr.To[int32](3600)
	w.create(jobRun("done", httpWork(s.URL+"/ok", 0)), jobRun("bad", httpWork(s.URL+"/fails", 1)), jobRun("patient", later))
	w.Eventually(w.phase("done")).Should(Equal(batchv1alpha1.JobRunCompleted))
	w.Eventually(w.phase("bad-r1")).Should(Equal(batchv1alpha1.JobRunFailed))
	w.Eventually(w.phase("patient-r1")).Should(Equal(batchv1alpha1.JobRunQueued))

	again := w.reprise("retry", "bad", "--wait")
	w.Expect(again.code).To(Equal(1))
	w.Expect(again.err).To(ContainSubstring("the latest run of the chain of bad is bad-r1\n"))
	name := w.created(again.out)
	w.Expect(w.run(name).Spec.RetryOf).To(Equal("bad-r1"))
	w.Expect(w.run(name).Status.Phase).To(Equal(batchv1alpha1.JobRunFailed))

	w.Expect(w.does("retry", "patient")).To(Equal("jobrun.batch.reprise.dev/patient-r1 brought forward\n"))
	w.Eventually(w.phase("patient-r1")).Should(Equal(batchv1alpha1.JobRunFailed))

	refused := w.reprise("retry", "done")
	w.Expect(refused.code).To(Equal(1))
	w.Expect(refused.err).To(Equal("error: run done is Completed; only a failed run can be retried\n"))
}

func TestCancelEndsRunsAndGroups(t *testing.T) {
	w := newWorld(t)
	s := newServer(t)
	w.manage()
	group := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Name: "group"}}
	group.Spec.Members = []batchv1alpha1.GroupMember{{Name: "first", RunTemplate: httpWork(s.URL+"/slow", 0)}}
	w.create(jobRun("done", httpWork(s.URL+"/ok", 0)))
	w.Eventually(w.phase("done")).Should(Equal(batchv1alpha1.JobRunCompleted))
	w.create(jobRun("slow", httpWork(s.URL+"/slow", 3)), jobRun("waits", httpWork(s.URL+"/ok", 0)), group)
	w.Eventually(w.phase("slow")).Should(Equal(batchv1alpha1.JobRunRunning))

	out := w.does("cancel", "waits", "slow", "jg/group", "--wait")
	for _, named := range []string{"jobrun.batch.reprise.dev/waits", "jobrun.batch.reprise.dev/slow", "jobgroup.batch.reprise.dev/group"} {
		w.Expect(out).To(ContainSubstring(named + " is to be cancelled\n"))
	}
	w.Expect(w.phase("slow")()).To(Equal(batchv1alpha1.JobRunCancelled))
	w.Expect(w.phase("waits")()).To(Equal(batchv1alpha1.JobRunCancelled))

	w.Expect(w.reprise("cancel", "slow")).To(Equal(result{0, "", "slow is Cancelled already\n"}))
	late := w.reprise("cancel", "done", "nowhere", "slow")
	w.Expect(late.code).To(Equal(1), "what fails does not keep the rest from it, and is told")
	w.Expect(late.err).To(ContainSubstring("error: done is Completed: there is nothing to cancel\n"))
	w.Expect(late.err).To(ContainSubstring(`error: there is no JobRun "nowhere"`))
	w.Expect(late.err).To(ContainSubstring("slow is Cancelled already\n"))
}

func TestAFailureWhoseRetryDoesNotExistYetIsCancelled(t *testing.T) {
	w := newWorld(t)
	r := jobRun("failed", httpWork("http://127.0.0.1:1/", 3))
	w.create(r)
	for _, phase := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunFailed} {
		r.Status.Phase = phase
		w.Expect(w.Status().Update(t.Context(), r)).To(Succeed())
	}
	w.Expect(w.does("cancel", "failed")).To(Equal("jobrun.batch.reprise.dev/failed is to be cancelled\n"))
	w.Expect(w.run("failed").Spec.Cancel).To(BeTrue())
}

func TestSuspendAndResume(t *testing.T) {
	w := newWorld(t)
	sj, jq := scheduledJob("nightly", httpWork("http://127.0.0.1:1/", 0)), &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	w.create(sj, jq)
	suspended := func() [2]bool {
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(sj), sj)).To(Succeed())
		w.Expect(w.Get(t.Context(), client.ObjectKeyFromObject(jq), jq)).To(Succeed())
		return [2]bool{sj.Spec.Suspend, jq.Spec.Suspend}
	}

	w.Expect(w.does("suspend", "nightly", "jq/gpu")).To(Equal("scheduledjob.batch.reprise.dev/nightly suspended\njobqueue.batch.reprise.dev/gpu suspended\n"))
	w.Expect(suspended()).To(Equal([2]bool{true, true}))
	w.Expect(w.reprise("suspend", "sj/nightly")).To(Equal(result{0, "", "nightly is suspended already\n"}))
	w.Expect(w.does("resume", "scheduledjobs.batch.reprise.dev/nightly", "jobqueue/gpu", "-o", "name")).To(Equal("scheduledjob.batch.reprise.dev/nightly\njobqueue.batch.reprise.dev/gpu\n"))
	w.Expect(suspended()).To(Equal([2]bool{false, false}))
	w.Expect(w.reprise("resume", "nightly")).To(Equal(result{0, "", "nightly is not suspended\n"}))
}

// announced makes a run that has ended, with an announcement in that state.
func (w *world) announced(name string, state batchv1alpha1.AnnouncementState) {
	w.t.Helper()
	r := jobRun(name, httpWork("http://127.0.0.1:1/", 0))
	w.create(r)
	r.Status.Phase = batchv1alpha1.JobRunCancelled
	r.Status.Announcements = []batchv1alpha1.Announcement{{Receiver: "hook", Event: "job.run.cancelled", State: state}}
	w.Expect(w.Status().Update(w.t.Context(), r)).To(Succeed())
}

func TestResendAsksForWhatWasGivenUpAlone(t *testing.T) {
	w := newWorld(t)
	w.announced("given-up", batchv1alpha1.AnnouncementAbandoned)
	w.announced("given-up-too", batchv1alpha1.AnnouncementAbandoned)
	w.announced("delivered", batchv1alpha1.AnnouncementDelivered)

	w.Expect(w.does("resend", "given-up")).To(Equal("jobrun.batch.reprise.dev/given-up is announced again\n"))
	first := w.run("given-up").Annotations[batchv1alpha1.AnnotationResend]
	w.Expect(first).NotTo(BeEmpty())
	w.Expect(w.does("resend", "--all", "-o", "name")).To(Equal("jobrun.batch.reprise.dev/given-up\njobrun.batch.reprise.dev/given-up-too\n"))
	w.Expect(w.run("given-up").Annotations[batchv1alpha1.AnnotationResend]).NotTo(Equal(first), "each request is another")
	w.Expect(w.reprise("resend", "delivered")).To(Equal(result{0, "", "no announcement of delivered was given up\n"}))
	w.Expect(w.run("delivered").Annotations).To(BeEmpty())
	w.Expect(w.reprise("resend", "--all", "delivered").code).To(Equal(2))
}

func TestConfirmStoppedWantsToBeSure(t *testing.T) {
	w := newWorld(t)
	r := jobRun("lost", httpWork("http://127.0.0.1:1/", 0))
	w.create(r, jobRun("waits", httpWork("http://127.0.0.1:1/", 0)))
	for _, phase := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunFailed} {
		r.Status.Phase, r.Status.Slot = phase, batchv1alpha1.SlotHeld
		w.Expect(w.Status().Update(t.Context(), r)).To(Succeed())
	}

	w.Expect(w.reprise("confirm-stopped", "lost").err).To(Equal("lost has no pod any more; wait for the manager to see it\n"))
	w.Expect(w.run("lost").Annotations).To(BeEmpty())
	w.does("confirm-stopped", "lost", "--yes")
	w.Expect(w.run("lost").Annotations).To(HaveKeyWithValue(batchv1alpha1.AnnotationConfirmStopped, string(r.UID)))
	w.Expect(w.reprise("confirm-stopped", "waits", "--yes").err).To(ContainSubstring("error: waits is Queued; only what was given up"))
}
