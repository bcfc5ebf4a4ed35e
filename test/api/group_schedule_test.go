// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
	"reprise.dev/reprise/internal/schedule"
)

// grouping makes a ScheduledJob make groups of these members.
func grouping(all members, change ...groupChange) func(*batchv1alpha1.ScheduledJob) {
	return func(sj *batchv1alpha1.ScheduledJob) {
		g := &batchv1alpha1.JobGroup{}
		g.Spec.Members = all
		for _, c := range change {
			c(g)
		}
		sj.Spec.RunTemplate, sj.Spec.GroupTemplate = nil, &g.Spec.JobGroupTemplateSpec
	}
}

// groupsOf returns the groups of a ScheduledJob's ticks, in the order of the ticks.
func (w *world) groupsOf(name string) []batchv1alpha1.JobGroup {
	w.t.Helper()
	list := &batchv1alpha1.JobGroupList{}
	w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns), client.MatchingFields{"spec.scheduledJobRef.name": name})).To(Succeed())
	slices.SortFunc(list.Items, func(a, b batchv1alpha1.JobGroup) int { return a.Spec.ScheduledTime.Compare(b.Spec.ScheduledTime.Time) })
	return list.Items
}

// groupsIn counts the groups of a ScheduledJob that are in the phase, for Eventually.
func (w *world) groupsIn(name string, phase batchv1alpha1.JobGroupPhase) func() int {
	return func() int {
		n := 0
		for _, g := range w.groupsOf(name) {
			if g.Status.Phase == phase {
				n++
			}
		}
		return n
	}
}

func TestATickMakesAGroupWhichIsActiveUntilItsLastMemberHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, grouping(members{w.calling("a", s.URL), w.calling("b", s.URL+"/hold")})))
	name := w.tick("sj", 10)
	w.Eventually(s.runs).Should(Equal([]string{name + "-a", name + "-b"}))
	g := w.stands(name, "Running: a Completed, b Running")
	sj := w.readSchedule("sj")
	w.Expect(metav1.IsControlledBy(g, sj)).To(BeTrue())
	w.Expect(g.Spec.ScheduledTime.Time).To(BeTemporally("==", sj.Spec.RunAt.Time))
	w.Expect(sj.Status.LastRunName).To(Equal(name))
	w.Expect(sj.Status.ActiveCount).To(BeEquivalentTo(1))
	w.Expect(sj.Status.Active).To(ConsistOf(And(HaveField("Name", name), HaveField("UID", g.UID))))
	w.Expect(w.get(name+"-a").Spec.ScheduledJobRef).To(BeNil(), "it is the group that counts for the schedule")
	release()
	w.ends(name, "Completed: a Completed, b Completed")
	w.Eventually(func() []batchv1alpha1.ActiveRun { return w.readSchedule("sj").Status.Active }).Should(BeEmpty())
	w.Expect(w.readSchedule("sj").Status.ActiveCount).To(BeZero())
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(2))
}

func TestGroupsOfARecurringScheduleFireEveryTickOnceAndGoByItsLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := refuses(t)
	w.queue("default", 5)
	m := w.start()
	limits := func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.CompletedHistoryLimit, sj.Spec.FailedHistoryLimit = ptr.To[int32](1), ptr.To[int32](1)
	}
	w.create(
		w.schedule("fine", "", grouping(members{w.calling("a", s.URL+"/fine"), w.calling("b", s.URL+"/fine")}), onSchedule("@every 1s"), limits),
		w.schedule("poor", "", grouping(members{w.calling("a", s.URL+"/bad", retries(0)), w.calling("b", s.URL)}), onSchedule("@every 1s"), limits),
	)
	w.Eventually(w.groupsIn("fine", batchv1alpha1.JobGroupCompleted)).Should(BeNumerically(">=", 3))
	w.Eventually(w.groupsIn("poor", batchv1alpha1.JobGroupFailed)).Should(BeNumerically(">=", 3))
	w.pause("fine", "poor")
	for _, name := range []string{"fine", "poor"} {
		w.Eventually(func() int32 { return w.readSchedule(name).Status.ActiveCount }).Should(BeZero())
	}
	fine, poor := w.groupsOf("fine"), w.groupsOf("poor")
	w.Expect(s.on("/fine")).To(HaveLen(2 * len(fine)))
	w.Expect(s.on("/bad")).To(HaveLen(len(poor)))
	for _, g := range append(fine, poor...) {
		w.Expect(g.Name).To(Equal(fmt.Sprintf("%s-%d", g.Spec.ScheduledJobRef.Name, g.Spec.ScheduledTime.Unix())))
	}
	m.stop()

	m = w.start(func(o *operator.Options) { o.Clock = ahead{by: 11 * time.Minute} })
	kept := []string{slices.MaxFunc(fine, bySettling).Name, slices.MaxFunc(poor, bySettling).Name}
	w.Eventually(func() []string { return append(groupNames(w.groupsOf("fine")), groupNames(w.groupsOf("poor"))...) }).Should(Equal(kept))
	w.Eventually(w.allRuns).Should(ConsistOf(kept[0]+"-a", kept[0]+"-b", kept[1]+"-a"), "runs go with their group")
	w.idempotent(m)
}

