// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
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

// admitOne is one run from its admission to its end, with a new one submitted in its place.
func admitOne(tb testing.TB, q *Queue, l Limits, i int) {
	d := Decide(q, l, epoch, 1)
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
	q.Upsert(waitingRun(fmt.Sprintf("new%d", i), int64(1<<40+i), priority(int32(i%5))))
}

// opsPerAdmission is the average number of comparisons and looks that one admission costs.
func opsPerAdmission(tb testing.TB, queued int) float64 {
	const admissions = 500
	q := longQueue(queued)
	before := q.Ops()
	for i := range admissions {
		admitOne(tb, q, Limits{Limit: 2}, i)
	}
	return float64(q.Ops()-before) / admissions
}

func TestAnAdmissionFromAHundredTimesAsManyRunsCostsAtMostTwiceAsMuch(t *testing.T) {
	short, long := opsPerAdmission(t, 1_000), opsPerAdmission(t, 100_000)
	t.Logf("operations of one admission: %.1f with 1,000 queued runs, %.1f with 100,000", short, long)
	if short < 1 || long > 2*short {
		t.Errorf("%.1f operations with 1,000 runs, %.1f with 100,000", short, long)
	}
}

func TestADecisionLooksAtNoMoreThanItAdmits(t *testing.T) {
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
		{"a batch of 100", Limits{Limit: Unlimited}, 100, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := q.Ops()
			Decide(q, c.limits, epoch, c.batch)
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

func BenchmarkBatch(b *testing.B) {
	const batch = 256
	q := longQueue(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if d := Decide(q, Limits{Limit: Unlimited}, epoch, batch); len(d.Admit) != batch {
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
