// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"testing"
)

var (
	crawlOnly = Limits{Limit: 9, Types: map[string]int{"crawl": 1}}
	anyType   = Limits{Limit: 9}
)

func expectMisfits(t *testing.T, q *Queue, want ...string) {
	t.Helper()
	if got := names(q.Misfits()); !slices.Equal(got, want) {
		t.Errorf("misfits %v, want %v", got, want)
	}
}

func TestMisfitsAreToldOnceAndAgainWhenTheyFit(t *testing.T) {
	q := queueOf(
		waitingRun("fits", 1, ofType("crawl")), waitingRun("runs", 2, ofType("odd"), holding), waitingRun("done", 3, ofType("odd"), over),
		waitingRun("b", 5, ofType("odd")), waitingRun("a", 4, ofType("odd"), notBefore(at(60))), pendingReservation("d", 6, claiming("gpu", 1)),
	)
	expectMisfits(t, q) // nobody has said what the limits are
	expectAdmits(t, q, crawlOnly, epoch, "fits")
	expectMisfits(t, q, "d", "a", "b")
	expectMisfits(t, q)
	expectAdmits(t, q, crawlOnly, epoch, "fits")
	expectMisfits(t, q)
	expectAdmits(t, q, anyType, epoch, "fits", "b")
	expectMisfits(t, q, "a", "b")
	expectMisfits(t, q)
}

func TestAMisfitThatComesLaterIsTold(t *testing.T) {
	q := NewQueue()
	expectAdmits(t, q, crawlOnly, epoch)
	q.Upsert(waitingRun("odd", 1, ofType("odd")))
	q.Upsert(waitingRun("fits", 2, ofType("crawl")))
	expectMisfits(t, q, "odd")
}

func TestWhatFitsAgainBeforeItWasToldIsNotTold(t *testing.T) {
	q := queueOf(waitingRun("a", 1, ofType("odd")))
	expectAdmits(t, q, crawlOnly, epoch)
	expectAdmits(t, q, anyType, epoch, "a")
	expectMisfits(t, q)
}

func TestAMisfitThatIsGoneIsNotTold(t *testing.T) {
	q := queueOf(waitingRun("a", 1, ofType("odd")))
	expectAdmits(t, q, crawlOnly, epoch)
	q.Delete("uid-a")
	expectMisfits(t, q)
	expectNothingKept(t, q)
}

func TestLimitsThatTheirOwnerChangesInPlaceAreSeen(t *testing.T) {
	types := map[string]int{"crawl": 1}
	q := queueOf(waitingRun("a", 1, ofType("odd")))
	expectAdmits(t, q, Limits{Limit: 9, Types: types}, epoch)
	types["odd"] = 1
	expectAdmits(t, q, Limits{Limit: 9, Types: types}, epoch, "a")
}

func TestAnotherReasonNotToFitIsNews(t *testing.T) {
	q := NewQueue()
	q.Upsert(waitingRun("a", 1, func(e *Entry) { e.Claims = []Claim{{"gpu", 2}} }))
	decideUnder := func(l Limits) { Decide(q, l, Book{}, epoch, 1) }
	decideUnder(Limits{Limit: 1})
	expectMisfits(t, q, "a")
	decideUnder(Limits{Limit: 1, Resources: map[string]int{"gpu": 1}})
	expectMisfits(t, q, "a")
	decideUnder(Limits{Limit: 1, Resources: map[string]int{"gpu": 1, "cpu": 1}})
	expectMisfits(t, q)
	decideUnder(Limits{Limit: 1, Resources: map[string]int{"gpu": 2}})
	expectMisfits(t, q, "a")
}
