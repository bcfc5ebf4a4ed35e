// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

func TestACallIsKnownFromStartToForget(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})

	if e := b.look(r); e.Life != executor.NeverStarted || !e.Stopped {
		t.Errorf("before anything: %+v", e)
	}
	b.Expect(r.UID)
	if e := b.look(r); e.Life != executor.Alive || e.Stopped {
		t.Errorf("expected: %+v", e)
	}
	b.start(r)
	if e := b.look(r); e.Life != executor.Alive || e.Stopped || b.Calls() != 1 {
		t.Errorf("in flight: %+v, %d calls", e, b.Calls())
	}
	close(release)
	b.awaitEnd(r)
	want(t, b.result(r), batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK")
	if b.Calls() != 0 {
		t.Errorf("%d calls in flight", b.Calls())
	}
	b.Forget(r.UID)
	if e := b.look(r); e.Life != executor.Unknown || !e.Stopped || e.Outcome != nil {
		t.Errorf("forgotten: %+v", e)
	}
}

func TestOneRunIsCalledOnceHoweverOftenItIsStarted(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.Expect(r.UID)
	b.start(r)
	b.start(r)
	b.awaitEnd(r)
	b.Expect(r.UID)
	b.start(r)
	b.Forget(r.UID)
	b.Expect(r.UID)
	b.start(r)
	if n := b.Calls(); n != 0 || calls.Load() != 1 {
		t.Errorf("%d calls in flight, %d arrived", n, calls.Load())
	}
}

func TestAnExpectationThatIsTakenBackLeavesNothing(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.Expect(r.UID)
	b.Forget(r.UID)
	if e := b.look(r); e.Life != executor.NeverStarted || !e.Stopped {
		t.Errorf("%+v", e)
	}
	b.Expect(r.UID)
	want(t, b.outcome(r), batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK")
}

func TestOnlyARunThatThisProcessClaimedIsStarted(t *testing.T) {
	b := newBench(t, loopback)
	work := batchv1alpha1.HTTPWork{URL: "http://127.0.0.1:1"}
	queued, foreign, job := claimed("queued", work), claimed("foreign", work), claimed("job", work)
	queued.Status.Phase = batchv1alpha1.JobRunQueued
	foreign.Status.Incarnation.Epoch = "1700000000.8"
	job.Spec.Work = &batchv1alpha1.Work{Job: &batchv1alpha1.JobWork{}}
	for _, r := range []*batchv1alpha1.JobRun{queued, foreign, job} {
		if err := b.Start(t.Context(), r); err == nil {
			t.Errorf("%s was started", r.Name)
		}
	}
}

func TestStartCopiesTheRun(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	b.leader.set(true)
	b.leader.asked = make(chan struct{}, 16)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: url, Headers: inClear("X-Team", "blue")})
	b.start(r)
	await(t, "asking for the lease", b.leader.asked)
	r.Spec.Work.HTTP.Headers[0].Name, r.Spec.Work.HTTP.URL = "X-Changed", "http://127.0.0.1:1"
	b.leader.set(false)
	b.tick(1)
	b.awaitEnd(r)
	if got := await(t, "the call", calls); got.header.Get("X-Team") != "blue" {
		t.Errorf("%v", got.header)
	}
}

func TestHundredsOfCallsAreMadeAtOnce(t *testing.T) {
	const many = 500
	all := make(chan struct{})
	var arrived atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		if arrived.Add(1) == many {
			close(all)
		}
		<-all
	})
	b := newBench(t, loopback)
	runs := map[string]*batchv1alpha1.JobRun{}
	for i := range many {
		r := claimed("run-"+strconv.Itoa(i), batchv1alpha1.HTTPWork{URL: s.URL})
		runs[r.Name] = r
		b.start(r)
	}
	for len(runs) > 0 {
		ended := await(t, "an end", b.Events()).Object
		r, ok := runs[ended.GetName()]
		if !ok {
			t.Fatalf("unexpected event of %s", client.ObjectKeyFromObject(ended))
		}
		if o := b.result(r); o.Phase != batchv1alpha1.JobRunCompleted {
			t.Errorf("%s: %+v", r.Name, o)
		}
		delete(runs, r.Name)
	}
}

