// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
	"reprise.dev/reprise/internal/plugin/reserve/guard"
	"reprise.dev/reprise/internal/plugin/text"
)

const (
	// exitLost: the slot was lost while the command ran, and the command was ended.
	exitLost = 75
	// exitFailed: the command was not started, or its guard was killed.
	exitFailed = 125

	// lostGrace is what the command gets to end when its slot is somebody else's already.
	lostGrace = time.Second
	// longestGrace is what it gets before its time is over.
	longestGrace = 5 * time.Second
	// lookEvery is how often a person is told where the reservation stands.
	lookEvery = 5 * time.Second
	// glance is how often the time is looked at: the timers of a machine that was asleep are late.
	glance = time.Second
	// insist is how often what does not end is killed again.
	insist = 20 * time.Millisecond
	// releasePatience bounds the attempt to give the slot back.
	releasePatience = 15 * time.Second
	// reservationVariable tells the command which reservation it works under.
	reservationVariable = "REPRISE_RESERVATION"
)

// keeper is the guard of a command; see guard.Guard.
type keeper interface {
	Events() <-chan guard.Event
	Plan(guard.Plan) error
	Run(guard.Orders) error
	Until(l guard.Limit, now time.Time, grace time.Duration) error
	Signal(os.Signal) error
	End(time.Duration) error
	Started(pid int)
	Sweep() (clean bool)
	Done()
}

// session is one call of the command.
type session struct {
	f       *cli.Factory
	api     client.WithWatch
	wish    *wish
	guard   keeper
	signals <-chan os.Signal
	slot    *slot

	versions chan version
	watching chan finished // the watch gave up
	looked   chan string
	said     string // where it stands

	// of the command:
	exit    *guard.Exit
	failed  *guard.Failure
	gone    bool  // nothing of it is left
	crashed bool  // its guard was killed
	lost    error // why it was ended
	warned  bool  // renewals fail, and that was said
}

// finished is the end of something that goes on beside the rest.
type finished struct{ err error }

// version is what the watch has seen.
type version struct {
	reservation *batchv1alpha1.DirectReservation
	deleted     bool
}

// run makes the reservation, waits, runs the command and gives the slot back.
func (x *session) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // the signals are the command's
	defer stop()
	defer x.guard.Done()
	if err := x.guard.Plan(x.slot.plan); err != nil {
		return failure(err)
	}
	err := x.reserve(ctx)
	if err == nil {
		go x.watch(ctx)
		if err = x.await(ctx); err == nil {
			err = x.use(ctx)
		}
	}
	x.release(ctx)
	return failure(err)
}

// failure gives an error that has no exit code yet that of a command that was not started.
func failure(err error) error {
	_, exits := errors.AsType[*cli.ExitError](err)
	_, interrupted := errors.AsType[*cli.Interrupted](err)
	if err == nil || exits || interrupted {
		return err
	}
	return &cli.ExitError{Code: exitFailed, Err: err}
}

// reserve makes the reservation, which a signal breaks off.
func (x *session) reserve(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, x.wish.timeout)
	defer cancel()
	made := make(chan finished, 1)
	go func() { made <- finished{x.slot.create(ctx, x.wish.reservation(x.slot.plan))} }()
	select {
	case end := <-made:
		return end.err
	case caught := <-x.signals:
		cancel()
		<-made
		return &cli.Interrupted{Signal: caught}
	}
}

// watch sends every version of the reservation.
func (x *session) watch(ctx context.Context) {
	p := x.slot.plan
	err := x.f.Follow(ctx, x.api, &batchv1alpha1.DirectReservationList{}, func(o client.Object, deleted bool) (bool, error) {
		d, ok := o.(*batchv1alpha1.DirectReservation)
		if !ok {
			return false, fmt.Errorf("a watch of reservations has sent a %T", o)
		}
		select {
		case x.versions <- version{d, deleted}:
			return false, nil
		case <-ctx.Done():
			return true, nil
		}
	}, client.InNamespace(p.Namespace), client.MatchingFields{"metadata.name": p.Name})
	x.watching <- finished{err}
}

