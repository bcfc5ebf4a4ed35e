// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// reserved fills the queue: one slot for the slow run, one for somebody at a terminal. What ticks now has to wait.
func (s *story) reserved(ctx context.Context) error {
	s.say.step("A direct reservation; the queue is full")
	samples, err := readSamples(filepath.Join(s.root, "config", "samples"))
	if err != nil {
		return err
	}
	err = s.apply(ctx, slices.DeleteFunc(samples, func(f sample) bool { return f.kind != "DirectReservation" }))
	if err != nil {
		return err
	}
	queue := &batchv1alpha1.JobQueue{}
	err = s.await(ctx, "one run and one reservation use the queue, and a run waits", func(ctx context.Context) (string, error) {
		err := s.client.Get(ctx, s.key(queueName), queue)
		q := queue.Status
		return unless(q.Running == 1 && q.Reserved == 1 && q.Queued > 0, "queue %s has %d running, %d reserved, %d queued", queueName, q.Running, q.Reserved, q.Queued), err
	})
	if err != nil {
		return err
	}
	reservation := &batchv1alpha1.DirectReservation{}
	if err := s.client.Get(ctx, s.key(reserveName), reservation); err != nil {
		return err
	}
	if reservation.Status.Phase != batchv1alpha1.ReservationGranted {
		return fmt.Errorf("reservation %s is %s", reserveName, reservation.Status.Phase)
	}
	s.say.claim("%s holds a slot for %s; with %s at work both slots of queue %s are in use, and runs wait", reserveName, reservation.Spec.HolderIdentity, slowName, queueName)
	return nil
}

// killed: the manager dies in the middle of the slow call, and the API still says Running.
func (s *story) killed(ctx context.Context) error {
	s.say.step("kill -9, while " + slowName + " is Running")
	victim, err := s.run(ctx, slowName)
	if err != nil {
		return err
	}
	log, err := s.server.log.entries()
	if err != nil {
		return err
	}
	err = first(
		not(victim, batchv1alpha1.JobRunRunning),
		unless(len(log.calls(s.key(slowName).String())) == 1, "the server has not received the call of %s", slowName),
	)
	if err != nil {
		return err
	}
	s.say.command("get jr -w", "   # lines about "+slowName)
	if s.watch, err = s.startWatch(ctx, "jr", slowName); err != nil {
		return err
	}
	err = s.await(ctx, "kubectl shows the run", func(context.Context) (string, error) {
		return unless(s.watch.shown(slowName, "Running"), "it has not"), nil
	})
	if err != nil {
		return err
	}
	m := s.manager
	s.manager = nil // its end is no surprise
	if err := m.kill(); err != nil {
		return err
	}
	s.say.claim("manager process %d is dead", m.pid())
	s.waiting, err = s.runs(ctx, client.MatchingFields{"status.phase": string(batchv1alpha1.JobRunQueued)})
	if err != nil {
		return err
	}
	if victim, err = s.run(ctx, slowName); err != nil {
		return err
	}
	s.victim = *victim
	err = s.await(ctx, "the server sees the call break off", func(context.Context) (string, error) {
		log, err := s.server.log.entries()
		return unless(len(s.breaks(log)) == 1, "it has not"), err
	})
	if err != nil {
		return err
	}
	s.say.claim("the server saw the call break off; the run is still %s, and Queued are: %d", victim.Status.Phase, len(s.waiting))
	return first(not(victim, batchv1alpha1.JobRunRunning), unless(len(s.waiting) > 0, "no run waits"))
}

func (s *story) breaks(log entries) entries {
	return log.where(func(e entry) bool { return e.Event == broken && e.Run == s.key(slowName).String() })
}

