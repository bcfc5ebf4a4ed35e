// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestABadGroupIsRefusedInWordsThatSayWhatToWriteAndStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	named := func(name string) string { return "{name: " + name + ", runTemplate: {" + calls + "}}" }
	group := func(spec string) string { return "kind: JobGroup\nmetadata: {name: bad}\nspec: {" + spec + "}" }
	scheduled := func(spec string) string {
		return "kind: ScheduledJob\nmetadata: {name: bad}\nspec: {" + spec + "}"
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = named(fmt.Sprintf("m%d", i))
	}
	for name, c := range map[string]struct{ object, says string }{
		"no members":                       {group("members: []"), "spec.members in body should have at least 1 items"},
		"nothing about members":            {group("mode: Parallel"), "spec.members: Required value"},
		"two members of one name":          {group("members: [" + named("a") + ", " + named("b") + ", " + named("a") + "]"), "spec.members[2]: Duplicate value"},
		"a member without a name":          {group("members: [{runTemplate: {" + calls + "}}]"), "spec.members[0].name: Required value"},
		"a name that cannot be in a run's": {group("members: [" + named("A_b") + "]"), "spec.members[0].name in body should match"},
		"a member without work":            {group("members: [{name: a, runTemplate: {}}]"), "runTemplate.work is required: exactly one of job and http"},
		"a member with two sorts of work":  {group("members: [{name: a, runTemplate: {work: {http: {url: \"https://work.example/\"}, job: " + pods + "}}}]"), "set exactly one of work.job (pods) and work.http (a call made by the manager)"},
		"more members than there may be":   {group("members: [" + strings.Join(many, ", ") + "]"), "spec.members: Too many: 65: must have at most 64 items"},
		"a mode that does not exist":       {group("mode: Random, members: [" + named("a") + "]"), `supported values: "Sequential", "Parallel"`},
		"a policy that does not exist":     {group("onFailure: Retry, members: [" + named("a") + "]"), `supported values: "Stop", "Continue", "Skip"`},
		"a name that leaves no room":       {strings.Replace(group("members: ["+named("a")+"]"), "bad", strings.Repeat("g", 58), 1), "the name of a JobGroup may have at most 57 characters"},
		"a schedule of a group and a run":  {scheduled("runTemplate: {" + calls + "}, groupTemplate: {members: [" + named("a") + "]}"), "set exactly one of runTemplate (a run) and groupTemplate (several runs in order)"},
		"a schedule of neither":            {scheduled(`schedule: "@daily"`), "set exactly one of runTemplate (a run) and groupTemplate (several runs in order)"},
		"a schedule of a group of nobody":  {scheduled("groupTemplate: {members: []}"), "spec.groupTemplate.members in body should have at least 1 items"},
		"a schedule of two of one name":    {scheduled("groupTemplate: {members: [" + named("a") + ", " + named("a") + "]}"), "spec.groupTemplate.members[1]: Duplicate value"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := w.apply(c.object)
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring(c.says))
		})
	}
	w.create(w.group("next", members{w.calling("a", s.URL)}))
	w.ends("next", "Completed: a Completed")
}

