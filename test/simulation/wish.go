// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// namespace in which everything happens.
const namespace = "team"

// wish is something that a user does. What it is follows from its name and number alone.
type wish struct {
	At   time.Duration
	What string
	N    int
}

// wishesOf draws what users want.
func wishesOf(c chance, until time.Duration) []wish {
	kinds := []string{
		"run", "run", "run", "run", "run", "run", "run", "run", "cancel", "cancel", "delete", "retry", "prioritise", "schedule", "schedule once", "group",
		"reserve", "release", "cancel group", "delete group", "suspend", "limit", "delete schedule", "delete reservation", "trigger",
		"resend", "resend", "silence", "lose key",
	}
	var wishes []wish
	for n := range pick(c.of("how many"), 2, 4, 6, 10, 20) {
		w := c.nth(n)
		wishes = append(wishes, wish{At: time.Duration(w.of("at").unit() * float64(until) * 0.8), What: pick(w.of("what"), kinds...), N: n})
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(a.At, b.At) })
	return wishes
}

func (s *sim) create(o client.Object) {
	err := s.direct.Create(context.Background(), o)
	s.trace("a user creates %s %s: %s", s.kindOf(o), o.GetName(), s.result(err))
	s.changed()
}

// template is what a run is to do.
func (s *sim) template(c chance) batchv1alpha1.JobRunTemplateSpec {
	t := batchv1alpha1.JobRunTemplateSpec{
		Queue:       pick(c.of("queue"), "one", "two", "two"),
		RetryPolicy: &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To(pick[int32](c.of("retries"), 0, 1, 2, 3)), BaseDelaySeconds: ptr.To(pick[int32](c.of("delay"), 1, 5))},
	}
	if t.Queue == "two" {
		t.Type = pick(c.of("type"), "", "story", "research")
		if c.of("gpu").hits(0.3) {
			t.Claims = []batchv1alpha1.ResourceClaim{{Name: "gpu", Count: 1}}
		}
	}
	if c.of("timeout").hits(0.3) {
		t.TimeoutSeconds = ptr.To(pick[int64](c.of("how long"), 5, 30, 120))
	}
	if c.of("http").hits(0.5) {
		t.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "http://" + workHost + "/do", Method: "POST", SkipStatusCodes: []int32{204}, SuccessStatusCodes: []int32{200}}}
	} else {
		t.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{SkipExitCodes: []int32{42}, Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/work"}}}},
		}}}}
	}
	if c.of("ttl").hits(0.1) {
		t.TTLSecondsAfterFinished = ptr.To(pick[int32](c.of("how soon"), 0, 60))
	}
	if c.of("recovery").hits(0.2) && t.Work.HTTP == nil {
		t.RecoveryPolicy = batchv1alpha1.RecoveryAdopt
	}
	return t
}

// grant carries out a wish.
func (s *sim) grant(w wish) {
	c := s.chance.of("wish " + w.What).nth(w.N)
	meta := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", kind, w.N)}
	}
	switch w.What {
	case "run":
		for i := range 1 + c.of("how many").below(3) {
			m := meta("run")
			m.Name = fmt.Sprintf("%s-%d", m.Name, i)
			s.create(&batchv1alpha1.JobRun{ObjectMeta: m, Spec: batchv1alpha1.JobRunSpec{JobRunTemplateSpec: s.template(c.nth(i))}})
		}
	case "schedule", "schedule once":
		s.schedule(w, c, meta("sj"))
	case "group":
		s.create(&batchv1alpha1.JobGroup{ObjectMeta: meta("group"), Spec: batchv1alpha1.JobGroupSpec{JobGroupTemplateSpec: s.group(c)}})
	case "reserve":
		s.create(&batchv1alpha1.DirectReservation{ObjectMeta: meta("dr"), Spec: batchv1alpha1.DirectReservationSpec{
			Queue: pick(c.of("queue"), "one", "two"), LeaseDurationSeconds: pick[int32](c.of("lease"), 5, 30), WaitTimeoutSeconds: pick[int32](c.of("wait"), 10, 120),
		}})
	case "retry", "trigger":
		s.again(w, c, meta("again"))
	default:
		s.meddle(w, c)
	}
}

func (s *sim) group(c chance) batchv1alpha1.JobGroupTemplateSpec {
	t := batchv1alpha1.JobGroupTemplateSpec{
		Mode:      pick(c.of("mode"), batchv1alpha1.GroupSequential, batchv1alpha1.GroupParallel),
		OnFailure: pick(c.of("onFailure"), batchv1alpha1.GroupStop, batchv1alpha1.GroupContinue, batchv1alpha1.GroupSkip),
	}
	for i := range 2 + c.of("members").below(2) {
		t.Members = append(t.Members, batchv1alpha1.GroupMember{Name: fmt.Sprintf("m%d", i), RunTemplate: s.template(c.of("member").nth(i))})
	}
	return t
}

