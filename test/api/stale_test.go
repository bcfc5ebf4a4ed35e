// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/operator"
)

// steered is a clock that a test moves on. What waits by it waits in real time.
type steered struct {
	clock.RealClock
	ahead *atomic.Int64
}

func steeredClock() steered { return steered{ahead: &atomic.Int64{}} }

// Now is the real time, and what the clock was moved on by.
func (s steered) Now() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }

// Since is the time that has passed by this clock.
func (s steered) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// after moves the clock on to d after t.
func (s steered) after(t time.Time, d time.Duration) {
	s.ahead.Add(int64(t.Add(d).Sub(s.Now())))
}

func (s steered) use(o *operator.Options) { o.Clock = s }

// nudge makes the manager look at the runs of a queue that are at work: its spec has changed.
func (w *world) nudge(q *batchv1alpha1.JobQueue) {
	w.t.Helper()
	w.patch(q, func() {
		window := int32(0)
		if q.Spec.Startup != nil {
			window = *q.Spec.Startup.WindowSeconds + 1
		}
		q.Spec.Startup = &batchv1alpha1.QueueStartup{WindowSeconds: &window}
	})
}

// crawling is a queue whose types fall silent after 300, 900 and 1800 s.
func crawling(policy batchv1alpha1.StalePolicy) func(*batchv1alpha1.JobQueue) {
	return func(q *batchv1alpha1.JobQueue) {
		q.Spec.OnStale = policy
		for name, after := range map[string]int64{"scrape": 300, "extract": 900, "crawl": 1800} {
			q.Spec.Concurrency.Types = append(q.Spec.Concurrency.Types, batchv1alpha1.TypeConcurrency{Name: name, StaleAfterSeconds: &after})
		}
	}
}

// condition returns a condition of a run; nil if it does not say so.
func (w *world) condition(name, kind string) *metav1.Condition {
	w.t.Helper()
	return meta.FindStatusCondition(w.get(name).Status.Conditions, kind)
}

// becomesStale waits until the condition Stale of a run has the status.
func (w *world) becomesStale(name string, status metav1.ConditionStatus) *metav1.Condition {
	w.t.Helper()
	var c *metav1.Condition
	w.Eventually(func() bool {
		c = w.condition(name, batchv1alpha1.ConditionStale)
		return c != nil && c.Status == status
	}).Should(BeTrue(), func() string { return fmt.Sprintf("%s becomes Stale=%s\n%s", name, status, w.story()) })
	return c
}

// eventsOf returns the notes of the events about a run that have the reason.
func (w *world) eventsOf(name, reason string) func() []string {
	return func() []string {
		list := &eventsv1.EventList{}
		w.Expect(w.List(w.ctx, list, client.InNamespace(w.ns))).To(Succeed())
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.Kind == "JobRun" && e.Regarding.Name == name && e.Reason == reason {
				notes = append(notes, e.Note)
			}
		}
		return notes
	}
}

