// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

type members = []batchv1alpha1.GroupMember

func TestASequenceNeverHasTwoMembersAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/": failsOnce("g-a", "g-b")})
	w.queue("default", 3)
	w.queue("other", 3)
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/"), w.calling("b", s.URL+"/", inQueue("other")), w.calling("c", s.URL+"/")}))
	g := w.ends("g", "Completed: a Completed, b Completed, c Completed")
	w.Expect(s.runs()).To(Equal([]string{"g-a", "g-a-r1", "g-b", "g-b-r1", "g-c"}), "a failure that a retry makes good is none, and the next waits for it")
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.Expect(g.Status.Reason).To(Equal(batchv1alpha1.ReasonMembersSettled))
	w.Expect(g.Status.Message).To(Equal("3 Completed"))
	for _, told := range g.Status.Members {
		r := w.get("g-" + told.Name)
		w.Expect(told.RunName).To(Equal(r.Name))
		w.Expect(told.RunUID).To(Equal(r.UID))
	}
	w.Expect(w.get("g-b").Status.StartedAt.Time).To(BeTemporally(">=", w.get("g-a-r1").Status.FinishedAt.Time))
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(5))
}

func TestAParallelGroupQueuesAllAtOnceAndItsQueuesSayHowManyAreAtWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	w.queue("two", 2)
	m := w.start()
	hold := func(name string) batchv1alpha1.GroupMember { return w.calling(name, s.URL+"/hold", inQueue("two")) }
	w.create(w.group("g", members{hold("a"), hold("b"), hold("c"), w.calling("d", s.URL+"/hold")}, parallelGroup))
	w.stands("g", "Running: a Running, b Running, c Queued, d Running")
	w.Eventually(s.log).Should(HaveLen(3))
	release()
	w.ends("g", "Completed: a Completed, b Completed, c Completed, d Completed")
	w.Expect(s.most.Load()).To(BeEquivalentTo(3))
	w.Expect(s.runs()).To(HaveLen(4))
	w.idempotent(m)
}

func TestWhatTheFailureOfAMemberDoesToASequence(t *testing.T) {
	for policy, c := range map[batchv1alpha1.GroupFailurePolicy]struct {
		ends string
		runs []string
		made bool
	}{
		batchv1alpha1.GroupStop:     {"Failed: a Completed, b Failed, c Cancelled, d Cancelled", []string{"g-a", "g-b", "g-b-r1"}, false},
		batchv1alpha1.GroupSkip:     {"Failed: a Completed, b Failed, c Skipped, d Skipped", []string{"g-a", "g-b", "g-b-r1"}, false},
		batchv1alpha1.GroupContinue: {"Failed: a Completed, b Failed, c Completed, d Completed", []string{"g-a", "g-b", "g-b-r1", "g-c", "g-d"}, true},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := refuses(t)
			m := w.start()
			w.create(w.group("g", members{
				w.calling("a", s.URL), w.calling("b", s.URL+"/bad"), w.calling("c", s.URL), w.calling("d", s.URL),
			}, onFailure(policy)))
			g := w.ends("g", c.ends)
			w.Expect(s.runs()).To(Equal(c.runs))
			w.Expect(s.most.Load()).To(BeEquivalentTo(1))
			w.Expect(g.Status.Reason).To(Equal(batchv1alpha1.ReasonMemberFailed))
			w.Expect(g.Status.Message).To(HavePrefix("member b has failed: all 1 automatic retries are used up"))
			w.Expect(told(g, "b").Reason).To(Equal(batchv1alpha1.ReasonRetriesExhausted))
			if !c.made {
				w.neverMade(g, "c", "d")
				w.Expect(told(g, "d").Reason).To(Equal(batchv1alpha1.ReasonMemberFailed))
				w.Expect(told(g, "d").Message).To(HaveSuffix("because member b has failed"))
			}
			w.idempotent(m)
			w.Expect(s.runs()).To(Equal(c.runs))
		})
	}
}

