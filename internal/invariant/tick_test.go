// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// over settles what a tick has made.
func tickOver(s *story, sj *batchv1alpha1.ScheduledJob) {
	sj.Status.Active = nil
	s.put(sj)
}

// group creates a group of one member, and records the run of the member.
func (s *story) group(name string, uid types.UID, changes ...func(*batchv1alpha1.JobGroup)) (*batchv1alpha1.JobGroup, *batchv1alpha1.JobRun) {
	gr := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Generation: 1}}
	gr.Spec.Members = []batchv1alpha1.GroupMember{{Name: "m"}}
	gr.Spec.Members[0].RunTemplate.Queue = "q"
	gr.Status.Phase = batchv1alpha1.JobGroupPending
	for _, c := range changes {
		c(gr)
	}
	s.put(gr)
	r := s.member(gr, "uid-m-"+uid)
	s.recordMember(gr, r)
	return gr, r
}

func (s *story) member(gr *batchv1alpha1.JobGroup, u types.UID) *batchv1alpha1.JobRun {
	return s.run(gr.Name+"-m", uid(u), func(r *batchv1alpha1.JobRun) {
		r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: gr.Name, Member: "m"}
	})
}

func (s *story) recordMember(gr *batchv1alpha1.JobGroup, r *batchv1alpha1.JobRun) {
	gr.Status.Phase = batchv1alpha1.JobGroupRunning
	gr.Status.Members = []batchv1alpha1.GroupMemberStatus{{Name: "m", Phase: batchv1alpha1.MemberQueued, RunName: r.Name, RunUID: r.UID}}
	s.put(gr)
}

func (s *story) groupOver(gr *batchv1alpha1.JobGroup, phase batchv1alpha1.JobGroupPhase) {
	gr.Status.Phase, gr.Status.Reason = phase, "Because"
	s.put(gr)
}

func groupTickOf(sj *batchv1alpha1.ScheduledJob) func(*batchv1alpha1.JobGroup) {
	return func(g *batchv1alpha1.JobGroup) {
		g.Spec.ScheduledJobRef, g.Spec.ScheduledTime = &batchv1alpha1.ObjectName{Name: sj.Name}, sj.Spec.RunAt
	}
}

func TestInvariant9(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	cases{
		"two runs of one tick are one too many": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			a, b := s.run("once-1", tickOf(sj)), s.run("once-1-1", tickOf(sj))
			fired(s, sj, a)
			s.whole(a, c)
			s.whole(b, c)
			tickOver(s, sj)
		}},
		"a second one that is never executed is harmless": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			a, b := s.run("once-1", tickOf(sj)), s.run("once-1-1", tickOf(sj))
			fired(s, sj, a)
			s.whole(a, c)
			s.finish(b, batchv1alpha1.JobRunSkipped, because(batchv1alpha1.ReasonSuperseded))
			tickOver(s, sj)
		}},
		"retries are of their chain, not of the tick": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			a := s.run("once-1", tickOf(sj))
			fired(s, sj, a)
			s.whole(a, batchv1alpha1.JobRunFailed)
			b := s.retry(a, func(r *batchv1alpha1.JobRun) { r.Spec.ScheduledJobRef = a.Spec.ScheduledJobRef })
			s.whole(b, c)
			s.change(a, says1(batchv1alpha1.ConditionComplete))
			tickOver(s, sj)
		}},
		"a late creation meets nobody who objects when the ScheduledJob is gone, too": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			a := s.run("once-1", tickOf(sj))
			fired(s, sj, a)
			s.whole(a, c)
			s.drop(sj)
			s.drop(a)
			s.whole(s.run("once-1", uid("late"), tickOf(sj)), c)
		}},
		"a run and a group of one tick are one too many": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			a := s.run("once-1", tickOf(sj))
			fired(s, sj, a)
			s.whole(a, c)
			gr, m := s.group("once-1", "uid-g", groupTickOf(sj))
			s.whole(m, c)
			s.groupOver(gr, batchv1alpha1.JobGroupCompleted)
			tickOver(s, sj)
		}},
		"a ScheduledJob that was made again has ticks of its own": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			a := s.run("once-1", tickOf(sj))
			fired(s, sj, a)
			s.whole(a, c)
			s.drop(sj)
			s.drop(a)
			again := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "once", UID: "again", Generation: 1}, Spec: sj.Spec}
			s.put(again)
			b := s.run("once-1", uid("b"), tickOf(again))
			fired(s, again, b)
			s.whole(b, c)
			tickOver(s, again)
		}},
		"a fire that has left nothing is a lost one": {broken: 2, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			fired(s, sj, &batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{Name: "once-1", UID: "nobody"}})
			tickOver(s, sj)
			s.wait(time.Minute)
		}},
		"a past-due one that has not fired is late": {broken: 1, tell: func(s *story) {
			onceAt(s, "once", noon)
			s.wait(time.Minute)
		}},
		"one that says it has fired, and has made nothing, has lost it": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			sj.Status.FiredRunAt = sj.Spec.RunAt
			s.put(sj)
			s.wait(time.Minute)
		}},
		"one that came too late makes nothing": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			sj.Spec.StartingDeadlineSeconds = ptr.To[int64](1)
			sj.Status.FiredRunAt = sj.Spec.RunAt
			s.put(sj)
			s.wait(time.Minute)
		}},
		"one whose time has not come makes nothing yet": {tell: func(s *story) {
			onceAt(s, "once", noon.Add(time.Hour))
		}},
		"one that cannot says so": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			sj.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
			s.put(sj)
			s.wait(time.Minute)
		}},
		"a suspended one makes nothing": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			sj.Spec.Suspend = true
			s.put(sj)
			s.wait(time.Minute)
		}},
		"one that was deleted makes nothing": {tell: func(s *story) {
			s.drop(onceAt(s, "once", noon))
			s.wait(time.Minute)
		}},
		"a run that a person deleted since was made all the same": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			a := s.run("once-1", tickOf(sj))
			fired(s, sj, a)
			s.Deleted = append(s.Deleted, a.UID)
			s.drop(a)
			tickOver(s, sj)
			s.wait(time.Minute)
		}},
	}.test(t, 9)
}
