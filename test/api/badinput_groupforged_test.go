// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// memberOf makes a run look like one that a group has made.
func memberOf(group, member string) func(*batchv1alpha1.JobRun) {
	return func(r *batchv1alpha1.JobRun) {
		r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: group, Member: member}
	}
}

// ownedByGroup makes an object say that a group of that name and UID owns it.
func ownedByGroup(name string, uid types.UID) []metav1.OwnerReference {
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	return []metav1.OwnerReference{*metav1.NewControllerRef(g, batchv1alpha1.GroupVersion.WithKind("JobGroup"))}
}

func TestARunThatClaimsToBeAMemberIsSkippedUnlessTheGroupNamesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	open := w.gated("gate")
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL, inQueue("gate")), w.calling("b", s.URL), w.calling("c", s.URL+"/forged")}))
	w.stands("g", "Running: a Queued, b Waiting, c Waiting")
	forged := s.URL + "/forged"
	w.create(
		w.httpRun("second-a", forged, memberOf("g", "a")),
		w.httpRun("unknown", forged, memberOf("g", "z")),
		w.httpRun("early", forged, memberOf("g", "b")),
		w.httpRun("g-b", forged, memberOf("g", "b")),
		w.httpRun("g-a-r1", forged, memberOf("g", "a"), retryNumber(1, "g-a", w.get("g-a").UID)),
		w.httpRun("never", forged, memberOf("g", "c")),
	)
	for name, says := range map[string]string{
		"second-a": "member a of JobGroup g is run g-a with UID " + string(w.get("g-a").UID),
		"unknown":  "JobGroup g has no member z",
	} {
		r := w.eventually(name, batchv1alpha1.JobRunSkipped)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded), name)
		w.Expect(r.Status.Message).To(Equal(says), name)
	}
	w.settle()
	for _, name := range []string{"early", "g-b", "never"} {
		w.Expect(w.phase(name)()).To(Equal(string(batchv1alpha1.JobRunQueued)), "the group may still come to name %s", name)
	}
	open()
	w.Eventually(func() batchv1alpha1.GroupMemberPhase { return told(w.readGroup("g"), "b").Phase }).Should(Equal(batchv1alpha1.MemberCompleted))
	g := w.ends("g", "Completed: a Completed, b Completed, c Completed")
	w.Expect(told(g, "b").RunName).To(HavePrefix("g-b-"), "the name is taken, so the member has another")
	m.stop()
	m = w.start() // which looks at all of them, as this one would do within half a minute
	for _, name := range []string{"early", "g-b", "g-a-r1", "never"} {
		w.Expect(w.eventually(name, batchv1alpha1.JobRunSkipped).Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded), name)
	}
	w.Expect(s.on("/forged")).To(HaveLen(1), "that of member c")
	w.Expect(s.runs()).To(Equal([]string{"g-a", told(g, "b").RunName, "g-c"}))
	w.idempotent(m)
}

func TestARunThatClaimsToBeAMemberOfAGroupThatEndedIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	w.create(w.group("g", members{w.calling("a", s.URL), w.calling("b", s.URL)}, func(g *batchv1alpha1.JobGroup) { g.Spec.Cancel = true }))
	w.ends("g", "Cancelled: a Cancelled, b Cancelled")
	owned := w.httpRun("g-b", s.URL+"/forged", memberOf("g", "b"))
	owned.OwnerReferences = ownedByGroup("g", w.readGroup("g").UID)
	w.create(w.httpRun("g-a", s.URL+"/forged", memberOf("g", "a")), owned)
	for name, member := range map[string]string{"g-a": "a", "g-b": "b"} {
		r := w.eventually(name, batchv1alpha1.JobRunSkipped)
		w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded))
		w.Expect(r.Status.Message).To(Equal("member " + member + " of JobGroup g is Cancelled without it"))
	}
	w.idempotent(m)
	w.Expect(s.log()).To(BeEmpty())
}

func TestARunThatNamesAGroupThatDoesNotExistIsARunLikeAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	owned := w.httpRun("owned", s.URL+"/owned", memberOf("gone", "a"))
	owned.OwnerReferences = ownedByGroup("gone", "00000000-0000-0000-0000-000000000000")
	w.create(owned, w.httpRun("alone", s.URL, memberOf("gone", "a")))
	w.eventually("alone", batchv1alpha1.JobRunCompleted)
	w.Eventually(w.allRuns).Should(Equal([]string{"alone"}), "what says that the group owns it goes with it")
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{"alone"}))
}