func TestWhatTheFailureOfAMemberDoesToThoseBesideIt(t *testing.T) {
	for policy, c := range map[batchv1alpha1.GroupFailurePolicy]struct {
		meanwhile, ends string
		runs            []string
		waits           string // the reason of the one that waited
	}{
		batchv1alpha1.GroupStop: {
			"", "Failed: works Cancelled, fails Failed, waits Cancelled, delayed Cancelled",
			[]string{"g-delayed", "g-fails", "g-works"}, batchv1alpha1.ReasonMemberFailed,
		},
		batchv1alpha1.GroupSkip: {
			"Running: works Running, fails Failed, waits Skipped, delayed Skipped",
			"Failed: works Completed, fails Failed, waits Skipped, delayed Skipped",
			[]string{"g-delayed", "g-fails", "g-works"}, batchv1alpha1.ReasonMemberFailed,
		},
		batchv1alpha1.GroupContinue: {
			"Running: works Running, fails Failed, waits Queued, delayed Queued",
			"Failed: works Completed, fails Failed, waits Completed, delayed Completed",
			[]string{"g-delayed", "g-delayed-r1", "g-fails", "g-waits", "g-works"}, batchv1alpha1.ReasonSucceeded,
		},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			answer, release := block(t)
			fail, failNow := block(t)
			s := newServer(t, map[string]http.HandlerFunc{
				"/hold": answer, "/flaky": failsOnce("g-delayed"),
				"/bad": func(rw http.ResponseWriter, r *http.Request) { fail(discard{rw}, r); rw.WriteHeader(http.StatusTeapot) },
			})
			w.queue("default", 4)
			open := w.gated("gate")
			m := w.start()
			w.create(w.group("g", members{
				w.calling("works", s.URL+"/hold"), w.calling("fails", s.URL+"/bad", retries(0)),
				w.calling("waits", s.URL, inQueue("gate")), w.calling("delayed", s.URL+"/flaky", backOff(3600)),
			}, parallelGroup, onFailure(policy)))
			w.Eventually(w.phase("g-delayed-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
			w.stands("g", "Running: works Running, fails Running, waits Queued, delayed Queued")
			failNow()
			if c.meanwhile != "" {
				w.stands("g", c.meanwhile)
			}
			if policy == batchv1alpha1.GroupContinue {
				open()
				w.forward("g-delayed-r1")
			}
			if c.meanwhile != "" {
				release()
			}
			g := w.ends("g", c.ends)
			w.Expect(s.runs()).To(ConsistOf(c.runs))
			w.Expect(g.Status.Message).To(HavePrefix("member fails has failed"))
			w.Expect(w.get("g-waits").Status.Reason).To(Equal(c.waits))
			w.idempotent(m)
			w.Expect(s.runs()).To(ConsistOf(c.runs))
		})
	}
}

func TestWhatIsAtWorkWhenTheRestIsSkippedIsNotRetriedIfItFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fail, failNow := block(t)
	s := newServer(t, map[string]http.HandlerFunc{
		"/bad":  func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) },
		"/late": func(rw http.ResponseWriter, r *http.Request) { fail(discard{rw}, r); rw.WriteHeader(http.StatusTeapot) },
	})
	w.queue("default", 2)
	m := w.start()
	w.create(w.group("g", members{w.calling("late", s.URL+"/late", retries(3)), w.calling("bad", s.URL+"/bad", retries(0))},
		parallelGroup, onFailure(batchv1alpha1.GroupSkip)))
	w.stands("g", "Running: late Running, bad Failed")
	w.Eventually(func() *batchv1alpha1.Halt { return w.get("g-late").Status.Halt }).ShouldNot(BeNil())
	failNow()
	g := w.ends("g", "Failed: late Failed, bad Failed")
	w.Expect(g.Status.Message).To(Equal("members late, bad have failed"))
	w.idempotent(m)
	w.Expect(s.runs()).To(ConsistOf("g-late", "g-bad"))
}