func TestEachTypeOfWorkIsStaleAfterItsOwnTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := steeredClock()
	q := w.queue("default", 4, crawling(""))
	m := w.start(now.use)
	own := func(r *batchv1alpha1.JobRun) { r.Spec.StaleAfterSeconds = ptr.To[int64](1200) }
	thresholds := []struct {
		name  string
		after time.Duration
	}{{"scrape", 300 * time.Second}, {"extract", 900 * time.Second}, {"own", 1200 * time.Second}, {"crawl", 1800 * time.Second}}
	var last time.Time
	for _, c := range thresholds {
		kind := ofType(c.name)
		if c.name == "own" {
			kind = func(r *batchv1alpha1.JobRun) { ofType("scrape")(r); own(r) }
		}
		w.create(w.jobRun(c.name, kind))
		w.podOf(w.get(c.name))
		last = w.get(c.name).Status.StartedAt.Time
	}
	for _, c := range thresholds {
		now.after(last, c.after+time.Second)
		w.nudge(q)
		w.becomesStale(c.name, metav1.ConditionTrue)
	}
	for _, c := range thresholds {
		r := w.get(c.name)
		said := meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStale)
		w.Expect(said.Reason).To(Equal(batchv1alpha1.ReasonNoSignOfLife))
		w.Expect(said.Message).To(Equal(fmt.Sprintf("no sign of life since %s, which was its start; after %d s the run counts as stale",
			r.Status.StartedAt.UTC().Format(time.RFC3339), int64(c.after.Seconds()))))
		w.Expect(said.LastTransitionTime.Sub(r.Status.StartedAt.Time)).To(BeNumerically("~", c.after+30*time.Second, 30*time.Second), "%s: not before its time", c.name)
		w.Expect(r.Status.Phase).To(Equal(batchv1alpha1.JobRunRunning))
		w.Eventually(w.eventsOf(c.name, batchv1alpha1.ReasonNoSignOfLife)).Should(HaveExactElements(HavePrefix(said.Message)))
	}
	w.Expect(m.log.with("run is stale")).To(HaveLen(len(thresholds)), "each once")

	w.endPod(w.get("scrape"), 0)
	w.eventually("scrape", batchv1alpha1.JobRunCompleted)
	w.Expect(w.condition("scrape", batchv1alpha1.ConditionStale)).To(BeNil())
}

// heart is what work has of rights when it may write the Leases of its namespace, and nothing else.
func (w *world) heart() client.Client {
	w.t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "heart"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "update", "patch"}},
	}}
	w.create(role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "heart"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: "heart"}},
	})
	config, _, err := plane.User("system:serviceaccount:"+w.ns+":heart", "system:serviceaccounts", "system:serviceaccounts:"+w.ns)
	w.Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(func() error { return c.Create(w.ctx, w.pulse("probe", time.Now())) }).Should(Succeed(), "the role is in force")
	return c
}

// pulse is the Lease by which the work of a run gives a sign of life.
func (w *world) pulse(name string, at time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
}

func TestWorkThatMayOnlyWriteLeasesKeepsItsRunAliveAndWithoutHeartbeatsItFailsAndIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := steeredClock()
	q := w.queue("default", 2, crawling(batchv1alpha1.StaleFail))
	m := w.start(now.use)
	heart := w.heart()
	w.create(w.jobRun("beating", ofType("scrape"), retries(0)), w.jobRun("silent", ofType("scrape")))
	w.podOf(w.get("beating"))
	w.podOf(w.get("silent"))
	w.Expect(apierrors.IsForbidden(heart.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "beating"}, &batchv1alpha1.JobRun{}))).To(BeTrue())

	start := w.get("silent").Status.StartedAt.Time
	lease := w.pulse("beating", start.Add(250*time.Second))
	w.Expect(heart.Create(w.ctx, lease)).To(Succeed())
	now.after(start, 301*time.Second)
	w.nudge(q)
	r := w.eventually("silent", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonStale))
	w.eventually("silent-r1", batchv1alpha1.JobRunRunning)
	w.Expect(w.get("silent").Status.Slot).To(Equal(batchv1alpha1.SlotFree), "its work had stopped before")
	w.endPod(w.get("silent-r1"), 0)
	w.settled("silent", batchv1alpha1.ConditionComplete)
	_, overlaps := w.atOnce()
	w.Expect(overlaps).To(BeEmpty())

	renewed := w.pulse("beating", start.Add(500*time.Second))
	renewed.ResourceVersion = lease.ResourceVersion
	w.Expect(heart.Update(w.ctx, renewed)).To(Succeed())
	now.after(start, 551*time.Second)
	w.nudge(q)
	now.after(start, 801*time.Second)
	w.nudge(q)
	r = w.eventually("beating", batchv1alpha1.JobRunFailed)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonStale))
	w.Expect(r.Status.Message).To(HavePrefix(fmt.Sprintf("no sign of life since %s, which was a heartbeat", start.Add(500*time.Second).UTC().Format(time.RFC3339))))
	w.Expect(r.Status.FinishedAt.Sub(start)).To(BeNumerically(">=", 800*time.Second), "both heartbeats counted")
	w.slotFree("beating")
	w.Expect(m.log.with("run is stale")).To(HaveLen(2))
	w.idempotent(m)
}

