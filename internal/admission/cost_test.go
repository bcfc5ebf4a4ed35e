// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
	"time"
)

// longQueue returns a queue of n runs that are ready and n/10 of each kind that must cost a decision nothing.
func longQueue(n int) *Queue {
	q := NewQueue()
	q.Upsert(waitingRun("busy", 1, holding))
	for i := range n {
		q.Upsert(waitingRun(fmt.Sprintf("n%d", i), int64(i+2), priority(int32(i*7919%5))))
	}
	for i := range n / 10 {
		q.Upsert(waitingRun(fmt.Sprintf("later%d", i), int64(i+2), priority(9), notBefore(at(3600+i))))
		q.Upsert(waitingRun(fmt.Sprintf("fenced%d", i), int64(i+2), priority(9), ofChain("busy")))
		q.Upsert(waitingRun(fmt.Sprintf("unrecorded%d", i), int64(i+2), priority(9), unconfirmed))
	}
	return q
}

// runToEnd admits the next run and ends it.
func runToEnd(tb testing.TB, q *Queue, l Limits, i int) Entry {
	d := Decide(q, l, Book{}, epoch, 1)
	if len(d.Admit) != 1 || !assume(q, d) {
		tb.Fatalf("admitted %d", len(d.Admit))
	}
	e := d.Admit[0]
	e.ResourceVersion = uint64(1<<40 + 2*i)
	holding(&e)
	q.Upsert(e)
	e.ResourceVersion++
	over(&e)
	q.Upsert(e)
	return e
}

// admitOne is one run from its admission to its end, with a new one submitted in its place.
func admitOne(tb testing.TB, q *Queue, l Limits, i int) {
	runToEnd(tb, q, l, i)
	q.Upsert(waitingRun(fmt.Sprintf("new%d", i), int64(1<<40+i), priority(int32(i%5))))
}

// opsPerAdmission is the average number of comparisons and looks that one admission costs.
func opsPerAdmission(tb testing.TB, q *Queue, l Limits, admit func(i int)) float64 {
	const admissions = 500
	Decide(q, l, Book{}, epoch, 1) // the limits are told
	before := q.Ops()
	for i := range admissions {
		admit(i)
	}
	return float64(q.Ops()-before) / admissions
}

func TestAnAdmissionFromAHundredTimesAsManyRunsCostsAtMostTwiceAsMuch(t *testing.T) {
	two := Limits{Limit: 2}
	cost := func(queued int) float64 {
		q := longQueue(queued)
		return opsPerAdmission(t, q, two, func(i int) { admitOne(t, q, two, i) })
	}
	short, long := cost(1_000), cost(100_000)
	t.Logf("operations of one admission: %.1f with 1,000 queued runs, %.1f with 100,000", short, long)
	if short < 1 || long > 2*short {
		t.Errorf("%.1f operations with 1,000 runs, %.1f with 100,000", short, long)
	}
}

// mixedLimits and mixedNeed are a queue with everything: full and free types, resources that are short and that are not, and
// runs that can never be admitted.
var mixedLimits = Limits{
	Limit:     50,
	Types:     map[string]int{"full": 1, "free": 1, "other": Unlimited, "off": 0},
	Resources: map[string]int{"short": 1, "enough": 100_000},
}

func mixedNeed(i int) func(*Entry) {
	return func(e *Entry) {
		switch i % 8 {
		case 0:
			ofType("full")(e)
		case 1:
			claiming("short", 1)(e)
		case 2:
			e.Claims = []Claim{{"enough", 1 + i%50_000}, {"short", 1}}
		case 3:
			ofType(fmt.Sprintf("odd%d", i))(e)
		case 4:
			claiming("enough", 100_001+i)(e)
		case 5:
			ofType("off")(e)
		default:
			ofType("free")(e)
		}
	}
}

func mixedQueue(n int) *Queue {
	q := queueOf(waitingRun("a", 1, holding, ofType("full")), waitingRun("b", 1, holding, claiming("short", 1)))
	for i := range n {
		q.Upsert(waitingRun(fmt.Sprintf("n%d", i), int64(i+2), mixedNeed(i)))
	}
	return q
}

func TestAnAdmissionWithTypesAndResourcesFromAHundredTimesAsManyRunsCostsAtMostTwiceAsMuch(t *testing.T) {
	cost := func(queued int) float64 {
		q := mixedQueue(queued)
		return opsPerAdmission(t, q, mixedLimits, func(i int) {
			e := runToEnd(t, q, mixedLimits, i)
			if e.Type != "free" {
				t.Fatalf("admitted %+v", e)
			}
			q.Upsert(waitingRun(fmt.Sprintf("new%d", i), int64(1<<40+i), ofType("free")))
		})
	}
	short, long := cost(1_000), cost(100_000)
	t.Logf("operations of one admission with types and resources: %.1f with 1,000 queued runs, %.1f with 100,000", short, long)
	if short < 1 || long > 2*short {
		t.Errorf("%.1f operations with 1,000 runs, %.1f with 100,000", short, long)
	}
}