func TestAStoppedCallCountsAsStoppedWhenItHasEnded(t *testing.T) {
	s, reached := silent(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	request := await(t, "the call", reached)
	if e := b.stop(r); e.Life == executor.Alive && e.Stopped {
		t.Errorf("alive and stopped: %+v", e)
	}
	b.awaitEnd(r)
	want(t, b.result(r), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCancelled, "the call was aborted: its run was stopped")
	await(t, "the end of the request at the server", request.Context().Done())
}

func TestACallBeingAbortedIsAliveUntilItsGoroutineHasReturned(t *testing.T) {
	url, calls := recorder(t)
	b := newBench(t, loopback)
	b.leader.asked, b.leader.hold = make(chan struct{}, 1), make(chan struct{})
	r := claimed("a", batchv1alpha1.HTTPWork{URL: url})
	b.start(r)
	await(t, "asking for the lease", b.leader.asked)
	if e := b.stop(r); e.Life != executor.Alive || e.Stopped || e.Detail != "the call is being aborted" {
		t.Errorf("%+v", e)
	}
	close(b.leader.hold)
	b.awaitEnd(r)
	if e := b.stop(r); e.Life != executor.Ended || !e.Stopped || len(calls) != 0 {
		t.Errorf("%+v after %d calls", e, len(calls))
	}
}

func TestStoppingWhatHasEndedTellsItsOutcome(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.outcome(r)
	if e := b.stop(r); e.Life != executor.Ended || !e.Stopped || e.Outcome.Phase != batchv1alpha1.JobRunCompleted {
		t.Errorf("%+v", e)
	}
}

func TestACallThatWasNotBegunNeverIsOnceSealedOrStopped(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	for name, end := range map[string]func(*bench, *batchv1alpha1.JobRun) executor.Evidence{
		"sealed":  (*bench).seal,
		"stopped": (*bench).stop,
	} {
		for _, expect := range []bool{true, false} {
			b := newBench(t, loopback)
			r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
			if expect {
				b.Expect(r.UID)
			}
			if e := end(b, r); e.Life != executor.NeverStarted || !e.Stopped {
				t.Errorf("%s, expected %v: %+v", name, expect, e)
			}
			b.start(r)
			b.Forget(r.UID)
			b.start(r)
			if n := b.Calls(); n != 0 {
				t.Errorf("%s, expected %v: %d calls in flight", name, expect, n)
			}
		}
	}
	if calls.Load() != 0 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestSealLeavesACallInFlightAlone(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	if e := b.seal(r); e.Life != executor.Alive || e.Stopped {
		t.Errorf("%+v", e)
	}
	close(release)
	b.awaitEnd(r)
	want(t, b.result(r), batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK")
}

func TestACallForgottenInFlightIsForgottenWhenItEnds(t *testing.T) {
	s, reached := silent(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	await(t, "the call", reached)
	b.Forget(r.UID)
	if e := b.look(r); e.Life != executor.Alive || e.Stopped {
		t.Errorf("in flight: %+v", e)
	}
	b.stop(r)
	b.awaitEnd(r)
	if e := b.look(r); e.Life != executor.Unknown || !e.Stopped {
		t.Errorf("ended: %+v", e)
	}
}

func TestAnOutcomeIsUnrecordedFromTheEndOfTheCallUntilItIsForgotten(t *testing.T) {
	s, reached := silent(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	await(t, "the call", reached)
	inFlight := b.Unrecorded()
	b.stop(r)
	b.awaitEnd(r)
	atEnd := b.Unrecorded()
	b.Forget(r.UID)
	if after := b.Unrecorded(); inFlight != 0 || atEnd != 1 || after != 0 {
		t.Errorf("%d in flight, %d at the end, %d after", inFlight, atEnd, after)
	}
}

func TestNoEndIsLostWhenNobodyReadsForLong(t *testing.T) {
	const many = eventBuffer + 10
	b := newBench(t, loopback)
	for i := range many {
		b.start(claimed("run-"+strconv.Itoa(i), batchv1alpha1.HTTPWork{URL: "not a URL"}))
	}
	for b.Calls() > 0 {
		await(t, "an end", b.callsEnd())
	}
	told := map[string]bool{}
	for range many {
		told[await(t, "an end", b.Events()).Object.GetName()] = true
	}
	if len(told) != many {
		t.Errorf("%d of %d ends were told", len(told), many)
	}
}

func TestDrainWaitsForCallsInFlightAndMakesNoNewOnes(t *testing.T) {
	release, reached := make(chan struct{}), make(chan struct{}, 1)
	s := serve(t, func(http.ResponseWriter, *http.Request) { reached <- struct{}{}; <-release })
	b := newBench(t, loopback)
	early, late := claimed("early", batchv1alpha1.HTTPWork{URL: s.URL}), claimed("late", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(early)
	await(t, "the call", reached)
	drained := b.drain(t.Context())
	b.untilDraining()
	want(t, b.outcome(late), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonManagerShutdown, "no call was made: the manager was stopping")
	select {
	case <-drained:
		t.Error("drained with a call in flight")
	default:
	}
	close(release)
	await(t, "the end of draining", drained)
	b.awaitEnd(early)
	want(t, b.result(early), batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "server answered 200 OK")
}

func TestDrainAbortsWhatIsLeftWhenItsTimeIsOver(t *testing.T) {
	s, reached := silent(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	await(t, "the call", reached)
	ctx, over := context.WithCancel(t.Context())
	drained := b.drain(ctx)
	over()
	await(t, "the end of draining", drained)
	want(t, b.result(r), batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonManagerShutdown, "the call was aborted: the manager was stopping")
	b.awaitEnd(r)
}

// tick steps the clock by a second each time that n timers wait for it beside the deadline.
func (b *bench) tick(n int) {
	b.t.Helper()
	b.eventually("a wait on the clock", func() bool { return b.clock.Waiters() > n })
	b.clock.Step(time.Second)
}

func (b *bench) drain(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Drain(ctx)
	}()
	return done
}

func (b *bench) untilDraining() {
	b.t.Helper()
	b.eventually("draining", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.draining
	})
}

// callsEnd returns the end of any call in flight; it is closed if there is none.
func (b *bench) callsEnd() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.inFlight() {
		return c.done
	}
	none := make(chan struct{})
	close(none)
	return none
}

func (b *bench) eventually(what string, holds func() bool) {
	b.t.Helper()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			b.t.Fatalf("%s does not happen", what)
		case <-time.After(time.Millisecond):
		}
	}
}
