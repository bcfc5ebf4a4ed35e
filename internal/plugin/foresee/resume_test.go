// SPDX-License-Identifier: Apache-2.0

package foresee

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/explain"
)

func paused(sj *batchv1alpha1.ScheduledJob) { sj.Spec.Suspend = true }

func TestAResumeFiresNothingOfWhatHasPassed(t *testing.T) {
	sj := aSchedule("*/10 * * * *", paused)
	sj.Status.HandledThrough = ago(time.Hour)
	p := resumeSchedule(explain.Snapshot{}, sj, now)
	g := NewWithT(t)
	g.Expect(p.Steps).To(BeEmpty())
	g.Expect(p.Notes).To(Equal([]string{
		"6 ticks have passed since 2026-11-20T05:59:30Z; none of them fires", "the next tick is 2026-11-20T07:00:00Z (in 30s)",
	}))
}

func TestAResumeOfATimeThatHasPassedSaysHowToRunItAllTheSame(t *testing.T) {
	sj := aSchedule("", paused, func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunAt = ago(time.Hour)
		sj.Status.ObservedSchedule = "at 2026-11-20T05:59:30Z, suspended"
	})
	p := resumeSchedule(explain.Snapshot{}, sj, now)
	NewWithT(t).Expect(p.Steps).To(BeEmpty())
	NewWithT(t).Expect(p.Notes).To(ContainElement("2026-11-20T05:59:30Z passed while the schedule was suspended: edit spec.runAt to run it"))
}

func TestAResumeOfWhatIsNotSuspendedChangesNothing(t *testing.T) {
	p := resumeSchedule(explain.Snapshot{}, aSchedule("* * * * *"), now)
	NewWithT(t).Expect(p.Notes).To(Equal([]string{"it is not suspended: a resume changes nothing"}))
}

func TestAResumeOfAScheduleThatCannotBeUsedSaysWhy(t *testing.T) {
	p := resumeSchedule(explain.Snapshot{}, aSchedule("0 0 30 2 *", paused), now)
	NewWithT(t).Expect(p.Notes).To(ConsistOf(ContainSubstring("there is no such date")))
}

// What is due when a manager comes back: ticks that passed while it was away.
func TestTicksThatPassedWhileNobodyWasThereArePlannedByThePolicy(t *testing.T) {
	behind := func(change ...func(*batchv1alpha1.ScheduledJob)) batchv1alpha1.ScheduledJob {
		sj := aSchedule("* * * * *", change...)
		sj.Status.HandledThrough = ago(3*time.Minute + 30*time.Second)
		return *sj
	}
	policy := func(p batchv1alpha1.ConcurrencyPolicy, m batchv1alpha1.MissedRunPolicy) func(*batchv1alpha1.ScheduledJob) {
		return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.ConcurrencyPolicy, sj.Spec.MissedRunPolicy = p, m }
	}
	busy := unsettled("nightly-1")
	for name, tc := range map[string]struct {
		sj    batchv1alpha1.ScheduledJob
		runs  []batchv1alpha1.JobRun
		steps []string
		notes []string
	}{
		"once": {behind(policy(batchv1alpha1.ConcurrencyAllow, batchv1alpha1.MissedRunOnce)), nil,
			[]string{"Fire nightly-1795157940"}, []string{"sj/nightly: 2 ticks were missed and are only counted"}},
		"all": {behind(policy(batchv1alpha1.ConcurrencyAllow, batchv1alpha1.MissedRunAll)), nil,
			[]string{"Fire nightly-1795157820", "Fire nightly-1795157880", "Fire nightly-1795157940"}, nil},
		"an overlap that is forbidden": {behind(policy(batchv1alpha1.ConcurrencyForbid, batchv1alpha1.MissedRunOnce)), []batchv1alpha1.JobRun{busy},
			[]string{"Skip nightly-1795157940"}, []string{"sj/nightly: 2 ticks were missed and are only counted"}},
		"an overlap that replaces": {behind(policy(batchv1alpha1.ConcurrencyReplace, batchv1alpha1.MissedRunOnce)), []batchv1alpha1.JobRun{busy},
			[]string{"Cancel nightly-1"}, nil},
		"no room": {behind(func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MaxQueuedRuns = 1 }), []batchv1alpha1.JobRun{busy},
			nil, []string{"sj/nightly: due, but 1 earlier runs are not settled: firing waits for them"}},
		"one that cannot be used": {*aSchedule("0 0 30 2 *"), nil, nil,
			[]string{`sj/nightly fires nothing: invalid schedule "0 0 30 2 *": there is no such date, so this never fires: check day of month and month`}},
	} {
		t.Run(name, func(t *testing.T) {
			var p Plan
			p.fire(explain.Snapshot{Runs: tc.runs}, &tc.sj, now)
			var steps []string
			for _, s := range p.Steps {
				steps = append(steps, string(s.Action)+" "+s.Name)
			}
			NewWithT(t).Expect(steps).To(Equal(tc.steps))
			NewWithT(t).Expect(p.Notes).To(Equal(tc.notes))
		})
	}
}

func TestATickOfAGroupTemplateMakesAGroup(t *testing.T) {
	sj := aSchedule("", func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.RunAt, sj.Spec.RunTemplate, sj.Spec.GroupTemplate = ago(time.Minute), nil, &batchv1alpha1.JobGroupTemplateSpec{}
		sj.CreationTimestamp = metav1.NewTime(now)
		sj.Spec.StartingDeadlineSeconds = ptr.To[int64](3600)
	})
	var p Plan
	p.fire(explain.Snapshot{}, sj, now)
	NewWithT(t).Expect(p.Steps).To(HaveLen(1))
	NewWithT(t).Expect(named(p.Steps[0].Kind, p.Steps[0].Name)).To(Equal("jg/nightly-1795157910"))
}

func TestAResumeOfAQueueAdmitsWhatTheDispatcherWould(t *testing.T) {
	g := NewWithT(t)
	queue := batchv1alpha1.JobQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gpu"},
		Spec:       batchv1alpha1.JobQueueSpec{Suspend: true, Concurrency: &batchv1alpha1.QueueConcurrency{Limit: ptr.To[int32](2)}},
	}
	waiting := func(name string) batchv1alpha1.JobRun {
		return atWork(name, aCall(), func(r *batchv1alpha1.JobRun) {
			r.Spec.Queue, r.Status = "gpu", batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunQueued}
		})
	}
	later := waiting("in-back-off")
	later.Spec.NotBefore = ago(-time.Hour)
	s := explain.Snapshot{
		Namespace: "ns", Queues: []batchv1alpha1.JobQueue{queue},
		Runs: []batchv1alpha1.JobRun{atWork("busy", aCall(), func(r *batchv1alpha1.JobRun) { r.Spec.Queue = "gpu" }), waiting("a"), waiting("b"), later},
	}
	p := resumeQueue(s, "gpu", now)
	g.Expect(p.Steps).To(Equal([]Step{{Action: ActionAdmit, Kind: "JobRun", Name: "a", Message: "it gets a slot"}}))
	g.Expect(p.Notes).To(Equal([]string{"2 more go on waiting; see: kubectl reprise queue gpu"}))
	g.Expect(s.Queues[0].Spec.Suspend).To(BeTrue(), "nothing that was read is changed")

	s.Queues[0].Spec.Suspend = false
	g.Expect(resumeQueue(s, "gpu", now).Notes).To(Equal([]string{"it is not suspended: a resume changes nothing"}))
}
