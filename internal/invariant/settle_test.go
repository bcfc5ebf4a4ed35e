// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestInvariant13(t *testing.T) {
	c := batchv1alpha1.JobRunCompleted
	stopping := func(s *story, changes ...runChange) *batchv1alpha1.JobRun {
		r := s.run("a", append(changes, retriesAtMost(0))...)
		s.claim(r)
		s.finish(r, batchv1alpha1.JobRunFailed, held)
		return r
	}
	cases{
		"a history that does not settle is broken": {broken: 1, tell: func(s *story) { s.Settled = false }},
		"a run that nothing keeps from being admitted is forgotten": {broken: 1, tell: func(s *story) {
			s.run("a")
		}},
		"a run in back-off waits":          {tell: func(s *story) { s.run("a", notBefore(noon.Add(time.Hour))) }},
		"a run whose back-off is over not": {broken: 1, tell: func(s *story) { s.run("a", notBefore(noon)) }},
		"a run behind another waits":       {tell: func(s *story) { s.claim(s.run("a")); s.run("b") }},
		"a run in a suspended queue waits": {tell: func(s *story) {
			s.queue(func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true })
			s.run("a")
		}},
		"a run in a queue without slots waits": {tell: func(s *story) { s.limit(0); s.run("a") }},
		"a run of a type without slots waits":  {tell: func(s *story) { s.queue(types2(0, 1)); s.run("a", typed("story")) }},
		"a run of an unknown type waits":       {tell: func(s *story) { s.queue(types2(1, 1)); s.run("a", typed("other")) }},
		"a run that claims too much waits":     {tell: func(s *story) { s.queue(gpus(1)); s.run("a", claims("gpu", 2)) }},
		"a run in a queue that is not waits":   {tell: func(s *story) { s.run("a", func(r *batchv1alpha1.JobRun) { r.Spec.Queue = "none" }) }},
		"a run that is held says so":           {tell: func(s *story) { s.run("a", says1(batchv1alpha1.ConditionStalled)) }},
		"a run behind a reservation waits":     {tell: func(s *story) { s.run("a"); s.grant(s.reserve("d")) }},
		"a run that is yet to be resolved waits": {tell: func(s *story) {
			s.run("a", func(r *batchv1alpha1.JobRun) { r.Spec.Work, r.Spec.Queue = nil, "" })
		}},
		"a run behind the pods of a deleted one waits": {tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.pod(r, corev1.PodRunning)
			s.drop(r)
			s.run("b")
		}},
		"a run behind what nobody ended waits": {tell: func(s *story) {
			r := s.run("a")
			s.claim(r)
			s.begin(r)
			s.drop(r)
			s.run("b")
		}},
		"a run that was asked to end does": {broken: 1, tell: func(s *story) { s.run("a", func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }) }},
		"a retry that nobody ever records is set aside": {broken: 1, tell: func(s *story) {
			f := s.run("a")
			s.whole(f, batchv1alpha1.JobRunFailed)
			r := s.retry(f)
			s.whole(r, c)
			s.change(f, says1(batchv1alpha1.ConditionComplete))
			s.retryUnrecorded(f, uid("late"))
		}},
		"a slot of which nothing lives is freed": {broken: 1, tell: func(s *story) {
			r := stopping(s)
			s.pod(r, corev1.PodFailed)
			s.wait(time.Hour)
		}},
		"a slot whose pod lives is held":         {tell: func(s *story) { s.pod(stopping(s), corev1.PodRunning); s.wait(time.Hour) }},
		"where nobody saw pods nobody knows":     {tell: func(s *story) { stopping(s); s.wait(time.Hour) }},
		"a slot whose call may live is held":     {tell: func(s *story) { stopping(s, viaHTTP); s.wait(time.Minute) }},
		"a slot whose call cannot live is freed": {broken: 1, tell: func(s *story) { stopping(s, viaHTTP); s.wait(time.Hour) }},
		"the first run of a chain tells of its end": {broken: 1, tell: func(s *story) {
			s.whole(s.run("a"), c, func(r *batchv1alpha1.JobRun) { r.Status.Conditions = nil })
		}},
		"and of the right one": {broken: 1, tell: func(s *story) {
			f := s.run("a")
			s.whole(f, batchv1alpha1.JobRunFailed)
			s.whole(s.retry(f), c)
			s.change(f, says1(batchv1alpha1.ConditionFailed))
		}},
		"a chain that goes on has no end": {tell: func(s *story) {
			f := s.run("a")
			s.whole(f, batchv1alpha1.JobRunFailed)
			s.retry(f, notBefore(noon.Add(time.Hour)))
		}},
		"a group of which nothing goes on has ended": {broken: 1, tell: func(s *story) {
			_, m := s.group("g", "uid-g")
			s.whole(m, c)
		}},
		"a group whose member's retry waits goes on": {tell: func(s *story) {
			_, m := s.group("g", "uid-g")
			s.whole(m, batchv1alpha1.JobRunFailed)
			s.retry(m, notBefore(noon.Add(time.Hour)))
		}},
		"a group that is held says so": {tell: func(s *story) {
			gr, m := s.group("g", "uid-g")
			s.whole(m, c)
			gr.Status.Conditions = []metav1.Condition{{Type: batchv1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
			s.put(gr)
		}},
		"what is over is not active": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			r := s.run("once-1", tickOf(sj))
			fired(s, sj, r)
			s.whole(r, c)
		}},
		"what was deleted is not active": {broken: 1, tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			r := s.run("once-1", tickOf(sj))
			fired(s, sj, r)
			s.Deleted = append(s.Deleted, r.UID)
			s.drop(r)
		}},
		"what goes on is": {tell: func(s *story) {
			sj := onceAt(s, "once", noon)
			r := s.run("once-1", tickOf(sj))
			fired(s, sj, r)
			s.claim(r)
		}},
	}.test(t, 13)
}

func notBefore(at time.Time) runChange {
	return func(r *batchv1alpha1.JobRun) { r.Spec.NotBefore = ptr.To(metav1.NewTime(at)) }
}