func TestThoseInFrontThatCannotBeAdmittedAreNotWalkedThrough(t *testing.T) {
	const queued = 100_000
	for _, c := range []struct {
		name   string
		limits Limits
		need   func(i int) func(*Entry)
	}{
		{
			"of a full type", Limits{Limit: Unlimited, Types: map[string]int{"full": 1, "free": 1}},
			func(int) func(*Entry) { return ofType("full") },
		},
		{
			"of as many unlisted types", Limits{Limit: Unlimited, Types: map[string]int{"full": 1, "free": 1}},
			func(i int) func(*Entry) { return ofType(fmt.Sprintf("odd%d", i)) },
		},
		{
			"of a type with the limit 0", Limits{Limit: Unlimited, Types: map[string]int{"off": 0, "free": 1}},
			func(int) func(*Entry) { return ofType("off") },
		},
		{
			"with as many claims on a resource that is short", Limits{Limit: Unlimited, Resources: map[string]int{"gpu": 2 * queued}},
			func(i int) func(*Entry) { return claiming("gpu", queued+1+i) },
		},
		{
			"of as many types, where none is listed, with a claim on a resource that is short", Limits{Limit: Unlimited, Resources: map[string]int{"gpu": queued}},
			func(i int) func(*Entry) {
				return func(e *Entry) { ofType(fmt.Sprintf("type%d", i))(e); claiming("gpu", 1)(e) }
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := queueOf(waitingRun("busy", 1, holding, ofType("full"), claiming("gpu", queued)))
			for i := range queued {
				q.Upsert(waitingRun(fmt.Sprintf("n%d", i), int64(i+2), c.need(i)))
			}
			q.Upsert(waitingRun("free", 1<<40, ofType("free")))
			Decide(q, c.limits, Book{}, epoch, 100) // the limits are told
			before := q.Ops()
			d := Decide(q, c.limits, Book{}, epoch, 100)
			if len(d.Admit) != 1 || d.Admit[0].Name != "free" {
				t.Fatalf("admits %v", names(d.Admit))
			}
			if got := q.Ops() - before; got > 10 {
				t.Errorf("%d operations", got)
			}
		})
	}
}

func TestOnlyAsManyLanesAreOpenedAsADecisionGetsTo(t *testing.T) {
	l := Limits{Limit: 3, Types: map[string]int{}}
	q := NewQueue()
	for i := range 10_000 {
		kind := fmt.Sprintf("type%d", i%1000)
		l.Types[kind] = 1
		q.Upsert(waitingRun(fmt.Sprintf("n%d", i), int64(i+2), ofType(kind)))
	}
	Decide(q, l, Book{}, epoch, 100) // the limits are told
	before := q.Ops()
	if d := Decide(q, l, Book{}, epoch, 100); len(d.Admit) != 3 {
		t.Fatalf("admits %v", names(d.Admit))
	}
	if got := q.Ops() - before; got > 50 {
		t.Errorf("%d operations", got)
	}
}

func TestADecisionLooksAtLittleMoreThanItAdmits(t *testing.T) {
	q := longQueue(10_000)
	for _, c := range []struct {
		name   string
		limits Limits
		batch  int
		most   uint64
	}{
		{"one slot free", Limits{Limit: 2}, 100, 2},
		{"no slot free", Limits{Limit: 1}, 100, 1},
		{"suspended", Limits{Limit: 9, Suspend: true}, 100, 1},
		{"throttled", Limits{Limit: 9, Startup: Startup{Since: epoch, Window: time.Minute, Offset: time.Second}}, 100, 1},
		{"a batch of 100", Limits{Limit: Unlimited}, 100, 150},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := q.Ops()
			Decide(q, c.limits, Book{}, epoch, c.batch)
			if got := q.Ops() - before; got == 0 || got > c.most {
				t.Errorf("%d operations, at most %d expected", got, c.most)
			}
		})
	}
}

func BenchmarkAdmission(b *testing.B) {
	for _, queued := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("queued=%d", queued), func(b *testing.B) {
			q := longQueue(queued)
			before := q.Ops()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				admitOne(b, q, Limits{Limit: 2}, i)
			}
			b.ReportMetric(float64(q.Ops()-before)/float64(b.N), "queue-ops/op")
		})
	}
}

func BenchmarkAdmissionWithTypesAndResources(b *testing.B) {
	for _, queued := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("queued=%d", queued), func(b *testing.B) {
			q := mixedQueue(queued)
			Decide(q, mixedLimits, Book{}, epoch, 1)
			before := q.Ops()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				runToEnd(b, q, mixedLimits, i)
				q.Upsert(waitingRun(fmt.Sprintf("new%d", i), int64(1<<40+i), ofType("free")))
			}
			b.ReportMetric(float64(q.Ops()-before)/float64(b.N), "queue-ops/op")
		})
	}
}

// BenchmarkLimits is what it costs that a limit is changed, and changes where every run of a long queue belongs.
func BenchmarkLimits(b *testing.B) {
	q := mixedQueue(100_000)
	with, without := mixedLimits, Limits{Limit: 50}
	b.ReportAllocs()
	for b.Loop() {
		Decide(q, with, Book{}, epoch, 1)
		Decide(q, without, Book{}, epoch, 1)
	}
}

func BenchmarkBatch(b *testing.B) {
	const batch = 256
	q := longQueue(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if d := Decide(q, Limits{Limit: Unlimited}, Book{}, epoch, batch); len(d.Admit) != batch {
			b.Fatal(len(d.Admit))
		}
	}
}

func BenchmarkRebuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		longQueue(100_000)
	}
}
