// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"testing"
	"time"
)

var one = Limits{Limit: 1}

// admits returns the names of what the queue would admit.
func admits(q *Queue, l Limits, now time.Time) []string {
	return names(Decide(q, l, Book{}, now, 100).Admit)
}

func expectAdmits(t *testing.T, q *Queue, l Limits, now time.Time, want ...string) {
	t.Helper()
	if got := admits(q, l, now); !slices.Equal(got, want) {
		t.Errorf("admits %v, want %v", got, want)
	}
}

func expectCounts(t *testing.T, q *Queue, want Counts) {
	t.Helper()
	if got := q.Counts(); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
}

func TestAnOlderVersionChangesNothing(t *testing.T) {
	q := queueOf(waitingRun("a", 5, holding))
	if q.Upsert(waitingRun("a", 4)) {
		t.Error("an older version counted")
	}
	expectAdmits(t, q, Limits{Limit: 9}, epoch)
	expectCounts(t, q, Counts{Running: 1})
}

func TestAFinishedRunDoesNotHoldItsSlotAgainWhenAnOlderVersionIsSeenLate(t *testing.T) {
	q := queueOf(waitingRun("a", 6, over))
	q.Upsert(waitingRun("a", 5, holding))
	expectCounts(t, q, Counts{})
}

func TestTheSameVersionMayBeToldAgainWithWhatOthersSayOfIt(t *testing.T) {
	q := queueOf(waitingRun("a", 5, unconfirmed))
	expectAdmits(t, q, one, epoch)
	if !q.Upsert(waitingRun("a", 5)) {
		t.Fatal("the same version did not count")
	}
	expectAdmits(t, q, one, epoch, "a")
}

func TestARunOnceConfirmedStaysSo(t *testing.T) {
	q := queueOf(waitingRun("a", 5), waitingRun("a", 5, unconfirmed), waitingRun("a", 5, version(6), unconfirmed))
	expectAdmits(t, q, one, epoch, "a")
}

func TestWhatIsDeletedDoesNotComeBack(t *testing.T) {
	q := queueOf(waitingRun("a", 5))
	q.Delete("uid-a")
	if q.Upsert(waitingRun("a", 6, holding)) {
		t.Error("the answer to a claim counted after the deletion")
	}
	expectAdmits(t, q, one, epoch)
	expectCounts(t, q, Counts{})
}

func TestADeletionSeenBeforeTheCreationCounts(t *testing.T) {
	q := NewQueue()
	q.Delete("uid-a")
	if q.Upsert(waitingRun("a", 5)) {
		t.Error("a creation counted after the deletion")
	}
	expectCounts(t, q, Counts{})
}

func TestADeletedRunningRunFreesItsSlotOnlyWhenNothingWorksForIt(t *testing.T) {
	q := queueOf(waitingRun("a", 5, holding), waitingRun("b", 6))
	q.Workload("uid-a", "uid-a", true)
	expectCounts(t, q, Counts{Queued: 1, Running: 1}) // counted once, whoever says so
	q.Delete("uid-a")
	expectAdmits(t, q, one, epoch)
	q.Workload("uid-a", "uid-a", false)
	expectAdmits(t, q, one, epoch, "b")
	expectCounts(t, q, Counts{Queued: 1})
}

func TestWorkThatIsSeenBeforeItsRecordHoldsOneSlot(t *testing.T) {
	q := NewQueue()
	q.Workload("uid-a", "uid-root", true)
	expectCounts(t, q, Counts{Running: 1})
	q.Upsert(waitingRun("a", 5, ofChain("root"), holding))
	expectCounts(t, q, Counts{Running: 1})
	q.Upsert(waitingRun("a", 6, ofChain("root"), over))
	expectCounts(t, q, Counts{Running: 1})
	q.Workload("uid-a", "uid-root", false)
	expectCounts(t, q, Counts{})
}

