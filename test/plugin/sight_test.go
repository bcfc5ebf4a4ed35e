// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
	"reprise.dev/reprise/internal/plugin/foresee"
	"reprise.dev/reprise/internal/plugin/show"
)

// oneSlot is a queue of one slot.
func oneSlot(name string) *batchv1alpha1.JobQueue {
	return &batchv1alpha1.JobQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// read unmarshals what a command prints with -o json.
func read[T any](w *world, args ...string) (into T) {
	w.t.Helper()
	out := w.does(append(args, "-o", "json")...)
	w.Expect(json.Unmarshal([]byte(out), &into)).To(Succeed(), "%v: %s", args, out)
	return into
}

// crowded is a queue with one run at work, and one that waits behind it.
func crowded(t *testing.T) (*world, *server) {
	w, s := newWorld(t), newServer(t)
	w.manage()
	slow := httpWork(s.URL+"/slow", 0)
	slow.Queue = "gpu"
	w.create(oneSlot("gpu"), jobRun("first", slow))
	w.Eventually(w.phase("first")).Should(Equal(batchv1alpha1.JobRunRunning))
	w.create(jobRun("second", slow))
	return w, s
}

func TestAPersonSeesWhoRunsWhoWaitsAndWhy(t *testing.T) {
	w, _ := crowded(t)
	view := read[explain.QueueView](w, "queue", "gpu")
	w.Expect(view.Slots).To(HaveLen(1))
	w.Expect(view.Slots[0].Name).To(Equal("first"))
	w.Expect(view.Waiting).To(HaveLen(1))
	w.Expect(view.Waiting[0].Reason).To(Equal("LimitReached"))

	text := w.does("queue")
	w.Expect(text).To(MatchRegexp(`(?m)^jq/gpu +1 of 1 slots in use, 1 waiting$`))
	w.Expect(text).To(MatchRegexp(`(?m)^ +second +1 .*LimitReached`))
	w.Expect(text).NotTo(ContainSubstring("\x1b"), "this is no terminal")

	answer := read[explain.Answer](w, "why", "second")
	w.Expect(answer.Reason).To(Equal("LimitReached"))
	w.Expect(answer.Place).To(Equal(&explain.Place{Number: 1, Of: 1}))
	w.Expect(answer.Holders).To(HaveLen(1))
	w.Expect(answer.Holders[0].Name).To(Equal("first"))
	w.Expect(w.does("why", "second")).To(ContainSubstring("place 1 of 1 in jq/gpu"))
	w.Expect(w.does("why", "jr/first")).To(HavePrefix("first   Running"))

	w.create(&batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{Name: "maria"}, Spec: batchv1alpha1.DirectReservationSpec{Queue: "gpu"}})
	w.Eventually(func() string { return read[explain.Answer](w, "why", "dr/maria").Phase }).Should(Equal("Active"))
	w.Expect(read[explain.Answer](w, "why", "second").Place).To(Equal(&explain.Place{Number: 2, Of: 2}), "the reservation is served first")
	w.Expect(w.does("queue", "gpu")).To(MatchRegexp(`(?ms)^ +dr/maria +1 .*^ +second +2 `))
}

func TestAQueueIsWatchedLineByLineUntilItIsInterrupted(t *testing.T) {
	w, s := crowded(t)
	watching := w.begin("queue", "gpu", "--watch")
	w.Eventually(watching.out.String).Should(ContainSubstring("jq/gpu second Queued LimitReached\n"))
	s.release()
	w.Eventually(watching.out.String).Should(ContainSubstring("jq/gpu first gone\n"))
	w.Eventually(watching.out.String).Should(ContainSubstring("jq/gpu second gone\n"))
	watching.signal(syscall.SIGINT)
	w.Expect(watching.result().code).To(Equal(130))
}