// bySettling orders groups by their end.
func bySettling(a, b batchv1alpha1.JobGroup) int {
	return cmp.Or(a.Status.FinishedAt.Compare(b.Status.FinishedAt.Time), cmp.Compare(a.Name, b.Name))
}

func groupNames(groups []batchv1alpha1.JobGroup) []string {
	var all []string
	for _, g := range groups {
		all = append(all, g.Name)
	}
	return all
}

func TestAForbiddenOverlapLeavesOneSkippedGroupAndThenOnlyCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/slow": answer})
	m := w.start()
	w.create(w.schedule("alone", "", grouping(members{w.calling("a", s.URL), w.calling("b", s.URL+"/slow")}), onSchedule("@every 1s"),
		func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.ConcurrencyPolicy = batchv1alpha1.ConcurrencyForbid }))
	w.Eventually(func() int64 { return w.readSchedule("alone").Status.SkippedRuns }).Should(BeNumerically(">=", 3))
	groups := w.groupsOf("alone")
	w.Expect(groups).To(HaveLen(2), "%v", groupNames(groups))
	w.stands(groups[0].Name, "Running: a Completed, b Running")
	skipped := w.ends(groups[1].Name, "Skipped: a Skipped, b Skipped")
	w.Expect(skipped.Status.Reason).To(Equal(batchv1alpha1.ReasonOverlapForbidden))
	w.neverMade(skipped, "a", "b")
	w.Expect(s.log()).To(HaveLen(2))

	release()
	w.Eventually(w.groupsIn("alone", batchv1alpha1.JobGroupCompleted)).Should(BeNumerically(">=", 2), "it goes on once the way is free")
	w.pause("alone")
	w.Eventually(func() int32 { return w.readSchedule("alone").Status.ActiveCount }).Should(BeZero())
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.idempotent(m)
}

func TestATickReplacesAGroupOnlyOnceAllOfItHasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue("default", 5)
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, replacing, grouping(members{w.podded("a"), w.podded("b"), w.podded("c", inQueue("nowhere"))}, parallelGroup)))
	first := w.tick("sj", 20)
	w.podOf(w.eventually(first+"-a", batchv1alpha1.JobRunRunning))
	w.podOf(w.eventually(first+"-b", batchv1alpha1.JobRunRunning))
	kubelet.HoldTermination(w.ns)
	second := w.tick("sj", 10)
	w.stands(first, "Cancelling: a Running, b Running, c Cancelled")
	w.terminating(first + "-a")
	w.terminating(first + "-b")
	w.Consistently(func() []string { return groupNames(w.groupsOf("sj")) }).WithTimeout(still).Should(Equal([]string{first}), "pods are alive")

	kubelet.ReleaseTermination(w.ns)
	w.podOf(w.eventually(second+"-a", batchv1alpha1.JobRunRunning))
	g := w.ends(first, "Cancelled: a Cancelled, b Cancelled, c Cancelled")
	w.Expect(g.Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	w.Expect(g.Spec.Cancel).To(BeFalse(), "a controller writes no spec")
	w.Expect(w.get(first + "-a").Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	most, _ := w.atOnce()
	w.Expect(most).To(BeNumerically("<=", 2))
	w.Expect(w.lives()[:4]).To(ConsistOf("Started "+first+"-a", "Started "+first+"-b", "Ended "+first+"-a", "Ended "+first+"-b"))
	w.cancelGroup(second)
	w.ends(second, "Cancelled: a Cancelled, b Cancelled, c Cancelled")
	w.Eventually(func() int32 { return w.readSchedule("sj").Status.ActiveCount }).Should(BeZero())
	w.idempotent(m)
}

func TestATickReplacesAGroupWhoseMemberIsInBackOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, map[string]http.HandlerFunc{"/flaky": failsAtFirst})
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, replacing, grouping(members{w.calling("a", s.URL+"/flaky", backOff(3600)), w.calling("b", s.URL)})))
	first := w.tick("sj", 20)
	w.Eventually(w.phase(first + "-a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	second := w.tick("sj", 10)
	w.neverMade(w.ends(first, "Cancelled: a Cancelled, b Cancelled"), "b")
	w.Eventually(w.phase(second + "-a-r1")).Should(Equal(string(batchv1alpha1.JobRunQueued)))
	w.forward(second + "-a-r1")
	w.ends(second, "Completed: a Completed, b Completed")
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{first + "-a", second + "-a", second + "-a-r1", second + "-b"}))
}

