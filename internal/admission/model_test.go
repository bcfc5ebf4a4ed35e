// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// model is the plainest possible queue: facts in a map, and every question answered by looking at all of them.
type model struct {
	facts  map[types.UID]*fact
	limits Limits
	book   Book
	now    time.Time
}

// fact is what was told about one UID.
type fact struct {
	entry    Entry
	known    bool
	gone     bool
	work     bool
	workOf   types.UID
	assumed  bool
	outdated bool
	told     Reason // why it does not fit
}

func (f *fact) holds() bool { return f.work || f.assumed || (f.known && f.entry.Holds) }
func (f *fact) waits() bool { return f.known && f.entry.Waiting && !f.entry.Holds }
func (f *fact) reservation() bool {
	return f.known && f.entry.Kind == DirectReservation
}

func (f *fact) chain() types.UID {
	if f.known {
		return f.entry.ChainUID
	}
	return f.workOf
}

// sorted returns the facts that match, in the order of service.
func (m *model) sorted(match func(*fact) bool) []*fact {
	all := slices.SortedFunc(maps.Values(m.facts), func(a, b *fact) int { return a.entry.Compare(b.entry.Key) })
	return slices.DeleteFunc(all, func(f *fact) bool { return !match(f) })
}

func (m *model) counts() Counts {
	return Counts{
		Queued:   len(m.sorted(func(f *fact) bool { return f.waits() && !f.reservation() && !f.assumed })),
		Running:  len(m.sorted(func(f *fact) bool { return f.holds() && !f.reservation() })),
		Reserved: len(m.sorted(func(f *fact) bool { return f.holds() && f.reservation() })),
	}
}

// fits says whether an entry can ever be admitted.
func (m *model) fits(e Entry) bool {
	if _, listed := m.limits.Types[e.Type]; e.Type != "" && len(m.limits.Types) > 0 && !listed {
		return false
	}
	for _, c := range e.Claims {
		if capacity, there := m.limits.Resources[c.Name]; !there || c.Count > capacity {
			return false
		}
	}
	return true
}

// bounded returns the limit of a type that has one.
func (m *model) bounded(kind string) (int, bool) {
	limit, listed := m.limits.Types[kind]
	return limit, kind != "" && listed && limit != Unlimited
}

// served says whether an entry that waits is in the way of others.
func (m *model) served(f *fact) bool {
	limit, bounded := m.bounded(f.entry.Type)
	return m.fits(f.entry) && (!bounded || limit > 0)
}

func (m *model) reserved(active bool) []*fact {
	return m.sorted(func(f *fact) bool {
		return f.waits() && f.reservation() && f.entry.Active == active && m.served(f)
	})
}

// eligible returns the runs that may be admitted if what they need is free and nobody has reserved.
func (m *model) eligible() []*fact {
	held := map[types.UID]bool{}
	for _, f := range m.facts {
		if f.holds() && !f.reservation() {
			held[f.chain()] = true
		}
	}
	return m.sorted(func(f *fact) bool {
		return f.waits() && !f.reservation() && !f.assumed && f.entry.Confirmed && !held[f.chain()] &&
			!f.entry.NotBefore.After(m.now) && m.served(f)
	})
}