func TestNoEditOfAGroupThatRunsChangesWhatItDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/hold": answer})
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL+"/hold"), w.calling("b", s.URL+"/b"), w.calling("c", s.URL+"/c")}))
	w.stands("g", "Running: a Running, b Waiting, c Waiting")
	immutable := "members is immutable, its order included; create a new group instead"
	for name, c := range map[string]struct {
		edit func(*batchv1alpha1.JobGroupSpec)
		says string
	}{
		"the work of one that waits":  {func(s *batchv1alpha1.JobGroupSpec) { s.Members[1].RunTemplate.Work.HTTP.URL += "/edited" }, immutable},
		"the work of one that runs":   {func(s *batchv1alpha1.JobGroupSpec) { s.Members[0].RunTemplate.Work.HTTP.URL += "/edited" }, immutable},
		"the queue of one that waits": {func(s *batchv1alpha1.JobGroupSpec) { s.Members[1].RunTemplate.Queue = "other" }, immutable},
		"the retries of one that runs": {func(s *batchv1alpha1.JobGroupSpec) {
			s.Members[0].RunTemplate.RetryPolicy.MaxRetries = ptr.To[int32](9)
		}, immutable},
		"one more": {func(s *batchv1alpha1.JobGroupSpec) {
			s.Members = append(s.Members, w.calling("d", "http://localhost/"))
		}, immutable},
		"one fewer":           {func(s *batchv1alpha1.JobGroupSpec) { s.Members = s.Members[:2] }, immutable},
		"the order":           {func(s *batchv1alpha1.JobGroupSpec) { s.Members[1], s.Members[2] = s.Members[2], s.Members[1] }, immutable},
		"the mode":            {func(s *batchv1alpha1.JobGroupSpec) { s.Mode = batchv1alpha1.GroupParallel }, "mode is immutable; create a new group instead"},
		"what a failure does": {func(s *batchv1alpha1.JobGroupSpec) { s.OnFailure = batchv1alpha1.GroupContinue }, "onFailure is immutable; create a new group instead"},
		"that a tick made it": {func(s *batchv1alpha1.JobGroupSpec) { s.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"} }, "scheduledJobRef is immutable"},
	} {
		g := w.readGroup("g")
		c.edit(&g.Spec)
		w.Expect(w.Update(w.ctx, g)).To(MatchError(ContainSubstring(c.says)), name)
	}
	release()
	g := w.ends("g", "Completed: a Completed, b Completed, c Completed")
	w.Expect(g.Generation).To(BeEquivalentTo(1))
	w.Expect(s.paths()).To(Equal([]string{"/hold", "/b", "/c"}))

	w.cancelGroup("g")
	w.Eventually(func() int64 { return w.readGroup("g").Status.ObservedGeneration }).Should(BeEquivalentTo(2))
	g = w.readGroup("g")
	g.Spec.Cancel = false
	w.Expect(w.Update(w.ctx, g)).To(MatchError(ContainSubstring("cancel cannot be taken back; create a new group instead")))
	w.idempotent(m)
}

// paths returns the paths that were called, in order.
func (s *server) paths() []string {
	var all []string
	for _, c := range s.log() {
		all = append(all, c.Path)
	}
	return all
}

func TestAMemberThatItsQueueCannotTakeSaysSoAndGoesOnWhenItCan(t *testing.T) {
	for name, c := range map[string]struct {
		reason, says string
		run          func(*batchv1alpha1.JobRun)
		correct      func(*world)
	}{
		"its queue does not exist": {
			batchv1alpha1.ReasonQueueNotFound, "JobQueue late does not exist in namespace",
			inQueue("late"), func(w *world) { w.queue("late", 1) },
		},
		"its queue lists types, and not its": {
			batchv1alpha1.ReasonUnknownType, "novel",
			func(r *batchv1alpha1.JobRun) { r.Spec.Queue, r.Spec.Type = "typed", "novel" },
			func(w *world) {
				q := w.readQueue("typed")
				w.patch(q, func() {
					q.Spec.Concurrency.Types = append(q.Spec.Concurrency.Types, batchv1alpha1.TypeConcurrency{Name: "novel"})
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, nil)
			w.queue("typed", 1, func(q *batchv1alpha1.JobQueue) {
				q.Spec.Concurrency.Types = []batchv1alpha1.TypeConcurrency{{Name: "story"}}
			})
			m := w.start()
			w.create(
				w.group("seq", members{w.calling("a", s.URL), w.calling("b", s.URL, c.run), w.calling("c", s.URL)}),
				w.group("par", members{w.calling("a", s.URL, c.run), w.calling("b", s.URL)}, parallelGroup),
			)
			w.stands("par", "Running: a Queued, b Completed")
			w.stands("seq", "Running: a Completed, b Queued, c Waiting")
			for _, run := range []string{"par-a", "seq-b"} {
				w.Expect(w.stalled(w.ofRun(run), c.reason)).To(ContainSubstring(c.says))
			}
			w.Eventually(func() string { return told(w.readGroup("seq"), "b").Reason }).Should(Equal(c.reason), func() string { return w.groupStory() })
			w.Expect(told(w.readGroup("seq"), "b").Message).To(ContainSubstring(c.says), "the group says what its member waits for")
			w.Eventually(func() string { return told(w.readGroup("par"), "a").Reason }).Should(Equal(c.reason))
			c.correct(w)
			w.ends("seq", "Completed: a Completed, b Completed, c Completed")
			w.ends("par", "Completed: a Completed, b Completed")
			w.idempotent(m)
			w.Expect(s.log()).To(HaveLen(5))
		})
	}
}

// runQuota limits how many runs the namespace may have. No controller keeps its books here, so the test does.
func (w *world) runQuota(runs string) *corev1.ResourceQuota {
	w.t.Helper()
	hard := corev1.ResourceList{"count/jobruns.batch.reprise.dev": resource.MustParse(runs)}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "few"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	w.create(q)
	w.raise(q, runs)
	return q
}

// raise sets the limit of a quota.
func (w *world) raise(q *corev1.ResourceQuota, runs string) {
	w.t.Helper()
	w.patch(q, func() { q.Spec.Hard["count/jobruns.batch.reprise.dev"] = resource.MustParse(runs) })
	w.Eventually(func() error {
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(q), q); err != nil {
			return err
		}
		if q.Status.Used == nil {
			q.Status.Used = corev1.ResourceList{"count/jobruns.batch.reprise.dev": resource.MustParse("0")}
		}
		q.Status.Hard = q.Spec.Hard
		return w.Status().Update(w.ctx, q)
	}).Should(Succeed())
}

func TestAMemberThatAQuotaRefusesIsSaidAndMadeWhenThereIsRoom(t *testing.T) {
	for mode, stuck := range map[batchv1alpha1.GroupMode]string{
		batchv1alpha1.GroupSequential: "Running: a Completed, b Waiting, c Waiting",
		batchv1alpha1.GroupParallel:   "Running: a Completed, b Waiting, c Waiting",
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, nil)
			quota := w.runQuota("1")
			m := w.start()
			w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL), w.calling("c", s.URL)},
				func(g *batchv1alpha1.JobGroup) { g.Spec.Mode = mode }))
			w.stands("g", stuck)
			w.Expect(w.stalled(func() []metav1.Condition { return w.readGroup("g").Status.Conditions }, batchv1alpha1.ReasonMemberRejected)).
				To(And(ContainSubstring("run g-b of member b could not be created"), ContainSubstring("exceeded quota: few")))
			w.Expect(w.groupCondition("g", batchv1alpha1.ConditionReconciling)).To(BeFalse(), "tools would take it for in progress")
			w.raise(quota, "9")
			g := w.ends("g", "Completed: a Completed, b Completed, c Completed")
			w.Expect(meta.FindStatusCondition(g.Status.Conditions, batchv1alpha1.ConditionStalled)).To(BeNil())
			w.idempotent(m, "resourcequotas/few") // which counts the run that idempotent makes
			w.Expect(s.runs()).To(ConsistOf("g-a", "g-b", "g-c"))
		})
	}
}