func TestATerminalShowsAQueueLiveAndIsLeftAsItWas(t *testing.T) {
	w, s := crowded(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(programs, "kubectl-reprise"), "queue", "gpu", "--watch", "--kubeconfig="+plane.Kubeconfig(), "--namespace="+w.ns)
	cmd.Env = []string{"TERM=xterm", "HOME=" + t.TempDir()}
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	w.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = terminal.Close() }()
	screen, ended := &output{}, make(chan error, 1)
	go func() {
		_, _ = io.Copy(screen, terminal)
		ended <- cmd.Wait()
	}()
	w.Eventually(screen.String).Should(MatchRegexp(`second.*LimitReached`))
	s.release()
	w.Eventually(screen.String).Should(ContainSubstring("0 of 1 slots in use, 0 waiting"))
	w.Expect(screen.String()).To(HavePrefix("\x1b[?1049h"), "a screen of its own")
	_, err = terminal.Write([]byte{3}) // Ctrl-C
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(ended, patience).Should(Receive())
	w.Expect(cmd.ProcessState.ExitCode()).To(Equal(130))
	w.Expect(screen.String()).To(ContainSubstring("\x1b[?1049l"), "and back")
	w.Expect(screen.String()).To(ContainSubstring("\x1b[?25h"), "with the cursor")
}

func TestARunIsShownWithItsRetriesWhicheverIsNamed(t *testing.T) {
	w, s := newWorld(t), newServer(t)
	w.manage()
	w.create(jobRun("broken", httpWork(s.URL+"/broken", 1)))
	w.Eventually(func() bool {
		r := w.run("broken")
		return r.Status.Chain != nil && r.Status.Chain.Attempts == 2 && w.phase("broken-r1")() == batchv1alpha1.JobRunFailed
	}).Should(BeTrue())
	w.does("retry", "broken-r1")
	root := read[show.Node](w, "tree", "broken")
	w.Expect(root.Name).To(Equal("broken"))
	w.Expect(len(root.Children)).To(BeNumerically(">=", 2), "the automatic one, and the one by hand")
	w.Expect(root.Children[0].Name).To(Equal("broken-r1"))
	byName := read[show.Node](w, "tree", "jobruns/broken-r1")
	w.Expect(byName.Name).To(Equal("broken"))
	w.Expect(w.does("tree", "broken")).To(MatchRegexp(`(?m)^├─ broken-r1 +Failed`))
}

func TestAGroupAndAScheduledJobAreShownAsTrees(t *testing.T) {
	w, s := newWorld(t), newServer(t)
	w.manage()
	group := batchv1alpha1.JobGroupTemplateSpec{Members: []batchv1alpha1.GroupMember{
		{Name: "build", RunTemplate: httpWork(s.URL+"/ok", 0)}, {Name: "test", RunTemplate: httpWork(s.URL+"/slow", 0)}, {Name: "deploy", RunTemplate: httpWork(s.URL+"/ok", 0)},
	}}
	once := scheduledJob("release", batchv1alpha1.JobRunTemplateSpec{})
	once.Spec.RunTemplate, once.Spec.GroupTemplate, once.Spec.RunAt = nil, &group, ptr.To(metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second)))
	w.create(once)
	w.Eventually(func() string { return w.does("tree", "sj/release") }).Should(MatchRegexp(`(?s)└─ jg/release-\d+ +Running.*├─ build +Completed.*│  └─ \S+-build +Completed.*├─ test +Running.*└─ deploy +Waiting`))
	tree := read[show.Node](w, "tree", "sj/release")
	w.Expect(w.does("tree", "jg/"+tree.Children[0].Name)).To(MatchRegexp(`(?m)^└─ deploy +Waiting`))
	s.release()
	w.Eventually(func() string { return w.does("tree", "sj/release") }).Should(MatchRegexp(`└─ jg/release-\d+ +Completed`))
}