func TestWorkThatOutlivesItsRecordUsesWhatTheRunUsed(t *testing.T) {
	l := Limits{Limit: 9, Types: map[string]int{"crawl": 1, "story": 1}, Resources: map[string]int{"gpu": 1}}
	waiting := []Entry{waitingRun("b", 6, ofType("crawl")), waitingRun("c", 7, claiming("gpu", 1)), waitingRun("d", 8, ofType("story"))}
	for _, c := range []struct {
		name string
		tell func(*Queue)
	}{
		{"and is seen before the run is deleted", func(q *Queue) { q.Workload("uid-a", "uid-a", true); q.Delete("uid-a") }},
		{"and is seen after the run is deleted", func(q *Queue) { q.Delete("uid-a"); q.Workload("uid-a", "uid-a", true) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := queueOf(append(waiting, waitingRun("a", 5, holding, ofType("crawl"), claiming("gpu", 1)))...)
			expectAdmits(t, q, l, epoch, "d")
			c.tell(q)
			expectAdmits(t, q, l, epoch, "d")
			q.Workload("uid-a", "uid-a", false)
			expectAdmits(t, q, l, epoch, "b", "c", "d")
		})
	}
}

func TestWorkOfARunThatWasNeverSeenUsesASlotAndNothingElseUntilItIs(t *testing.T) {
	l := Limits{Limit: 2, Types: map[string]int{"crawl": 1}}
	q := queueOf(waitingRun("b", 6, ofType("crawl")), waitingRun("c", 7))
	q.Workload("uid-a", "uid-a", true)
	expectAdmits(t, q, l, epoch, "b")
	q.Upsert(waitingRun("a", 5, holding, ofType("crawl")))
	expectAdmits(t, q, l, epoch, "c")
}

func TestAClaimOnTheWayUsesItsTypeAndItsResources(t *testing.T) {
	l := Limits{Limit: 9, Types: map[string]int{"crawl": 1}, Resources: map[string]int{"gpu": 1}}
	q := queueOf(waitingRun("a", 5, ofType("crawl"), claiming("gpu", 1)), waitingRun("b", 6, ofType("crawl")), waitingRun("c", 7, claiming("gpu", 1)))
	expectAdmits(t, q, l, epoch, "a")
	q.Assume("uid-a", 5)
	expectAdmits(t, q, l, epoch)
	q.Unassume("uid-a")
	expectAdmits(t, q, l, epoch, "a")
}

func TestAClaimIsRefusedWhoseNeedHasCeasedToFit(t *testing.T) {
	q := queueOf(waitingRun("a", 5, ofType("crawl")))
	expectAdmits(t, q, Limits{Limit: 9}, epoch, "a")
	expectAdmits(t, q, Limits{Limit: 9, Types: map[string]int{"story": 1}}, epoch)
	if q.Assume("uid-a", 5) {
		t.Error("claimed")
	}
}

func TestLimitsChangeWhileRunsRun(t *testing.T) {
	q := queueOf(
		waitingRun("a", 1, holding, ofType("crawl"), claiming("gpu", 1)), waitingRun("b", 2, holding, ofType("crawl")),
		waitingRun("c", 3, ofType("crawl")), waitingRun("d", 4, claiming("gpu", 1)), waitingRun("e", 5),
	)
	limits := func(limit, crawl, gpu int) Limits {
		return Limits{Limit: limit, Types: map[string]int{"crawl": crawl}, Resources: map[string]int{"gpu": gpu}}
	}
	for _, c := range []struct {
		limits Limits
		want   []string
	}{
		{limits(5, 2, 1), []string{"e"}},
		{limits(5, 3, 1), []string{"c", "e"}},
		{limits(5, 3, 2), []string{"c", "d", "e"}},
		{limits(3, 3, 2), []string{"c"}},
		{limits(5, 0, 2), []string{"d", "e"}}, // those of it that run go on
		{limits(5, 1, 0), []string{"e"}},
		{limits(1, 3, 2), nil},
		{limits(0, 3, 2), nil},
		{limits(Unlimited, Unlimited, 2), []string{"c", "d", "e"}},
	} {
		expectAdmits(t, q, c.limits, epoch, c.want...)
	}
}