func TestAHeartbeatOfANamesakeOrOfAWrongClockKeepsNobodyAlive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := steeredClock()
	w.create(w.pulse("old", time.Now().Add(-time.Hour)), w.pulse("future", time.Now().Add(48*time.Hour)))
	q := w.queue("default", 2, crawling(""))
	w.start(now.use)
	w.create(w.jobRun("old", ofType("scrape")), w.jobRun("future", ofType("scrape")))
	w.podOf(w.get("old"))
	w.podOf(w.get("future"))
	now.after(time.Now(), 303*time.Second)
	w.nudge(q)
	w.Expect(w.becomesStale("old", metav1.ConditionTrue).Message).NotTo(ContainSubstring("heartbeat"))
	w.Expect(w.becomesStale("future", metav1.ConditionTrue).Message).To(ContainSubstring("lies too far ahead to count: a clock is wrong"))
}

func TestAResponseThatFallsSilentIsStaleUntilItsNextByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bytes := make(chan string)
	s := newServer(t, map[string]http.HandlerFunc{"/slow": func(rw http.ResponseWriter, r *http.Request) {
		for {
			select {
			case b, more := <-bytes:
				if !more {
					return
				}
				_, _ = io.WriteString(rw, b)
				_ = http.NewResponseController(rw).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}})
	w.queue("default", 1)
	m := w.start()
	w.create(w.httpRun("a", s.URL+"/slow", func(r *batchv1alpha1.JobRun) { r.Spec.StaleAfterSeconds = ptr.To[int64](2) }))
	w.Expect(w.becomesStale("a", metav1.ConditionTrue).Message).To(ContainSubstring("which was its start"))
	var back *metav1.Condition
	w.Eventually(func() bool {
		bytes <- "."
		back = w.condition("a", batchv1alpha1.ConditionStale)
		return back.Status == metav1.ConditionFalse
	}).Should(BeTrue())
	w.Expect(back.Reason).To(Equal(batchv1alpha1.ReasonSignOfLife))
	w.Expect(back.Message).To(ContainSubstring("was a byte of the response"))
	w.Expect(w.becomesStale("a", metav1.ConditionTrue).Message).To(ContainSubstring("which was a byte of the response"))
	close(bytes)
	r := w.eventually("a", batchv1alpha1.JobRunCompleted)
	w.Expect(meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStale)).To(BeNil())
	w.Expect(m.log.with("run gives signs of life again")).To(HaveLen(1))
	w.Expect(strings.Join(s.runs(), " ")).To(Equal("a"), "a warning disturbs nothing")
}

func TestACallThatIsNeverAnsweredFailsAsStaleAndItsRetryComesAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hang, _ := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/work": func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Reprise-Attempt") == "0" {
			hang(rw, r)
		}
	}})
	w.queue("default", 2, func(q *batchv1alpha1.JobQueue) { q.Spec.OnStale = batchv1alpha1.StaleFail })
	m := w.start()
	w.create(w.httpRun("a", s.URL+"/work", func(r *batchv1alpha1.JobRun) { r.Spec.StaleAfterSeconds = ptr.To[int64](1) }))
	w.settled("a", batchv1alpha1.ConditionComplete)
	w.Expect(w.get("a").Status.Reason).To(Equal(batchv1alpha1.ReasonStale))
	w.Expect(s.runs()).To(Equal([]string{"a", "a-r1"}))
	w.Expect(s.most.Load()).To(BeEquivalentTo(1))
	w.idempotent(m)
}
