// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	waiting   = batchv1alpha1.MemberWaiting
	queued    = batchv1alpha1.MemberQueued
	running   = batchv1alpha1.MemberRunning
	completed = batchv1alpha1.MemberCompleted
	failed    = batchv1alpha1.MemberFailed
	skipped   = batchv1alpha1.MemberSkipped
	aborted   = batchv1alpha1.MemberCancelled
)

type change func(*batchv1alpha1.JobGroup)

// aGroup is a sequence of the members a, b and c that stops when one fails, as the API server stores it.
func aGroup(changes ...change) *batchv1alpha1.JobGroup {
	g := &batchv1alpha1.JobGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "g", UID: "uid-g", Generation: 1, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
	}}
	g.Spec.Mode, g.Spec.OnFailure = batchv1alpha1.GroupSequential, batchv1alpha1.GroupStop
	for _, name := range []string{"a", "b", "c"} {
		g.Spec.Members = append(g.Spec.Members, batchv1alpha1.GroupMember{Name: name})
	}
	g.Status.Phase, g.Status.ObservedGeneration = batchv1alpha1.JobGroupPending, -1
	for _, c := range changes {
		c(g)
	}
	return g
}

func parallel(g *batchv1alpha1.JobGroup) { g.Spec.Mode = batchv1alpha1.GroupParallel }

func on(p batchv1alpha1.GroupFailurePolicy) change {
	return func(g *batchv1alpha1.JobGroup) { g.Spec.OnFailure = p }
}

func cancel(g *batchv1alpha1.JobGroup) { g.Spec.Cancel = true }

func halted(phase batchv1alpha1.JobRunPhase, reason string) change {
	return func(g *batchv1alpha1.JobGroup) {
		g.Status.Halt = &batchv1alpha1.Halt{Phase: phase, Reason: reason, Message: "by its creator"}
	}
}

func in(p batchv1alpha1.JobGroupPhase) change {
	return func(g *batchv1alpha1.JobGroup) { g.Status.Phase = p }
}

// told puts into the status where members stand: those with a phase that a run leads to have one.
func told(phases ...batchv1alpha1.GroupMemberPhase) change {
	return func(g *batchv1alpha1.JobGroup) {
		g.Status.Phase, g.Status.Members = batchv1alpha1.JobGroupRunning, nil
		for i, p := range phases {
			s := batchv1alpha1.GroupMemberStatus{Name: g.Spec.Members[i].Name, Phase: p}
			if p != waiting {
				s.RunName = RunName(g.Name, s.Name, 0)
				s.RunUID = types.UID("uid-" + s.RunName)
			}
			g.Status.Members = append(g.Status.Members, s)
		}
	}
}

type detail func(*batchv1alpha1.JobRun)

// runOf is the run of a member of the group g, Queued as the API server stores it.
func runOf(member string, details ...detail) batchv1alpha1.JobRun {
	name := RunName("g", member, 0)
	r := batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
	}}
	r.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	r.Spec.GroupRef = &batchv1alpha1.GroupMemberRef{Name: "g", Member: member}
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, d := range details {
		d(&r)
	}
	return r
}

func atWork(r *batchv1alpha1.JobRun) { run.Claim{}.Apply(r, noon) }

// ended gives a run that was at work its outcome; stopped says whether its slot is free.
func ended(p batchv1alpha1.JobRunPhase, stopped bool) detail {
	return func(r *batchv1alpha1.JobRun) {
		atWork(r)
		run.Finish(r, p, "ByTheWork", "the work says so", stopped, noon)
		retry.Conclude(r, noon)
	}
}

// aside ends a run that was never at work.
func aside(p batchv1alpha1.JobRunPhase, reason string) detail {
	return func(r *batchv1alpha1.JobRun) {
		run.Finish(r, p, reason, "before it started", true, noon)
		retry.Conclude(r, noon)
	}
}

func done(r *batchv1alpha1.JobRun) { ended(batchv1alpha1.JobRunCompleted, true)(r) }

// broken has failed, and is to be retried.
func broken(r *batchv1alpha1.JobRun) { ended(batchv1alpha1.JobRunFailed, true)(r) }

// lost has failed for good.
func lost(r *batchv1alpha1.JobRun) { once(r); broken(r) }

// once keeps it from being retried.
func once(r *batchv1alpha1.JobRun) {
	r.Spec.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To[int32](0)}
}

func askedFor(p batchv1alpha1.JobRunPhase) detail {
	return func(r *batchv1alpha1.JobRun) { r.Status.Halt = &batchv1alpha1.Halt{Phase: p, Reason: "Earlier"} }
}

// retryOf is the retry of a failed run, which is told of it.
func retryOf(r *batchv1alpha1.JobRun, details ...detail) batchv1alpha1.JobRun {
	child := *retry.Child(r, nil, 0)
	child.UID = types.UID("uid-" + child.Name)
	child.Status.Phase = batchv1alpha1.JobRunQueued
	for _, d := range details {
		d(&child)
	}
	r.Status.Retry = &batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}
	retry.Tell(r, []batchv1alpha1.JobRun{*r, child}, noon)
	return child
}

func all(runs ...batchv1alpha1.JobRun) []batchv1alpha1.JobRun { return runs }

// chainOf is a broken run of a member and its retry.
func chainOf(member string, root detail, details ...detail) []batchv1alpha1.JobRun {
	r := runOf(member, root)
	child := retryOf(&r, details...)
	return all(r, child)
}

func together(runs ...[]batchv1alpha1.JobRun) []batchv1alpha1.JobRun {
	var sum []batchv1alpha1.JobRun
	for _, r := range runs {
		sum = append(sum, r...)
	}
	return sum
}

// shown is a status in short: the phase of the group, and those of its members.
func shown(s batchv1alpha1.JobGroupStatus) string {
	text := string(s.Phase) + ":"
	for _, m := range s.Members {
		text += " " + string(m.Phase)
	}
	return text
}

// halts are the requests of a decision in short.
func halts(asks []Ask) []string {
	var texts []string
	for _, a := range asks {
		texts = append(texts, fmt.Sprintf("%s %s", a.Run.Name, a.Halt.Phase))
	}
	return texts
}