func TestAOneTimeScheduleOfAGroupFiresOnceAndGoesWhileItsGroupStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	due := time.Now().Add(-10 * time.Second).Truncate(time.Second)
	sj := w.schedule("once", "", grouping(members{w.calling("a", s.URL+"/hold"), w.calling("b", s.URL)}), runsAt(due),
		func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TTLSecondsAfterFired = ptr.To[int32](0) })
	w.create(sj)
	m := w.start()
	w.Eventually(func() bool { return apierrors.IsNotFound(w.Get(w.ctx, client.ObjectKeyFromObject(sj), sj)) }).Should(BeTrue())
	name := schedule.RunName("once", due)
	w.stands(name, "Running: a Running, b Waiting")
	release()
	w.Expect(w.ends(name, "Completed: a Completed, b Completed").OwnerReferences).To(BeEmpty())
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{name + "-a", name + "-b"}))
}

func TestAScheduleOfGroupsThatIsPastDueWhenTheManagerStarts(t *testing.T) {
	year := time.Now().UTC().Year()
	newYear := func(ago int) time.Time { return time.Date(year-ago, time.January, 1, 0, 0, 0, 0, time.UTC) }
	yearly := func(w *world, s *server) *batchv1alpha1.ScheduledJob {
		sj := w.schedule("yearly", "", grouping(members{w.calling("a", s.URL), w.calling("b", s.URL)}), onSchedule("@yearly"))
		w.create(sj)
		sj.Status.ObservedSchedule = schedule.Rule{Schedule: sj.Spec.Schedule}.String()
		sj.Status.HandledThrough = ptr.To(metav1.NewTime(newYear(2)))
		w.Expect(w.Status().Update(w.ctx, sj)).To(Succeed())
		return sj
	}
	name := schedule.RunName("yearly", newYear(0))
	t.Run("the latest tick fires", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		yearly(w, s)
		m := w.start()
		w.Eventually(func() []string { return groupNames(w.groupsOf("yearly")) }).Should(Equal([]string{name}))
		w.ends(name, "Completed: a Completed, b Completed")
		w.Expect(w.readSchedule("yearly").Status.MissedRuns).To(BeEquivalentTo(1))
		w.idempotent(m)
		w.Expect(s.runs()).To(Equal([]string{name + "-a", name + "-b"}))
	})
	t.Run("the crash came between the group and the record of the fire", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		sj := yearly(w, s)
		made := w.group(name, sj.Spec.GroupTemplate.Members, func(g *batchv1alpha1.JobGroup) {
			g.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: sj.Name}
			g.Spec.ScheduledTime = ptr.To(metav1.NewTime(newYear(0)))
			g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sj, batchv1alpha1.GroupVersion.WithKind("ScheduledJob"))}
		})
		w.create(made)
		m := w.start()
		w.Expect(w.ends(name, "Completed: a Completed, b Completed").UID).To(Equal(made.UID))
		w.idempotent(m)
		w.Expect(s.runs()).To(Equal([]string{name + "-a", name + "-b"}))
	})
	t.Run("the crash came between the fire and the first member", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		yearly(w, s)
		x := newWire(t)
		first := w.startOn(x.dies(1, false, creationOfRun(name+"-a")).config(), x.mortal)
		w.died(x)
		first.stop()
		m := w.start()
		w.ends(name, "Completed: a Completed, b Completed")
		w.Eventually(func() int32 { return w.readSchedule("yearly").Status.ActiveCount }).Should(BeZero())
		w.idempotent(m)
		w.Expect(s.runs()).To(Equal([]string{name + "-a", name + "-b"}))
	})
}