// await waits until the slot is held, and enough is left of the lease to renew it in time.
func (x *session) await(ctx context.Context) error {
	began := x.f.Clock.Now()
	end := guard.Until(began, x.wish.timeout)
	ticker := x.f.Clock.NewTicker(lookEvery)
	defer ticker.Stop()
	x.look(ctx)
	for {
		now := x.f.Clock.Now()
		if ready, err := x.ready(now, end); err != nil {
			return err
		} else if ready {
			x.note("has its slot after %s", now.Sub(began).Round(time.Second))
			return nil
		}
		x.slot.renew(ctx)
		if err := x.wait(ctx, ticker.C(), min(glance, max(insist, x.slot.next.Sub(now)))); err != nil {
			return err
		}
	}
}

// ready says whether the command can be started; the error says why it never can.
func (x *session) ready(now time.Time, end guard.Limit) (bool, error) {
	s := x.slot
	switch lost := s.lost(); {
	case lost != nil:
		return false, lost
	case s.granted && s.sure.Left(now) > s.lease/4:
		return true, nil
	case end.Left(now) <= 0:
		return false, notInTime(s.current)
	case s.granted:
		s.next = time.Time{} // the answer was slow, or the clock is off
	}
	return false, nil
}

// wait waits until something happens while the reservation waits, or the time is to be looked at. The error says why to give up.
func (x *session) wait(ctx context.Context, tick <-chan time.Time, pause time.Duration) error {
	timer := x.f.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case v := <-x.versions:
		was := x.slot.current.Status.Phase
		if x.slot.see(v.reservation, v.deleted); x.slot.current.Status.Phase != was {
			x.look(ctx)
		}
	case r := <-x.slot.underway:
		x.slot.learn(r)
	case end := <-x.watching:
		return end.err
	case text := <-x.looked:
		x.tell(text)
	case <-tick:
		x.look(ctx)
	case caught := <-x.signals:
		return &cli.Interrupted{Signal: caught}
	case <-x.guard.Events():
		return errors.New("the guard of the command was killed")
	case <-timer.C():
	}
	return nil
}

// look finds out where the reservation stands, without waiting for it.
func (x *session) look(ctx context.Context) {
	if x.wish.quiet {
		return
	}
	own := x.slot.current
	go func() {
		others, runs := look(ctx, x.api, own.Namespace)
		select {
		case x.looked <- standing(own, others, runs, x.slot.times.now()):
		case <-ctx.Done():
		}
	}()
}

// tell says where it stands, if that is news.
func (x *session) tell(text string) {
	if text != x.said && x.slot.current.Status.Phase != batchv1alpha1.ReservationGranted {
		x.said = text
		x.note("%s", text)
	}
}

func (x *session) note(format string, args ...any) {
	if !x.wish.quiet {
		x.f.Notef("reservation %s %s\n", x.slot.plan.Name, fmt.Sprintf(format, args...))
	}
}

// use runs the command and keeps the slot until nothing of it is left.
func (x *session) use(ctx context.Context) error {
	terminal := guard.OpenTerminal()
	defer func() { terminal.TakeBack(x.lost != nil || x.crashed) }()
	x.prolong()
	env := append(os.Environ(), reservationVariable+"="+x.slot.plan.Namespace+"/"+x.slot.plan.Name)
	if err := x.guard.Run(guard.Orders{Env: env, Foreground: terminal != nil}); err != nil {
		return err
	}
	watching := x.watching
	for !x.gone && x.failed == nil {
		x.slot.renew(ctx)
		timer := x.f.Clock.NewTimer(x.pause())
		select {
		case e, ok := <-x.guard.Events():
			x.hear(e, ok)
		case v := <-x.versions:
			x.slot.see(v.reservation, v.deleted)
		case r := <-x.slot.underway:
			x.renewed(r)
		case <-watching: // renewals show the rest
			watching = nil
		case <-x.looked:
		case caught := <-x.signals:
			_ = x.guard.Signal(caught)
		case <-timer.C():
		}
		timer.Stop()
		x.judge()
	}
	return x.outcome()
}