func TestTwoGroupsWhoseRunsWouldHaveOneNameBothRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.queue("default", 2)
	m := w.start()
	long := strings.Repeat("m", 63)
	w.create(
		w.group("x-y", members{w.calling("z", s.URL+"/1"), w.calling(long, s.URL+"/1")}),
		w.group("x", members{w.calling("y-z", s.URL+"/2"), w.calling("y-"+long[2:], s.URL+"/2")}),
	)
	w.ends("x-y", "Completed: z Completed, "+long+" Completed")
	w.ends("x", "Completed: y-z Completed, y-"+long[2:]+" Completed")
	w.Expect(s.on("/1")).To(HaveLen(2))
	w.Expect(s.on("/2")).To(HaveLen(2))
	w.Expect(w.allRuns()).To(HaveLen(4))
	w.idempotent(m)
}

// discard is an answer of which nothing is sent.
type discard struct{ http.ResponseWriter }

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestASequenceWaitsForThePodOfAMemberThatHasFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.start()
	kubelet.HoldTermination(w.ns)
	w.create(w.group("g", members{w.podded("a", retries(0), within(3)), w.podded("b", exits("0"))}, onFailure(batchv1alpha1.GroupContinue)))
	w.terminating("g-a")
	w.Consistently(func() string { return standing(w.readGroup("g")) }).WithTimeout(still).
		Should(Equal("Running: a Running, b Waiting"), "the pod is alive")
	kubelet.ReleaseTermination(w.ns)
	w.ends("g", "Failed: a Failed, b Completed")
	w.Expect(w.lives()).To(Equal([]string{"Started g-a", "Ended g-a", "Started g-b", "Ended g-b"}))
	w.Expect(told(w.readGroup("g"), "a").Reason).To(Equal(batchv1alpha1.ReasonTimeout))
	w.idempotent(m)
}

func TestAMemberThatHasNothingToDoIsNoFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/idle": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotModified) }})
	m := w.start()
	w.create(w.group("g", members{
		w.calling("a", s.URL+"/idle", func(r *batchv1alpha1.JobRun) { r.Spec.Work.HTTP.SkipStatusCodes = []int32{http.StatusNotModified} }),
		w.calling("b", s.URL),
	}))
	g := w.ends("g", "Completed: a Skipped, b Completed")
	w.Expect(g.Status.Message).To(Equal("1 Completed, 1 Skipped"))
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"g-a", "g-b"}))
}

func TestWhatKubectlSaysOfGroups(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := refuses(t)
	w.start()
	w.create(
		w.group("fine", members{w.calling("a", s.URL), w.calling("b", s.URL)}),
		w.group("poor", members{w.calling("a", s.URL+"/bad", retries(0)), w.calling("b", s.URL)}, parallelGroup, onFailure(batchv1alpha1.GroupContinue)),
	)
	w.kubectl("wait", "jg/fine", "--for=condition=Complete", "--timeout=60s")
	w.kubectl("wait", "jg/poor", "--for=condition=Failed", "--timeout=60s")
	table := strings.Split(strings.TrimSpace(w.kubectl("get", "jg")), "\n")
	w.Expect(strings.Fields(table[0])).To(Equal([]string{"NAME", "PHASE", "MODE", "ON-FAILURE", "SETTLED", "REASON", "STARTED", "FINISHED", "AGE"}))
	w.Expect(strings.Fields(table[1])[:6]).To(Equal([]string{"fine", "Completed", "Sequential", "Stop", "2/2", batchv1alpha1.ReasonMembersSettled}))
	w.Expect(strings.Fields(table[2])[:6]).To(Equal([]string{"poor", "Failed", "Parallel", "Continue", "2/2", batchv1alpha1.ReasonMemberFailed}))
	w.Expect(strings.Fields(table[1])).To(HaveLen(9))
	w.Expect(w.kubectl("get", "jg", "poor", "-o", `jsonpath={range .status.members[*]}{.name} {.phase} {.reason}{"\n"}{end}`)).
		To(Equal("a Failed WorkFailed\nb Completed Succeeded\n"))
	w.Expect(strings.Fields(w.kubectl("get", "jr", "--field-selector", "spec.groupRef.name=poor", "-o", "name"))).
		To(Equal([]string{"jobrun.batch.reprise.dev/poor-a", "jobrun.batch.reprise.dev/poor-b"}))
}
