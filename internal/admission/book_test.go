// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTheNextBook(t *testing.T) {
	throttled := Limits{MaxConsecutive: 3, Startup: Startup{Since: epoch, Window: time.Minute}}
	recent := []Admitted{{At: at(-40), Count: 1}, {At: at(-20), Count: 2}}
	for _, c := range []struct {
		name         string
		book         Book
		limits       Limits
		now          time.Time
		runs, grants int
		runsWait     bool
		want         Book
	}{
		{name: "grants while runs wait are counted", book: Book{DirectInRow: 1}, limits: throttled, now: at(99), grants: 1, runsWait: true, want: Book{DirectInRow: 2}},
		{name: "they are counted no further than they may go on", book: Book{DirectInRow: 3}, limits: throttled, now: at(99), grants: 5, runsWait: true, want: Book{DirectInRow: 3}},
		{name: "grants while no run waits are not", book: Book{DirectInRow: 2}, limits: throttled, now: at(99), grants: 1},
		{name: "a run ends the row, and the grants after it begin one", book: Book{DirectInRow: 3}, limits: throttled, now: at(99), runs: 1, grants: 1, runsWait: true, want: Book{DirectInRow: 1}},
		{name: "nothing is counted where any number may follow", limits: Limits{}, now: at(99), grants: 4, runsWait: true},
		{
			name: "during the window admissions are dated, and forgotten a window later", book: Book{Recent: recent}, limits: throttled, now: at(20), runs: 3,
			want: Book{Recent: []Admitted{{At: at(-20), Count: 2}, {At: at(20), Count: 3}}},
		},
		{
			name: "they are dated at the next second, as the ledger stores it", limits: throttled, now: at(20).Add(time.Millisecond), runs: 3,
			want: Book{Recent: []Admitted{{At: at(21), Count: 3}}},
		},
		{
			name: "they stay for their whole window", book: Book{Recent: recent}, limits: throttled, now: at(19).Add(999 * time.Millisecond),
			want: Book{Recent: recent},
		},
		{
			name: "a date in the future counts as now", book: Book{Recent: []Admitted{{At: at(900), Count: 2}}}, limits: throttled, now: at(20), runs: 1,
			want: Book{Recent: []Admitted{{At: at(20), Count: 3}}},
		},
		{name: "after the window nothing is remembered", book: Book{Recent: recent}, limits: throttled, now: at(60), runs: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.book.Recent)
			got := c.book.next(&c.limits, c.now, c.runs, c.grants, c.runsWait)
			if got.DirectInRow != c.want.DirectInRow || !slices.Equal(got.Recent, c.want.Recent) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if !slices.Equal(c.book.Recent, before) {
				t.Errorf("the old book became %+v", c.book.Recent)
			}
		})
	}
}

// Whatever the window, its book has at most 64 dates, forgets no admission before its time, and none much later.
func TestABookCountsEveryAdmissionForAWindowAndNotMuchLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.Int64Range(1, 3600).Draw(t, "window")) * time.Second
		s := Startup{Since: epoch, Window: window}
		var exact, book []Admitted
		now := epoch
		for range rapid.IntRange(1, 300).Draw(t, "batches") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(window/50)).Draw(t, "passes")))
			count := rapid.IntRange(0, 3).Draw(t, "runs")
			exact = append(exact, Admitted{At: now, Count: count})
			book = s.remember(book, now, count)

			late := window/bucketsPerWindow + 3*time.Second
			got, _ := s.recent(book, now)
			least, _ := s.recent(exact, now)
			most, _ := Startup{Window: window + late}.recent(exact, now)
			if len(book) > 64 || got < least || got > most {
				t.Fatalf("%d dates; %d admissions counted, of at least %d and at most %d", len(book), got, least, most)
			}
			if !slices.IsSortedFunc(book, func(a, b Admitted) int { return a.At.Compare(b.At) }) {
				t.Fatalf("out of order: %v", book)
			}
		}
	})
}