// pause is how long nothing may happen until the time is looked at.
func (x *session) pause() time.Duration {
	if x.crashed {
		return insist
	}
	return min(glance, max(insist, x.slot.next.Sub(x.f.Clock.Now())))
}

// prolong tells the guard until when the slot is held for sure.
func (x *session) prolong() {
	// A guard that does not take it is dead, or stands still, and is dealt with then.
	_ = x.guard.Until(x.slot.sure, x.f.Clock.Now(), min(longestGrace, x.slot.lease/6))
}

// renewed takes in the outcome of a renewal.
func (x *session) renewed(r renewal) {
	x.slot.learn(r)
	switch {
	case r.err == nil:
		x.prolong()
		if x.warned {
			x.f.Notef("the slot is renewed again\n")
		}
		x.warned = false
	case !x.warned && !x.slot.gone:
		x.warned = true
		left := x.slot.sure.Left(x.f.Clock.Now()).Round(time.Second)
		x.f.Notef("the slot could not be renewed; the command is ended in %s if that goes on: %s\n", left, text.Line(r.err.Error()))
	}
}

// hear takes in what the guard tells.
func (x *session) hear(e guard.Event, ok bool) {
	switch {
	case !ok:
		x.crashed = true
	case e.Started != 0:
		x.guard.Started(e.Started)
	case e.Failed != nil:
		x.failed = e.Failed
	case e.Ended != nil:
		x.exit = e.Ended
	case e.Gone:
		x.gone = true
	}
}

// judge ends the command when the slot is lost, and kills what a guard that was killed, or stands still, leaves.
func (x *session) judge() {
	if x.lost == nil && x.exit == nil {
		if x.lost = x.slot.lost(); x.lost != nil {
			_ = x.guard.End(lostGrace)
		}
	}
	if late := x.slot.sure.Left(x.f.Clock.Now()) <= 0; !x.gone && (x.crashed || late) {
		x.crashed = true
		x.gone = x.guard.Sweep()
	}
}

// outcome is what became of the command.
func (x *session) outcome() error {
	switch {
	case x.failed != nil:
		return &cli.ExitError{Code: x.failed.Code, Err: errors.New(x.failed.Message)}
	case x.lost != nil:
		return &cli.ExitError{Code: exitLost, Err: fmt.Errorf("%w\nthe command was ended, since its slot may be somebody else's", x.lost)}
	case x.exit != nil && x.exit.OutOfTime, x.exit == nil && x.slot.sure.Left(x.f.Clock.Now()) <= 0:
		return &cli.ExitError{Code: exitLost, Err: errors.New("the slot could not be renewed in time, so the command was ended before somebody else could get it\n" +
			"a longer --lease bridges longer outages of the API server")}
	case x.exit == nil:
		return errors.New("the guard of the command was killed, so the command was ended")
	case x.exit.Code != 0:
		return &cli.ExitError{Code: x.exit.Code}
	default:
		return nil
	}
}

// release gives the slot back, unless a further signal says not to wait for that.
func (x *session) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, releasePatience)
	defer cancel()
	released := make(chan error, 1)
	go func() { released <- giveBack(ctx, x.api, x.f.Clock, x.slot.plan) }()
	select {
	case err := <-released:
		if err != nil {
			x.f.Notef("reservation %s could not be released; it expires within %s: %s\n", x.slot.plan.Name, x.slot.lease+5*time.Second, text.Line(err.Error()))
		}
	case <-x.signals:
		x.f.Notef("reservation %s is not released; it expires within %s\n", x.slot.plan.Name, x.slot.lease+5*time.Second)
	}
}
