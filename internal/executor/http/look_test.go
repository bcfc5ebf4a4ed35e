// SPDX-License-Identifier: Apache-2.0

package httpwork

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/executor"
)

// orphan is a run that another manager has claimed, with a timeout of a minute: its call counts as stopped after that, a
// lease of 15 s and 5 s for the clocks.
func orphan() *batchv1alpha1.JobRun {
	r := claimed("a", batchv1alpha1.HTTPWork{URL: "http://127.0.0.1:1"})
	r.Spec.TimeoutSeconds = ptr.To[int64](60)
	r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "other", Epoch: "1700000000.6"}
	return r
}

func TestWhenACallOfAnotherManagerCountsAsStopped(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: start.Add(d)} }
	for name, c := range map[string]struct {
		change  func(*batchv1alpha1.JobRun)
		gone    bool
		elapsed time.Duration
		recheck time.Duration
		stopped bool
	}{
		"at once when its process is known to have ended": {nil, true, 0, 0, true},
		"not while its time runs":                         {nil, false, 0, 10 * time.Second, false},
		"not just before its time and a lease are over":   {nil, false, 79 * time.Second, time.Second, false},
		"when its time and a lease are over":              {nil, false, 80 * time.Second, 0, true},
		"by the deadline on record when that is later": {
			func(r *batchv1alpha1.JobRun) { r.Status.Deadline = at(2 * time.Minute) }, false, 80 * time.Second, 10 * time.Second, false,
		},
		"by the start when the deadline on record is earlier": {
			func(r *batchv1alpha1.JobRun) { r.Status.Deadline = at(time.Second) }, false, 79 * time.Second, time.Second, false,
		},
		"by the default timeout when the run has none": {
			func(r *batchv1alpha1.JobRun) { r.Spec.TimeoutSeconds = nil }, false, 10 * time.Minute, 10 * time.Second, false,
		},
		"by its creation when no start is on record": {
			func(r *batchv1alpha1.JobRun) { r.Status.StartedAt, r.Status.Incarnation = nil, nil }, false, 20 * time.Second, 0, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, loopback)
			r := orphan()
			if c.change != nil {
				c.change(r)
			}
			b.gone["other"] = c.gone
			b.clock.Step(c.elapsed)
			for method, evidence := range map[string]executor.Evidence{"Look": b.look(r), "Seal": b.seal(r), "Stop": b.stop(r)} {
				if evidence.Life != executor.Unknown || evidence.Stopped != c.stopped || evidence.RecheckAfter != c.recheck || evidence.Detail == "" {
					t.Errorf("%s: %+v", method, evidence)
				}
			}
			if len(b.calls) != 0 {
				t.Error("a call of another process is kept in memory")
			}
		})
	}
}

func TestWhatCannotBeSeenIsToldWithItsEnd(t *testing.T) {
	b := newBench(t, loopback)
	want := "the manager process other cannot be seen to have ended; its call counts as stopped at 2026-11-03T12:01:20Z"
	if got := b.look(orphan()).Detail; got != want {
		t.Errorf("got %q", got)
	}
}

func TestAnAPIServerThatDoesNotAnswerLeavesTheQuestionOpen(t *testing.T) {
	b := newBench(t, loopback)
	b.seeing = errors.New("connection refused")
	if evidence, err := b.Look(t.Context(), orphan()); !errors.Is(err, b.seeing) || evidence.Stopped {
		t.Errorf("%+v, %v", evidence, err)
	}
	b.clock.Step(80 * time.Second)
	if evidence := b.look(orphan()); !evidence.Stopped {
		t.Errorf("%+v", evidence)
	}
}

func TestAnExpectedRunThatAnotherManagerWonIsThatManagersCall(t *testing.T) {
	b := newBench(t, loopback)
	r := orphan()
	b.Expect(r.UID)
	if evidence := b.look(r); evidence.Life != executor.Unknown || !strings.Contains(evidence.Detail, "other") {
		t.Errorf("%+v", evidence)
	}
}

func TestACallOfThisProcessIsItsOwnWhateverTheRunSaysSince(t *testing.T) {
	s, reached := silent(t)
	b := newBench(t, loopback)
	r := claimed("a", batchv1alpha1.HTTPWork{URL: s.URL})
	b.start(r)
	await(t, "the call", reached)
	r.Status.Incarnation = &batchv1alpha1.Incarnation{ID: "other", Epoch: "1700000000.8"}
	if evidence := b.look(r); evidence.Life != executor.Alive {
		t.Errorf("%+v", evidence)
	}
	b.stop(r)
	b.awaitEnd(r)
}