func TestTheNextTicksAreToldOfWhatIsAppliedAndOfAFile(t *testing.T) {
	w := newWorld(t)
	sj := scheduledJob("nightly", httpWork("http://worker.example/", 0))
	sj.Spec.Schedule, sj.Spec.TimeZone = "0 7 * * *", "Europe/Lisbon"
	w.create(sj)
	forecast := read[foresee.Forecast](w, "next", "nightly", "--count", "3")
	w.Expect(forecast.Fires).To(HaveLen(3))
	w.Expect(forecast.TimeZone).To(Equal("Europe/Lisbon"))

	file := filepath.Join(t.TempDir(), "sj.yaml")
	w.Expect(os.WriteFile(file, []byte(strings.Join([]string{
		"apiVersion: batch.reprise.dev/v1alpha1", "kind: ScheduledJob", "metadata: {name: bad}", "spec: {schedule: '0 7 * *', runTemplate: {work: {http: {url: http://x/}}}}",
		"---", "apiVersion: batch.reprise.dev/v1alpha1", "kind: ScheduledJob", "metadata: {name: good}", "spec: {schedule: '@hourly', runTemplate: {work: {http: {url: http://x/}}}}",
	}, "\n")), 0o600)).To(Succeed())
	r := launch(t, nil, "next", "-f", file, "-c", "1").result() // without a cluster
	w.Expect(r.code).To(Equal(1))
	w.Expect(r.out).To(HavePrefix("sj/good   @hourly   UTC\n"), "one that is bad keeps no other from being told")
	w.Expect(r.err).To(ContainSubstring("ScheduledJob bad: invalid schedule"))

	for _, args := range [][]string{{"next"}, {"next", "nightly", "-f", file}, {"next", "nightly", "--count", "0"}, {"next", "jr/nightly"}, {"plan", "resume"}, {"plan", "nightly"}, {"tree"}, {"why", "jg/x"}, {"queue", "--limit", "-1"}} {
		w.Expect(w.reprise(args...).code).To(Equal(2), "%v", args)
	}
}

func TestAPlanTellsWhatARestartAndAResumeWouldDoAndDoesNothing(t *testing.T) {
	w, s := newWorld(t), newServer(t)
	stop := w.manage()
	w.create(jobRun("call", httpWork(s.URL+"/slow", 1)))
	paused := scheduledJob("paused", httpWork(s.URL+"/ok", 0))
	paused.Spec.Schedule, paused.Spec.Suspend = "@every 1s", true
	w.create(paused)
	w.Eventually(w.phase("call")).Should(Equal(batchv1alpha1.JobRunRunning))
	before := w.run("call").ResourceVersion

	plan := read[foresee.Plan](w, "plan")
	var steps []string
	for _, step := range plan.Steps {
		steps = append(steps, string(step.Action)+" "+step.Name)
	}
	w.Expect(steps).To(Equal([]string{"Fail call", "Retry call-r1"}))
	w.Expect(plan.Counts.RunningFailed).To(Equal(1))
	w.Expect(w.does("plan", "--all-namespaces")).To(ContainSubstring("in namespace " + w.ns + ":"))
	w.Expect(w.reprise("plan", "resume", "sj/paused", "-A").code).To(Equal(2))
	w.Expect(w.does("plan", "resume", "sj/paused")).To(ContainSubstring("nothing would be done"))
	w.Expect(w.run("call").ResourceVersion).To(Equal(before))

	queue := oneSlot("gpu")
	queue.Spec.Suspend = true
	held := httpWork(s.URL+"/ok", 0)
	held.Queue = "gpu"
	w.create(queue, jobRun("held", held))
	w.Expect(w.does("plan", "resume", "jq/gpu")).To(MatchRegexp(`Admit +held`))
	stop()
}

// What is planned is what happens: nobody is there to fire, then somebody is.
func TestAPlanOfARestartComesTrue(t *testing.T) {
	w, s := newWorld(t), newServer(t)
	due := scheduledJob("due", httpWork(s.URL+"/ok", 0))
	due.Spec.RunAt = ptr.To(metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second)))
	w.create(due)
	plan := read[foresee.Plan](w, "plan", "restart")
	w.Expect(plan.Steps).To(HaveLen(1))
	w.Expect(plan.Steps[0].Action).To(Equal(foresee.ActionFire))
	w.manage()
	w.Eventually(w.phase(plan.Steps[0].Name)).Should(Equal(batchv1alpha1.JobRunCompleted))
}