// backOffEnds returns when the next run becomes eligible by time alone, whatever the limits.
func (m *model) backOffEnds() (wake time.Time) {
	for _, f := range m.facts {
		later := *m
		later.now = f.entry.NotBefore
		if f.waits() && f.entry.NotBefore.After(m.now) && slices.Contains(later.eligible(), f) {
			wake = sooner(wake, f.entry.NotBefore)
		}
	}
	return wake
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func (m *model) closed() bool { return m.limits.Suspend || m.limits.Limit <= 0 }

func (m *model) activate(batch int) (out []Entry) {
	room := m.limits.Limit - len(m.reserved(true))
	for _, f := range m.reserved(false) {
		if !m.closed() && len(out) < min(room, batch) {
			out = append(out, f.entry)
		}
	}
	return out
}

// tally is what is used, with what a decision has given away so far, and what is kept of the rest.
type tally struct {
	slots, admitted int
	use             map[string]int // of what names() returns
	chains          map[types.UID]bool
	kept            map[string]bool
	left            map[string]bool // those who need the same as one who keeps its place: they need not be asked
	wake            time.Time
}

func (m *model) tally() *tally {
	t := &tally{use: map[string]int{}, chains: map[types.UID]bool{}, kept: map[string]bool{}, left: map[string]bool{}}
	for _, f := range m.facts {
		if f.holds() {
			t.take(f)
		}
	}
	clear(t.chains)
	return t
}

func (t *tally) take(f *fact) {
	t.slots++
	t.use["type "+f.entry.Type]++
	for _, c := range f.entry.Claims {
		t.use["resource "+c.Name] += c.Count
	}
	if f.chain() != "" {
		t.chains[f.chain()] = true
	}
}

// needs are the names of what an entry needs and may have to wait for.
func (m *model) needs(e Entry) (names []string) {
	if _, bounded := m.bounded(e.Type); bounded {
		names = append(names, "type "+e.Type)
	}
	for _, c := range e.Claims {
		names = append(names, "resource "+c.Name)
	}
	return names
}

// short says whether too little is free for an entry.
func (m *model) short(t *tally, e Entry) bool {
	if limit, bounded := m.bounded(e.Type); bounded && t.use["type "+e.Type] >= limit {
		return true
	}
	return slices.ContainsFunc(e.Claims, func(c Claim) bool {
		return t.use["resource "+c.Name]+c.Count > m.limits.Resources[c.Name]
	})
}

// serve goes through a list and returns what of it is admitted.
func (m *model) serve(t *tally, list []*fact, most int) (out []Entry) {
	for _, f := range list {
		needs := m.needs(f.entry)
		alike := fmt.Sprint(f.entry.Kind, needs)
		switch {
		case f.assumed || t.left[alike] || t.chains[f.chain()]:
			continue
		case len(out) >= most || m.closed() || t.slots >= m.limits.Limit || (!f.reservation() && m.throttled(t)):
			return out
		case m.short(t, f.entry) || slices.ContainsFunc(needs, func(n string) bool { return t.kept[n] }):
			for _, n := range needs {
				t.kept[n] = true
			}
			t.left[alike] = true
			continue
		case !f.outdated:
			out = append(out, f.entry)
			if !f.reservation() {
				t.admitted++
			}
		}
		t.take(f)
	}
	return out
}

// throttled says whether the start-up throttle lets no run begin, and notes when that may change.
func (m *model) throttled(t *tally) bool {
	s := m.limits.Startup
	end := s.Since.Add(s.Window)
	if !m.now.Before(end) || !m.now.After(s.Since.Add(-s.Window)) {
		return false
	}
	slots, open, recent := m.slots(), 0, t.admitted
	opens, expires := end, end
	for k := range slots {
		if at := s.Since.Add(s.Offset + time.Duration(k)*s.Stagger); at.After(m.now) {
			opens = sooner(opens, at)
		} else {
			open++
		}
	}
	for _, a := range m.book.Recent {
		if a.At.Add(s.Window).After(m.now) {
			recent += a.Count
			expires = sooner(expires, a.At.Add(s.Window))
		}
	}
	switch {
	case t.slots >= open:
		t.wake = sooner(t.wake, opens)
	case s.BurstLimit > 0 && recent >= s.BurstLimit*slots:
		t.wake = sooner(t.wake, expires)
	default:
		return false
	}
	return true
}

func (m *model) slots() int {
	if m.limits.Limit != Unlimited {
		return m.limits.Limit
	}
	n := 0
	for kind, limit := range m.limits.Types {
		if _, bounded := m.bounded(kind); bounded {
			n += limit
		}
	}
	for _, capacity := range m.limits.Resources {
		n += capacity
	}
	return max(n, 1)
}

// decide returns what Decide should, but for why somebody waits.
func (m *model) decide(batch int) Decision {
	t, runs, most := m.tally(), m.eligible(), m.limits.MaxConsecutive
	reservations := len(m.reserved(true)) + len(m.reserved(false))
	turn := reservations > 0 && len(runs) > 0 && most > 0 && m.book.DirectInRow >= most

	var admitted, grants []Entry
	if turn {
		admitted = m.serve(t, runs, min(1, batch))
	}
	grantable := batch - len(admitted)
	switch {
	case most == 0 || len(runs) == len(admitted): // no run waits
	case turn && len(admitted) == 0: // none can be admitted
	case turn:
		grantable = min(grantable, most)
	default:
		grantable = min(grantable, most-m.book.DirectInRow)
	}
	grants = m.serve(t, m.reserved(true), grantable)
	if reservations == 0 {
		admitted = m.serve(t, runs, batch)
	}
	d := Decision{Admit: slices.Concat(admitted, grants), Activate: m.activate(batch), Wake: m.backOffEnds()}
	if !t.wake.IsZero() {
		d.Wake = sooner(d.Wake, t.wake)
	}
	d.Book = m.nextBook(len(admitted), len(grants), len(runs) > len(admitted))
	return d
}

func (m *model) nextBook(runs, grants int, runsWait bool) (b Book) {
	if runsWait {
		b.DirectInRow = grants
		if runs == 0 {
			b.DirectInRow += m.book.DirectInRow
		}
		b.DirectInRow = min(b.DirectInRow, m.limits.MaxConsecutive)
	}
	s := m.limits.Startup
	if !m.now.Before(s.Since.Add(s.Window)) || !m.now.After(s.Since.Add(-s.Window)) {
		return b
	}
	count := map[time.Time]int{}
	for _, a := range m.book.Recent {
		if a.At.Add(s.Window).After(m.now) {
			count[sooner(a.At, m.now)] += a.Count
		}
	}
	if runs > 0 {
		count[m.now] += runs
	}
	for _, at := range slices.SortedFunc(maps.Keys(count), time.Time.Compare) {
		b.Recent = append(b.Recent, Admitted{At: at, Count: count[at]})
	}
	return b
}

// misfits returns what Misfits should, and takes it as told.
func (m *model) misfits() (out []Entry) {
	for _, kind := range []Kind{DirectReservation, JobRun} {
		for _, f := range m.sorted(func(f *fact) bool { return f.waits() && f.entry.Kind == kind }) {
			if why, _ := Fit(m.limits, f.entry.Type, f.entry.Claims); why != f.told {
				f.told = why
				out = append(out, f.entry)
			}
		}
	}
	return out
}

// refreshed returns the model as a manager that has just started sees it: what is told, and nothing of its own.
func (m *model) refreshed() *model {
	out := *m
	out.facts = map[types.UID]*fact{}
	for uid, f := range m.facts {
		g := *f
		g.assumed, g.outdated, g.told = false, false, Reason{}
		out.facts[uid] = &g
	}
	return &out
}