func (s *sim) schedule(w wish, c chance, meta metav1.ObjectMeta) {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: meta, Spec: batchv1alpha1.ScheduledJobSpec{
		MissedRunPolicy:   pick(c.of("missed"), batchv1alpha1.MissedRunOnce, batchv1alpha1.MissedRunAll, batchv1alpha1.MissedSkip),
		ConcurrencyPolicy: pick(c.of("overlap"), batchv1alpha1.ConcurrencyAllow, batchv1alpha1.ConcurrencyForbid, batchv1alpha1.ConcurrencyReplace),
	}}
	if w.What == "schedule" {
		sj.Spec.Schedule = pick(c.of("when"), "* * * * *", "@every 45s", "@every 90s")
		sj.Spec.CompletedHistoryLimit, sj.Spec.FailedHistoryLimit = ptr.To[int32](1), ptr.To[int32](1)
	} else {
		sj.Spec.RunAt = ptr.To(metav1.NewTime(s.now().Add(c.of("in").between(time.Second, time.Minute)).Truncate(time.Second)))
		if c.of("ttl").hits(0.3) {
			sj.Spec.TTLSecondsAfterFired = ptr.To[int32](0)
		}
	}
	if c.of("group").hits(0.25) {
		sj.Spec.GroupTemplate = ptr.To(s.group(c))
	} else {
		sj.Spec.RunTemplate = ptr.To(s.template(c))
	}
	if c.of("told").hits(0.5) {
		sj.Spec.Notifications = s.toldOf(c)
	}
	s.create(sj)
}

// meddle does something to what there is.
func (s *sim) meddle(w wish, c chance) {
	switch w.What {
	case "cancel":
		change(s, c, &batchv1alpha1.JobRunList{}, func(r *batchv1alpha1.JobRun) bool { return !r.Status.Phase.Terminal() }, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
	case "prioritise":
		change(s, c, &batchv1alpha1.JobRunList{}, queued, func(r *batchv1alpha1.JobRun) { r.Spec.Priority = ptr.To[int32](100) })
	case "cancel group":
		change(s, c, &batchv1alpha1.JobGroupList{}, func(g *batchv1alpha1.JobGroup) bool { return !g.Status.Phase.Terminal() }, func(g *batchv1alpha1.JobGroup) { g.Spec.Cancel = true })
	case "release":
		change(s, c, &batchv1alpha1.DirectReservationList{}, func(d *batchv1alpha1.DirectReservation) bool { return !d.Status.Phase.Terminal() }, func(d *batchv1alpha1.DirectReservation) { d.Spec.Release = true })
	case "suspend":
		change(s, c, &batchv1alpha1.JobQueueList{}, func(q *batchv1alpha1.JobQueue) bool { return true }, func(q *batchv1alpha1.JobQueue) { q.Spec.Suspend = true })
		s.after(c.of("back").between(time.Second, 30*time.Second), "queues go on", s.goOn)
	case "limit":
		change(s, c, &batchv1alpha1.JobQueueList{}, func(q *batchv1alpha1.JobQueue) bool { return q.Name == "two" }, func(q *batchv1alpha1.JobQueue) { q.Spec.Concurrency.Limit = ptr.To[int32](3) })
	case "resend", "silence", "lose key":
		s.meddleWithNews(w, c)
	default:
		s.remove(w, c)
	}
}

// remove deletes something of what there is.
func (s *sim) remove(w wish, c chance) {
	switch w.What {
	case "delete":
		deleteOne[*batchv1alpha1.JobRun](s, c, &batchv1alpha1.JobRunList{})
	case "delete group":
		deleteOne[*batchv1alpha1.JobGroup](s, c, &batchv1alpha1.JobGroupList{})
	case "delete schedule":
		deleteOne[*batchv1alpha1.ScheduledJob](s, c, &batchv1alpha1.ScheduledJobList{})
	case "delete reservation":
		deleteOne[*batchv1alpha1.DirectReservation](s, c, &batchv1alpha1.DirectReservationList{})
	default:
		panic("nobody can wish for " + w.What)
	}
}

// again runs something once more: a run that has failed, or what a ScheduledJob runs.
func (s *sim) again(w wish, c chance, meta metav1.ObjectMeta) {
	if w.What == "retry" {
		if r := choose(s, c, &batchv1alpha1.JobRunList{}, func(r *batchv1alpha1.JobRun) bool { return r.Status.Phase == batchv1alpha1.JobRunFailed }); r != nil {
			s.create(&batchv1alpha1.JobRun{ObjectMeta: meta, Spec: batchv1alpha1.JobRunSpec{RetryOf: r.Name}})
		}
		return
	}
	if sj := choose(s, c, &batchv1alpha1.ScheduledJobList{}, func(sj *batchv1alpha1.ScheduledJob) bool { return sj.Spec.RunTemplate != nil }); sj != nil {
		s.create(&batchv1alpha1.JobRun{ObjectMeta: meta, Spec: batchv1alpha1.JobRunSpec{ScheduledJobRef: &batchv1alpha1.ObjectName{Name: sj.Name}}})
	}
}

func queued(r *batchv1alpha1.JobRun) bool { return r.Status.Phase == batchv1alpha1.JobRunQueued }

// goOn ends the suspension of queues.
func (s *sim) goOn() {
	for _, name := range []string{"one", "two"} {
		q := &batchv1alpha1.JobQueue{}
		if s.direct.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, q) == nil && q.Spec.Suspend {
			q.Spec.Suspend = false
			s.trace("a user lets queue %s go on: %s", name, s.result(s.direct.Update(context.Background(), q)))
			s.changed()
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
