// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// dawn is when the ScheduledJobs of the pure tests were created.
var dawn = time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC)

func clockTime(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", "2026-05-01 "+text)
	if err != nil {
		panic(err)
	}
	return t
}

type change func(*batchv1alpha1.ScheduledJob)

// hourly is a ScheduledJob with the defaults of the API that ticks every hour and was seen at its creation.
func hourly(changes ...change) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sj", UID: "sj", CreationTimestamp: metav1.NewTime(dawn), Generation: 1},
		Spec: batchv1alpha1.ScheduledJobSpec{
			Schedule: "0 * * * *", MissedRunPolicy: batchv1alpha1.MissedRunOnce,
			ConcurrencyPolicy: batchv1alpha1.ConcurrencyAllow, MaxQueuedRuns: 100,
			RunTemplate: &batchv1alpha1.JobRunTemplateSpec{Work: localWork()},
		},
		Status: batchv1alpha1.ScheduledJobStatus{ObservedSchedule: "0 * * * * in UTC", HandledThrough: at(dawn)},
	}
	for _, c := range changes {
		c(sj)
	}
	return sj
}

func localWork() *batchv1alpha1.Work {
	return &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://localhost/"}}
}

// groups has every tick make a group of two members.
func groups(sj *batchv1alpha1.ScheduledJob) {
	sj.Spec.RunTemplate = nil
	sj.Spec.GroupTemplate = &batchv1alpha1.JobGroupTemplateSpec{Members: []batchv1alpha1.GroupMember{
		{Name: "build", RunTemplate: batchv1alpha1.JobRunTemplateSpec{Work: localWork()}},
		{Name: "ship", RunTemplate: batchv1alpha1.JobRunTemplateSpec{Work: localWork()}},
	}}
}

// runs has every tick make a run.
func runs(sj *batchv1alpha1.ScheduledJob) {
	sj.Spec.GroupTemplate = nil
	sj.Spec.RunTemplate = &batchv1alpha1.JobRunTemplateSpec{Work: localWork()}
}

func runAt(t time.Time) change {
	return func(sj *batchv1alpha1.ScheduledJob) {
		sj.Spec.Schedule, sj.Spec.RunAt = "", at(t)
		sj.Status = batchv1alpha1.ScheduledJobStatus{}
	}
}

func forbid(sj *batchv1alpha1.ScheduledJob) {
	sj.Spec.ConcurrencyPolicy = batchv1alpha1.ConcurrencyForbid
}

func replace(sj *batchv1alpha1.ScheduledJob) {
	sj.Spec.ConcurrencyPolicy = batchv1alpha1.ConcurrencyReplace
}

func runAll(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MissedRunPolicy = batchv1alpha1.MissedRunAll }

func both(one, other change) change {
	return func(sj *batchv1alpha1.ScheduledJob) {
		one(sj)
		other(sj)
	}
}

func atMost(n int32) change {
	return func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MaxQueuedRuns = n }
}

func named(all ...batchv1alpha1.JobRun) change {
	return func(sj *batchv1alpha1.ScheduledJob) {
		for i := range all {
			sj.Status.Active = append(sj.Status.Active, productOf(&all[i]).entry())
		}
	}
}

func namedGroup(g batchv1alpha1.JobGroup) change {
	return func(sj *batchv1alpha1.ScheduledJob) {
		sj.Status.Active = append(sj.Status.Active, productOf(&g).entry())
	}
}

type detail func(*batchv1alpha1.JobRun)

// ticked is the run of a tick of sj, Queued as the API server stores it.
func ticked(tick time.Time, details ...detail) batchv1alpha1.JobRun {
	r := newObject(hourly(), tick, 0).(*batchv1alpha1.JobRun)
	r.UID = types.UID(r.Name)
	r.CreationTimestamp = metav1.NewTime(tick)
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, d := range details {
		d(r)
	}
	return *r
}

// grouped is the group of a tick of sj in that phase.
func grouped(tick time.Time, phase batchv1alpha1.JobGroupPhase) batchv1alpha1.JobGroup {
	g := newObject(hourly(groups), tick, 0).(*batchv1alpha1.JobGroup)
	g.UID = types.UID("group-" + g.Name)
	g.CreationTimestamp = metav1.NewTime(tick)
	g.Status.Phase = phase
	return *g
}

// manual is a run that a person created for sj.
func manual(name string, details ...detail) batchv1alpha1.JobRun {
	return ticked(dawn, append([]detail{func(r *batchv1alpha1.JobRun) {
		r.Name, r.UID, r.Spec.ScheduledTime, r.OwnerReferences = name, types.UID(name), nil, nil
	}}, details...)...)
}

func running(r *batchv1alpha1.JobRun) {
	r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunRunning, batchv1alpha1.SlotHeld
}

func ended(p batchv1alpha1.JobRunPhase) detail {
	return func(r *batchv1alpha1.JobRun) {
		kind := batchv1alpha1.ConditionComplete
		if p == batchv1alpha1.JobRunFailed {
			kind = batchv1alpha1.ConditionFailed
		}
		r.Status.Phase, r.Status.Slot = p, batchv1alpha1.SlotFree
		r.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
	}
}

func completed(r *batchv1alpha1.JobRun) { ended(batchv1alpha1.JobRunCompleted)(r) }

func holding(r *batchv1alpha1.JobRun) { r.Status.Slot = batchv1alpha1.SlotHeld }

// inBackOff is a run that has failed and is to be retried.
func inBackOff(r *batchv1alpha1.JobRun) {
	r.Status.Phase, r.Status.Slot = batchv1alpha1.JobRunFailed, batchv1alpha1.SlotFree
}

func of(uid types.UID) detail {
	return func(r *batchv1alpha1.JobRun) { r.OwnerReferences[0].UID = uid }
}

func withoutOwner(r *batchv1alpha1.JobRun) { r.OwnerReferences = nil }

func called(name string) detail { return func(r *batchv1alpha1.JobRun) { r.Name = name } }

// retryOf is the waiting retry of a run.
func retryOf(r batchv1alpha1.JobRun) batchv1alpha1.JobRun {
	child := manual(r.Name + "-r1")
	child.Spec.RetryOf = r.Name
	child.Spec.Attempt = 1
	child.Spec.Chain = &batchv1alpha1.Chain{RootName: r.Name, RootUID: r.UID}
	return child
}

func all(these ...batchv1alpha1.JobRun) []batchv1alpha1.JobRun { return these }

// shown are the ticks of a decision as times of the day, Skipped ones in brackets.
func shown(ticks []schedule.Tick) []string {
	var texts []string
	for _, t := range ticks {
		text := t.Time.UTC().Format(time.TimeOnly)
		if t.Skip {
			text = "(" + text + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

func namesOf(active []batchv1alpha1.ActiveRun) []string {
	var names []string
	for _, a := range active {
		names = append(names, a.ScheduledTime.UTC().Format(time.TimeOnly))
	}
	return names
}