// recovered: the next manager fails the run, and its retry goes on with the same key.
func (s *story) recovered(ctx context.Context) error {
	s.say.step("The manager, started again")
	if err := s.launch(ctx, "manager-2.log"); err != nil {
		return err
	}
	s.say.note("manager process %d", s.manager.pid())
	child := &batchv1alpha1.JobRun{}
	err := s.await(ctx, slowName+"-r1 is Completed, and kubectl shows it", func(ctx context.Context) (missing string, err error) {
		if child, err = s.run(ctx, slowName+"-r1"); err != nil {
			return "", err
		}
		if missing := not(child, batchv1alpha1.JobRunCompleted); missing != "" {
			return missing, nil
		}
		return unless(s.watch.shown(child.Name, "Completed"), "kubectl has not shown it"), nil
	})
	if err != nil {
		return err
	}
	s.watch.end()
	if !s.watch.shown(slowName, "Failed", batchv1alpha1.ReasonCrashRecovery) {
		return fmt.Errorf("kubectl did not show %s as Failed with %s", slowName, batchv1alpha1.ReasonCrashRecovery)
	}
	return s.judge(ctx, child)
}

// judge checks what the crash left behind.
func (s *story) judge(ctx context.Context, child *batchv1alpha1.JobRun) error {
	run, err := s.run(ctx, slowName)
	if err != nil {
		return err
	}
	message := "Scheduler crash recovery: run was Running when previous instance " + s.victim.Status.Incarnation.ID + " stopped"
	err = first(
		not(run, batchv1alpha1.JobRunFailed),
		unless(run.Status.Reason == batchv1alpha1.ReasonCrashRecovery, "the reason of %s is %s", run.Name, run.Status.Reason),
		unless(run.Status.Message == message, "the message of %s is %q, not %q", run.Name, run.Status.Message, message),
	)
	if err != nil {
		return err
	}
	s.say.claim("%s is Failed (%s): %s", run.Name, run.Status.Reason, run.Status.Message)
	again, err := s.sameKey(run, child)
	if err != nil {
		return err
	}
	log, err := s.server.log.entries()
	if err != nil {
		return err
	}
	if gone := s.breaks(log); len(gone) != 1 || !gone[0].Time.Before(again.Time) {
		return fmt.Errorf("the call of %s broke off at %+v, and that of %s came at %s", run.Name, gone, child.Name, again.Time)
	}
	s.say.claim("%s completed with the same Idempotency-Key; at no moment were both at work", child.Name)
	return s.summary(ctx)
}

// summary checks what the manager says of the start, and what became of the reservation.
func (s *story) summary(ctx context.Context) error {
	lines, err := s.manager.logged("scheduler_startup_cleanup")
	if err != nil {
		return err
	}
	if len(lines) != 1 || lines[0]["running_failed"] != float64(1) {
		return fmt.Errorf("the manager's log says of its start: %v", lines)
	}
	reservation := &batchv1alpha1.DirectReservation{}
	if err := s.client.Get(ctx, s.key(reserveName), reservation); err != nil {
		return err
	}
	if r := reservation.Status; r.Phase != batchv1alpha1.ReservationExpired || r.Reason != batchv1alpha1.ReasonHolderLost {
		return fmt.Errorf("reservation %s is %s (%s)", reserveName, r.Phase, r.Reason)
	}
	s.say.claim("the manager's log: scheduler_startup_cleanup running_failed=1")
	s.say.claim("%s is Expired (%s): nobody had renewed it, so its slot is free again", reserveName, reservation.Status.Reason)
	return nil
}

// resumed: what was Queued at the moment of the crash has run since, once.
func (s *story) resumed(ctx context.Context) error {
	var names []string
	for i := range s.waiting {
		err := s.await(ctx, "what was Queued has Completed", func(ctx context.Context) (string, error) {
			run, err := s.run(ctx, s.waiting[i].Name)
			if err == nil && run.UID != s.waiting[i].UID {
				err = fmt.Errorf("%s is another run now", run.Name)
			}
			return not(run, batchv1alpha1.JobRunCompleted), err
		})
		if err != nil {
			return err
		}
		names = append(names, s.waiting[i].Name)
	}
	if err := s.calledOnce(s.waiting); err != nil {
		return err
	}
	s.say.claim("what was Queued at the kill has run since, each with one call: %s", strings.Join(names, ", "))
	return nil
}
