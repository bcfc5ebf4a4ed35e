// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// The objects of config/samples that the story is about.
const (
	queueName   = "agents"
	everyName   = "heartbeat"
	byHandName  = "heartbeat-by-hand"
	onceName    = "wake-agent-7"
	flakyName   = "flaky-report"
	slowName    = "slow-research"
	podsName    = "pod-work"
	reserveName = "terminal"

	everySeconds = 5
	topic        = "agent:agent-7:scheduled"
)

// story is what the demo tells, and what it must remember between the chapters.
type story struct {
	*stage
	victim  batchv1alpha1.JobRun   // the run that is Running when the manager is killed
	waiting []batchv1alpha1.JobRun // what is Queued at that moment
	watch   *watcher
}

// tell goes through the chapters, each of which checks what it claims.
func (s *story) tell(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{
		s.begin, s.once, s.retried, s.recurring, s.inPods, s.chatted, s.reserved, s.killed, s.recovered, s.resumed, s.announced, s.end,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin starts the manager and applies the samples, but for those that come later or need nodes.
func (s *story) begin(ctx context.Context) error {
	s.say.step("The manager, and config/samples")
	if err := s.launch(ctx, "manager-1.log"); err != nil {
		return err
	}
	s.say.claim("manager process %d is ready", s.manager.pid())
	samples, err := readSamples(filepath.Join(s.root, "config", "samples"))
	if err != nil {
		return err
	}
	return s.apply(ctx, slices.DeleteFunc(samples, func(f sample) bool {
		if f.pods && !s.pods {
			s.say.note("(%s stays out: this control plane has no nodes to run pods)", f.file)
			return true
		}
		return f.kind == "DirectReservation" // later
	}))
}

func (s *story) apply(ctx context.Context, samples []sample) error {
	what := "config/samples/"
	if len(samples) == 1 {
		what += samples[0].file
	}
	s.say.command("apply -f", what)
	return s.kubectl(ctx, at(samples, s.server.address()), "apply", "-f", "-")
}

// once: a one-time schedule that is past due fires at once, exactly once.
func (s *story) once(ctx context.Context) error {
	s.say.step("A one-time schedule that was past due")
	var run batchv1alpha1.JobRun
	err := s.await(ctx, "one run of "+onceName+", Completed", func(ctx context.Context) (string, error) {
		runs, err := s.runsOf(ctx, onceName)
		if err != nil || len(runs) != 1 {
			return fmt.Sprintf("it has %d runs", len(runs)), err
		}
		run = runs[0]
		return not(&run, batchv1alpha1.JobRunCompleted), nil
	})
	if err != nil {
		return err
	}
	err = s.await(ctx, "ScheduledJob "+onceName+" is deleted", func(ctx context.Context) (string, error) {
		err := s.client.Get(ctx, s.key(onceName), &batchv1alpha1.ScheduledJob{})
		return unless(apierrors.IsNotFound(err), "it is still there"), client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	log, err := s.server.log.entries()
	if err != nil {
		return err
	}
	events := log.where(func(e entry) bool { return e.Event == received && e.Subject == topic })
	if len(events) != 1 || events[0].ID != string(run.UID) || events[0].Key != events[0].ID {
		return fmt.Errorf("the server has received %+v for the topic %s, of run %s (%s)", events, topic, run.Name, run.UID)
	}
	s.say.claim("%s fired once, as run %s, and is deleted (ttlSecondsAfterFired 0)", onceName, run.Name)
	s.say.claim("the server received one CloudEvent %s with subject %s", events[0].Type, events[0].Subject)
	return nil
}

// retried: a run that fails is tried again by a run of its own.
func (s *story) retried(ctx context.Context) error {
	s.say.step("A run that fails, and its retry")
	root, child := &batchv1alpha1.JobRun{}, &batchv1alpha1.JobRun{}
	err := s.await(ctx, "the chain of "+flakyName+" is Complete", func(ctx context.Context) (string, error) {
		err := s.client.Get(ctx, s.key(flakyName), root)
		return unless(meta.IsStatusConditionTrue(root.Status.Conditions, batchv1alpha1.ConditionComplete), "it is %s (%s)", root.Status.Phase, root.Status.Reason), err
	})
	if err != nil {
		return err
	}
	if err := s.client.Get(ctx, s.key(flakyName+"-r1"), child); err != nil {
		return err
	}
	if err := first(
		not(root, batchv1alpha1.JobRunFailed), not(child, batchv1alpha1.JobRunCompleted),
		unless(root.Status.Reason == batchv1alpha1.ReasonWorkFailed, "%s failed for %s", root.Name, root.Status.Reason),
	); err != nil {
		return err
	}
	delay := child.Status.StartedAt.Sub(root.Status.FinishedAt.Time)
	if base := time.Duration(*root.Spec.RetryPolicy.BaseDelaySeconds) * time.Second; delay < base {
		return fmt.Errorf("the retry came after %s, and baseDelaySeconds is %s", delay, base)
	}
	if _, err := s.sameKey(root, child); err != nil {
		return err
	}
	s.say.claim("%s failed: %s", root.Name, root.Status.Message)
	s.say.claim("%s completed, %s later; both calls carried the Idempotency-Key %s", child.Name, delay, root.UID)
	return nil
}

// sameKey makes sure that each of the two attempts made one call, with the key of the chain, and returns the second one.
func (s *story) sameKey(root, child *batchv1alpha1.JobRun) (again entry, err error) {
	log, err := s.server.log.entries()
	if err != nil {
		return entry{}, err
	}
	for i, r := range []*batchv1alpha1.JobRun{root, child} {
		calls := log.calls(s.key(r.Name).String())
		if len(calls) != 1 || calls[0].Key != string(root.UID) || calls[0].Attempt != fmt.Sprint(i) {
			return entry{}, fmt.Errorf("for %s the server has received %+v; expected: one call, attempt %d, key %s", r.Name, calls, i, root.UID)
		}
		again = calls[0]
	}
	return again, nil
}

// recurring: every tick is one run and one call.
func (s *story) recurring(ctx context.Context) error {
	s.say.step("A schedule of a few seconds")
	var ticks []batchv1alpha1.JobRun
	err := s.await(ctx, "two ticks and the run by hand have Completed", func(ctx context.Context) (string, error) {
		runs, err := s.runsOf(ctx, everyName)
		if err != nil {
			return "", err
		}
		ticks = slices.DeleteFunc(runs, func(r batchv1alpha1.JobRun) bool {
			return r.Spec.ScheduledTime == nil || r.Status.Phase != batchv1alpha1.JobRunCompleted
		})
		byHand, err := s.run(ctx, byHandName)
		if err != nil || len(ticks) < 2 {
			return fmt.Sprintf("%d ticks have", len(ticks)), err
		}
		return not(byHand, batchv1alpha1.JobRunCompleted), nil
	})
	if err != nil {
		return err
	}
	apart := ticks[1].Spec.ScheduledTime.Sub(ticks[0].Spec.ScheduledTime.Time)
	if apart == 0 || apart%(everySeconds*time.Second) != 0 {
		return fmt.Errorf("the ticks of %s are %s apart", everyName, apart)
	}
	byHand, err := s.run(ctx, byHandName)
	if err != nil {
		return err
	}
	if err := s.calledOnce(append(ticks, *byHand)); err != nil {
		return err
	}
	s.say.claim("%s: its ticks are %ds apart, and each was one run and one call", everyName, everySeconds)
	s.say.claim("%s ran the same template now, by hand", byHandName)
	return nil
}

// inPods: where there are nodes, the same life is led by pods.
func (s *story) inPods(ctx context.Context) error {
	if !s.pods {
		return nil
	}
	s.say.step("Work in pods")
	var run *batchv1alpha1.JobRun
	err := s.await(ctx, podsName+" is Completed (its image has to be pulled)", func(ctx context.Context) (missing string, err error) {
		if run, err = s.run(ctx, podsName); err != nil {
			return "", err
		}
		return not(run, batchv1alpha1.JobRunCompleted), nil
	})
	if err == nil {
		s.say.claim("%s: %s", run.Name, run.Status.Message)
	}
	return err
}

// calledOnce says which of the runs has not made exactly one call.
func (s *story) calledOnce(runs []batchv1alpha1.JobRun) error {
	log, err := s.server.log.entries()
	if err != nil {
		return err
	}
	for _, r := range runs {
		if n := len(log.calls(s.key(r.Name).String())); n != 1 {
			return fmt.Errorf("run %s has made %d calls", r.Name, n)
		}
	}
	return nil
}

func (s *story) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.ns, Name: name}
}

func (s *story) run(ctx context.Context, name string) (*batchv1alpha1.JobRun, error) {
	r := &batchv1alpha1.JobRun{}
	return r, s.client.Get(ctx, s.key(name), r)
}

// runs lists the runs of the namespace that have the properties.
func (s *story) runs(ctx context.Context, which ...client.ListOption) ([]batchv1alpha1.JobRun, error) {
	list := &batchv1alpha1.JobRunList{}
	err := s.client.List(ctx, list, append(which, client.InNamespace(s.ns))...)
	return list.Items, err
}

func (s *story) runsOf(ctx context.Context, scheduledJob string) ([]batchv1alpha1.JobRun, error) {
	return s.runs(ctx, client.MatchingFields{"spec.scheduledJobRef.name": scheduledJob})
}

// not says that a run is in another phase; "" if it is in this one.
func not(r *batchv1alpha1.JobRun, phase batchv1alpha1.JobRunPhase) string {
	return unless(r.Status.Phase == phase, "%s is %s (%s %s)", r.Name, r.Status.Phase, r.Status.Reason, r.Status.Message)
}

// first returns the first complaint as an error.
func first(complaints ...string) error {
	for _, c := range complaints {
		if c != "" {
			return fmt.Errorf("%s", c)
		}
	}
	return nil
}
