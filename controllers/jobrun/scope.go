// SPDX-License-Identifier: Apache-2.0

package jobrun

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// scope is one reconcile of one run: the run as the cache shows it and the time, read once.
type scope struct {
	*Reconciler
	run *batchv1alpha1.JobRun
	// own says that the run at hand is what the API server answered to a write of this reconcile, as good as a live read.
	own bool
	now time.Time
	log logr.Logger
}

func (s *scope) where() string { return "run " + s.key(s.run.Name).String() }

func (s *scope) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.run.Namespace, Name: name}
}

func (s *scope) request() reconcile.Request { return request(s.run.Namespace, s.run.Name) }

// write changes the status of the run with the resourceVersion that was read, and tells the dispatcher of the answer.
func (s *scope) write(ctx context.Context, change func(*batchv1alpha1.JobRun)) error {
	next := s.run.DeepCopy()
	change(next)
	if err := s.Client.Status().Update(ctx, next); err != nil {
		return fmt.Errorf("writing the status of %s: %w", s.where(), err)
	}
	s.run, s.own = next, true
	s.wrote(next)
	return nil
}

// wrote tells whom it concerns of a run as the API server answered it to a write.
func (s *scope) wrote(r *batchv1alpha1.JobRun) {
	s.written.note(r)
	s.Queues.Wrote(r)
}

// end is an outcome to be written.
type end struct {
	phase   batchv1alpha1.JobRunPhase
	reason  string
	message string
	result  *batchv1alpha1.WorkResult
	stopped bool
	// confirmation is what a person has said about the stop of the work, if that was needed to end it.
	confirmation string
}

// finish writes the outcome of the run, together with what follows from it alone: whether its chain goes on, and what is
// owed to the receivers of its queue and its ScheduledJob.
func (s *scope) finish(ctx context.Context, e end) error {
	sources, err := s.sources(ctx)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(r *batchv1alpha1.JobRun) {
		r.Status.Result = e.result
		run.Finish(r, e.phase, e.reason, bounded(e.message), e.stopped, s.now)
		meta.RemoveStatusCondition(&r.Status.Conditions, batchv1alpha1.ConditionStale)
		if e.confirmation != "" {
			sayConfirmed(r, e.confirmation, s.now)
		}
		forGood := retry.Conclude(r, s.now)
		r.Status.Announcements = notify.Owed(r, sources, forGood)
	})
	if err != nil {
		return err
	}
	s.ended()
	if c := meta.FindStatusCondition(s.run.Status.Conditions, batchv1alpha1.ConditionStalled); c != nil && c.Reason == batchv1alpha1.ReasonRetriesExhausted {
		s.log.Info("chain exhausted", "root", run.Chain(s.run).RootName, "attempts", run.Attempt(s.run)+1, "message", c.Message)
	}
	return nil
}

// sources returns who names the receivers that hear of the run.
func (s *scope) sources(ctx context.Context) (notify.Sources, error) {
	queue, err := s.queue(ctx)
	if err != nil {
		return notify.Sources{}, err
	}
	from := notify.Sources{Queue: queue}
	if name := run.ScheduledJob(s.run); name != "" {
		from.ScheduledJob, err = s.scheduledJob(ctx, name)
	}
	return from, err
}

// queue returns the JobQueue of the run, or nil if there is none. Receivers that a cache overlooks would never hear of the run.
func (s *scope) queue(ctx context.Context) (*batchv1alpha1.JobQueue, error) {
	name := run.Queue(s.run)
	if name == "" {
		return nil, nil
	}
	queue := &batchv1alpha1.JobQueue{}
	if there, err := s.read(ctx, name, queue); !there || err != nil {
		return nil, err
	}
	return queue, nil
}

// refresh replaces the cached run by a live read. It reports false, and keeps the cached one, if that shows another phase or
// another object: the cache was behind, and its next event brings the run back.
func (s *scope) refresh(ctx context.Context) (bool, error) {
	live := &batchv1alpha1.JobRun{}
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.run), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if live.UID != s.run.UID || live.Status.Phase != s.run.Status.Phase || run.Epoch(live) != run.Epoch(s.run) {
		return false, nil
	}
	s.run = live
	return true, nil
}

// bounded cuts a message to what the API accepts.
func bounded(message string) string {
	const most = 1024
	if r := []rune(message); len(r) > most {
		return string(r[:most]) + "…"
	}
	return message
}