func TestAScheduleOfGroupsWhoseQueueIsStuckIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	open := w.gated("default")
	w.create(w.schedule("sj", "", grouping(members{w.calling("a", s.URL)}), onSchedule("@every 1s"), func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MaxQueuedRuns = 2 }))
	m := w.start()
	w.Eventually(func() string { return w.ready("sj") }).Should(ContainSubstring("2 earlier runs are not settled"))
	w.Consistently(func() []batchv1alpha1.JobGroup { return w.groupsOf("sj") }).WithTimeout(2 * still).Should(HaveLen(2))
	w.pause("sj")
	open()
	w.Eventually(w.groupsIn("sj", batchv1alpha1.JobGroupCompleted)).Should(Equal(2))
	w.Eventually(func() int32 { return w.readSchedule("sj").Status.ActiveCount }).Should(BeZero())
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(2))
}

func TestAScheduleThatComesToMakeGroupsInsteadOfRunsForbidsAndReplacesAcrossTheChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	w.queue("default", 5)
	m := w.start()
	w.create(w.schedule("sj", s.URL+"/hold", tomorrow, replacing))
	first := w.tick("sj", 20)
	w.Eventually(s.runs).Should(Equal([]string{first}))
	sj := w.readSchedule("sj")
	w.patch(sj, func() { grouping(members{w.calling("a", s.URL)})(sj) })
	second := w.tick("sj", 10)
	w.ends(second, "Completed: a Completed")
	w.Expect(w.get(first).Status.Reason).To(Equal(batchv1alpha1.ReasonReplaced))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.Eventually(func() int32 { return w.readSchedule("sj").Status.ActiveCount }).Should(BeZero())
	w.idempotent(m)
}

func TestARecordOfAFireThatTakesItsTimeSetsNothingAside(t *testing.T) {
	for kind, template := range map[string]func(*world, *server) func(*batchv1alpha1.ScheduledJob){
		"a run": func(w *world, s *server) func(*batchv1alpha1.ScheduledJob) { return running(w.httpRun("", s.URL)) },
		"a group": func(w *world, s *server) func(*batchv1alpha1.ScheduledJob) {
			return grouping(members{w.calling("a", s.URL)})
		},
	} {
		for before, first := range map[string]func(*batchv1alpha1.ScheduledJob){
			"it was a template":  func(*batchv1alpha1.ScheduledJob) {},
			"it fired every day": onSchedule("@daily"),
			"it was to fire":     tomorrow,
		} {
			t.Run(kind+", "+before, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				s := newServer(t, nil)
				x := newWire(t)
				record := x.drops(5, func(r request) bool {
					return r.method == http.MethodPut && strings.HasSuffix(r.path, "/scheduledjobs/sj/status") && strings.Contains(r.body, `"firedRunAt"`)
				})
				m := w.startOn(record.config())
				w.create(w.schedule("sj", "", template(w, s), first))
				w.Eventually(func() int64 { return w.readSchedule("sj").Status.ObservedGeneration }).Should(BeEquivalentTo(1))
				sj := w.readSchedule("sj")
				w.patch(sj, func() { sj.Spec.Schedule = "" })
				name := w.tick("sj", 10)
				w.Eventually(func() *metav1.Time { return w.readSchedule("sj").Status.FiredRunAt }).ShouldNot(BeNil())
				w.Eventually(s.log).Should(HaveLen(1), "a time in the past fires at once: %s", name)
				w.Eventually(func() int32 { return w.readSchedule("sj").Status.ActiveCount }).Should(BeZero())
				w.idempotent(m)
				w.Expect(s.log()).To(HaveLen(1))
			})
		}
	}
}