func TestAGroupThatClaimsATickItsScheduledJobDoesNotKnowIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	due := time.Now().Add(-time.Hour).Truncate(time.Second)
	w.create(w.schedule("past", "", grouping(members{w.calling("a", s.URL)}), runsAt(due)))
	w.ends(schedule.RunName("past", due), "Completed: a Completed")
	forged := func(name string, tick time.Time) *batchv1alpha1.JobGroup {
		return w.group(name, members{w.calling("a", s.URL+"/forged"), w.calling("b", s.URL+"/forged")}, func(g *batchv1alpha1.JobGroup) {
			g.Spec.ScheduledJobRef, g.Spec.ScheduledTime = &batchv1alpha1.ObjectName{Name: "past"}, ptr.To(metav1.NewTime(tick))
		})
	}
	w.create(forged("fired-before", due), forged("never-due", due.Add(-time.Minute)))
	for _, name := range []string{"fired-before", "never-due"} {
		g := w.ends(name, "Skipped: a Skipped, b Skipped")
		w.Expect(g.Status.Reason).To(Equal(batchv1alpha1.ReasonSuperseded))
		w.Expect(g.Status.Message).To(ContainSubstring(g.Spec.ScheduledTime.UTC().Format(time.RFC3339)))
		w.neverMade(g, "a", "b")
	}
	w.idempotent(m)
	w.Expect(s.on("/forged")).To(BeEmpty())
}

func TestARunByHandOfAScheduleOfGroupsIsSkippedAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, grouping(members{w.calling("a", s.URL)})))
	byHand := &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "by-hand"}}
	byHand.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: "sj"}
	w.create(byHand)
	r := w.eventually("by-hand", batchv1alpha1.JobRunSkipped)
	w.Expect(r.Status.Reason).To(Equal(batchv1alpha1.ReasonInvalidWork))
	w.Expect(r.Status.Message).To(Equal("ScheduledJob sj has a groupTemplate: create a JobGroup with its members instead"))
	name := w.tick("sj", 1)
	w.ends(name, "Completed: a Completed")
	w.idempotent(m)
	w.Expect(s.runs()).To(Equal([]string{name + "-a"}))
}

// loseCluster deletes objects, as the loss of a cluster does, and waits until they are gone.
func (w *world) loseCluster(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.Expect(client.IgnoreNotFound(w.Delete(w.ctx, o, client.PropagationPolicy(metav1.DeletePropagationBackground)))).To(Succeed())
	}
	for _, o := range objects {
		w.Eventually(func() bool {
			return apierrors.IsNotFound(w.Get(w.ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)))
		}).Should(BeTrue())
	}
}

// restore creates objects anew, as a backup tool does that drops their status.
func (w *world) restore(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		fresh := o.DeepCopyObject().(client.Object)
		fresh.SetUID("")
		fresh.SetResourceVersion("")
		w.create(fresh)
	}
}

func TestAGroupRestoredFromABackup(t *testing.T) {
	for name, c := range map[string]struct {
		status bool
		ends   string
		calls  []string
	}{
		"without its status it runs once more from the beginning":    {false, "Completed: a Completed, b Completed, c Completed", []string{"a", "b", "c"}},
		"with its status it goes on, without the run that it misses": {true, "Completed: a Completed, b Cancelled, c Completed", []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, nil)
			open := w.gated("gate")
			first := w.start()
			w.create(w.group("g", members{w.calling("a", s.URL+"/a"), w.calling("b", s.URL+"/b", inQueue("gate")), w.calling("c", s.URL+"/c")}))
			w.stands("g", "Running: a Completed, b Queued, c Waiting")
			w.settle()
			first.stop()
			g, a, b := w.readGroup("g"), w.get("g-a"), w.get("g-b")
			w.loseCluster(g, a, b)
			w.restore(g, a, b)
			now := w.readGroup("g")
			if c.status {
				now.Status = g.Status
				w.Expect(w.Status().Update(w.ctx, now)).To(Succeed())
			}
			open()

			m := w.start()
			w.Expect(w.ends("g", c.ends).UID).NotTo(Equal(g.UID))
			w.Eventually(w.allRuns).Should(HaveLen(len(c.calls)), "those that say that the old group owns them go, and are not executed")
			var paths []string
			for _, name := range c.calls {
				paths = append(paths, "/"+name)
			}
			w.Expect(s.paths()[1:]).To(Equal(paths))
			w.idempotent(m)
		})
	}
}

func TestAGroupRestoredWithoutTheScheduledJobThatItNamesIsNotExecuted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	m := w.start()
	w.create(w.schedule("sj", "", tomorrow, grouping(members{w.calling("a", s.URL)})))
	name := w.tick("sj", 10)
	w.ends(name, "Completed: a Completed")
	w.Eventually(func() int32 { return w.readSchedule("sj").Status.ActiveCount }).Should(BeZero())
	m.stop()
	sj, g, r := w.readSchedule("sj"), w.readGroup(name), w.get(name+"-a")
	w.loseCluster(sj, g, r)
	sj.Spec.RunAt = nil
	w.restore(sj, g, r)
	m = w.start()
	w.groupGone(name)
	w.Eventually(w.allRuns).Should(BeEmpty())
	w.idempotent(m)
	w.Expect(s.log()).To(HaveLen(1))
}