func TestWorkThatIsUnknownAndEndsChangesNothing(t *testing.T) {
	q := NewQueue()
	q.Workload("uid-a", "uid-a", false)
	expectCounts(t, q, Counts{})
	if len(q.items)+len(q.chains) != 0 {
		t.Errorf("%d items and %d chains are kept", len(q.items), len(q.chains))
	}
}

func TestAQueuedRunThatSomethingWorksForIsNotClaimed(t *testing.T) {
	q := queueOf(waitingRun("a", 5))
	q.Workload("uid-a", "uid-a", true)
	expectAdmits(t, q, Limits{Limit: 5}, epoch)
	q.Workload("uid-a", "uid-a", false)
	expectAdmits(t, q, Limits{Limit: 5}, epoch, "a")
}

func TestAChainIsFencedWhileAnyOfItHoldsASlot(t *testing.T) {
	q := queueOf(waitingRun("root", 5, holding), waitingRun("root-r1", 6, ofChain("root")))
	five := Limits{Limit: 5}
	expectAdmits(t, q, five, epoch)
	q.Workload("uid-root", "uid-root", true)
	q.Upsert(waitingRun("root", 7, over))
	expectAdmits(t, q, five, epoch)
	q.Workload("uid-root", "uid-root", false)
	expectAdmits(t, q, five, epoch, "root-r1")
}

func TestAClaimOnTheWayHoldsASlotAndFencesItsChain(t *testing.T) {
	q := queueOf(waitingRun("root", 5), waitingRun("other", 6, ofChain("root")), waitingRun("next", 7))
	if !q.Assume("uid-root", 5) {
		t.Fatal("refused")
	}
	expectAdmits(t, q, Limits{Limit: 5}, epoch, "next")
	expectAdmits(t, q, one, epoch)
	expectCounts(t, q, Counts{Queued: 2, Running: 1})
}

func TestAClaimEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		how    func(*Queue)
		admits []string
		counts Counts
	}{
		{
			"by the version in which the run is Running",
			func(q *Queue) { q.Upsert(waitingRun("a", 9, holding)) },
			nil, Counts{Queued: 1, Running: 1},
		},
		{
			"by a version that it can no longer land on",
			func(q *Queue) { q.Upsert(waitingRun("a", 1, version(9))) },
			[]string{"a"}, Counts{Queued: 2},
		},
		{
			"by the end of the run",
			func(q *Queue) { q.Delete("uid-a") },
			[]string{"b"}, Counts{Queued: 1},
		},
		{
			"by failing for good",
			func(q *Queue) { q.Unassume("uid-a") },
			[]string{"a"}, Counts{Queued: 2},
		},
		{
			"by a conflict, and the run keeps its place until its latest version is seen",
			func(q *Queue) { q.Conflict("uid-a") },
			nil, Counts{Queued: 2},
		},
		{
			"by a conflict, and the latest version is claimed",
			func(q *Queue) { q.Conflict("uid-a"); q.Upsert(waitingRun("a", 1, version(9))) },
			[]string{"a"}, Counts{Queued: 2},
		},
		{
			"not by the version that it was sent for",
			func(q *Queue) { q.Upsert(waitingRun("a", 1)) },
			nil, Counts{Queued: 1, Running: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := queueOf(waitingRun("a", 1), waitingRun("b", 2))
			if !q.Assume("uid-a", 1) {
				t.Fatal("refused")
			}
			c.how(q)
			expectAdmits(t, q, one, epoch, c.admits...)
			expectCounts(t, q, c.counts)
		})
	}
}

func TestARunWithAConflictKeepsOneSlotAndNoMore(t *testing.T) {
	q := queueOf(waitingRun("a", 1), waitingRun("b", 2), waitingRun("c", 3))
	q.Assume("uid-a", 1)
	q.Conflict("uid-a")
	expectAdmits(t, q, Limits{Limit: 2}, epoch, "b")
	if q.Assume("uid-a", 1) {
		t.Error("the version that has met a conflict may be claimed again")
	}
}

