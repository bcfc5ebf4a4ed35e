// SPDX-License-Identifier: Apache-2.0

// Package executor says what the controllers ask of anything that executes the work of runs. The two executors are
// in job/ (pods) and http/ (a call made by the manager).
package executor

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Life says what is known of the work of a run.
type Life string

const (
	// NeverStarted: the work never began, and cannot begin any more or has not been asked to.
	NeverStarted Life = "NeverStarted"
	// Alive: the work is going on, or may begin at any moment.
	Alive Life = "Alive"
	// Ended: the work came to an end of its own and its outcome is known.
	Ended Life = "Ended"
	// Unknown: nobody can tell, such as for a call that another manager process made.
	Unknown Life = "Unknown"
)

// Evidence is what an executor found out about the work of one run.
type Evidence struct {
	// Life of the work.
	Life Life
	// Outcome is set if and only if Life is Ended.
	Outcome *Outcome
	// Stopped says that nothing of the run's work lives and nothing can start any more: the slot may be freed.
	Stopped bool
	// Confirmable says, of work that has not Stopped, that nothing more of it can begin as far as can be seen, and that the
	// end of the rest may never be seen: a person's word that it is gone counts.
	Confirmable bool
	// Due is when the first of what still lives should have ended by the grace it was given. Zero: it was given none.
	Due time.Time
	// EndedAt is when the last pod of work that is not over yet has ended: its outcome is about to be known. Zero: something
	// lives, or nothing has ended.
	EndedAt time.Time
	// LastSign is when the work last gave a sign of life of its own, by the clock of this process. Zero if the executor
	// knows of none: that work merely exists is none.
	LastSign time.Time
	// Detail tells a person what is still alive, or why it cannot be known.
	Detail string
	// RecheckAfter asks for another look after that time, where no event will announce a change. Zero: an event will.
	RecheckAfter time.Duration
}

// Outcome is the proven end of the work of a run.
type Outcome struct {
	// Phase is Completed, Failed or Skipped.
	Phase batchv1alpha1.JobRunPhase
	// Reason is one of the Reason constants of the API.
	Reason string
	// Message explains the outcome to a person. It holds no secret.
	Message string
	// Result is what the work left behind; may be nil.
	Result *batchv1alpha1.WorkResult
}

// Executor executes the work of runs. Every method may be repeated, by this process or a later one, without harm.
type Executor interface {
	// Expect says that a claim for the run is on its way to the API server, so that a run seen Running before Start was
	// called is not taken for one that nobody executes. Forget takes it back.
	Expect(uid types.UID)

	// Start makes the work of a run begin. The caller has the run from an answered claim, or from a live read that shows it
	// Running under the present epoch. An error of type *Rejected is final: the work cannot begin as it stands. Any other
	// error leaves open whether it began; the caller calls again.
	Start(ctx context.Context, run *batchv1alpha1.JobRun) error

	// Look tells what is known of the work, and reads live whatever could have changed. Anything that decides an outcome looks right
	// before it writes.
	Look(ctx context.Context, run *batchv1alpha1.JobRun) (Evidence, error)

	// Seal sees to it that work which has not begun never begins, and returns what is known then. It does not disturb work
	// that has begun.
	Seal(ctx context.Context, run *batchv1alpha1.JobRun) (Evidence, error)

	// Stop makes the work end, sees to it that it never begins again, and returns what is known then. The caller has first
	// recorded the decision on the run, and calls again until Evidence.Stopped.
	Stop(ctx context.Context, run *batchv1alpha1.JobRun) (Evidence, error)

	// Forget drops what the executor keeps in memory about a run: its claim failed, or its outcome is on record.
	Forget(uid types.UID)
}

// Rejected says that the work of a run cannot begin as it stands, and would not if tried again unchanged.
type Rejected struct {
	// Reason is one of the Reason constants of the API.
	Reason string
	// Message explains it to a person. It holds no secret.
	Message string
}

// Error returns the message.
func (r *Rejected) Error() string { return r.Message }