func TestOnlyWhatMayBeAdmittedCanBeClaimed(t *testing.T) {
	for _, c := range []struct {
		name  string
		entry Entry
		rv    uint64
		want  bool
	}{
		{"a waiting run", waitingRun("a", 5), 5, true},
		{"a version that is not the one known", waitingRun("a", 5), 4, false},
		{"a run that holds a slot", waitingRun("a", 5, holding), 5, false},
		{"a run in back-off", waitingRun("a", 5, notBefore(at(60))), 5, false},
		{"a run that its creator has not recorded", waitingRun("a", 5, unconfirmed), 5, false},
		{"a Pending reservation", pendingReservation("a", 5), 5, false},
		{"an Active reservation", pendingReservation("a", 5, active), 5, true},
		{"what is unknown", waitingRun("b", 5), 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := queueOf(c.entry)
			if got := q.Assume("uid-a", c.rv); got != c.want {
				t.Errorf("got %t", got)
			}
			if q.Assume("uid-a", c.rv) {
				t.Error("claimed twice")
			}
		})
	}
}

func TestCountsTellRunsFromReservations(t *testing.T) {
	q := queueOf(
		waitingRun("ready", 1), waitingRun("later", 2, notBefore(at(60))), waitingRun("unconfirmed", 3, unconfirmed),
		waitingRun("running", 4, holding), waitingRun("fenced", 5, ofChain("running")), waitingRun("done", 6, over),
		pendingReservation("pending", 7), pendingReservation("active", 8, active), pendingReservation("granted", 9, holding),
	)
	q.Workload("uid-gone", "uid-gone", true)
	expectCounts(t, q, Counts{Queued: 4, Running: 2, Reserved: 1})
	q.Assume("uid-active", 8)
	expectCounts(t, q, Counts{Queued: 4, Running: 2, Reserved: 2})
}

func TestBackOffEndsInTime(t *testing.T) {
	q := queueOf(waitingRun("late", 1, notBefore(at(20))), waitingRun("soon", 2, notBefore(at(10))))
	for _, c := range []struct {
		now  int
		want []string
		wake time.Time
	}{
		{9, nil, at(10)},
		{10, []string{"soon"}, at(20)},
		{20, []string{"late", "soon"}, time.Time{}},
		{15, []string{"soon"}, at(20)}, // the clock was set back
		{5, nil, at(10)},
	} {
		expectAdmits(t, q, Limits{Limit: 9}, at(c.now), c.want...)
		if got := q.NextWake(at(c.now)); !got.Equal(c.wake) {
			t.Errorf("at %d s: wakes at %s, want %s", c.now, got, c.wake)
		}
	}
}

func TestAnEditMovesARunToItsNewPlace(t *testing.T) {
	q := queueOf(waitingRun("a", 1), waitingRun("b", 2), waitingRun("c", 3))
	q.Upsert(waitingRun("c", 3, version(9), priority(5)))
	expectAdmits(t, q, Limits{Limit: 9}, epoch, "c", "a", "b")
	q.Upsert(waitingRun("a", 1, version(10), notBefore(at(60))))
	expectAdmits(t, q, Limits{Limit: 9}, epoch, "c", "b")
}

func TestNothingIsKeptOfWhatIsGoneButItsUID(t *testing.T) {
	q := queueOf(waitingRun("a", 1), waitingRun("a-r1", 2, ofChain("a"), notBefore(at(5))), pendingReservation("d", 3, active))
	q.Workload("uid-a", "uid-a", true)
	for _, uid := range []string{"a", "a-r1", "d"} {
		q.Delete(waitingRun(uid, 0).UID)
	}
	q.Workload("uid-a", "uid-a", false)
	expectNothingKept(t, q)
}

// expectNothingKept looks for leftovers in every index.
func expectNothingKept(t interface {
	Helper()
	Errorf(string, ...any)
}, q *Queue) {
	t.Helper()
	n := len(q.items) + len(q.chains) + len(q.needs) + len(q.holders) + len(q.use.types) + len(q.use.resources) + q.parked.tree.Len()
	for _, l := range []*line{q.ready, q.active, q.pending} {
		n += l.size + len(l.lanes) + l.heads.Len()
	}
	if n += q.waitActive + q.waitTurn; n != 0 {
		t.Errorf("%d things are kept", n)
	}
}
