// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// model is the plainest possible queue: facts in a map, and every question answered by looking at all of them.
type model struct {
	facts  map[types.UID]*fact
	limits Limits
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

func (m *model) used() int { return len(m.sorted((*fact).holds)) }

func (m *model) counts() Counts {
	return Counts{
		Queued:   len(m.sorted(func(f *fact) bool { return f.waits() && !f.reservation() && !f.assumed })),
		Running:  len(m.sorted(func(f *fact) bool { return f.holds() && !f.reservation() })),
		Reserved: len(m.sorted(func(f *fact) bool { return f.holds() && f.reservation() })),
	}
}

func (m *model) reserved(active bool) []*fact {
	return m.sorted(func(f *fact) bool { return f.waits() && f.reservation() && f.entry.Active == active })
}

// eligible returns the runs that may be admitted if slots are free and nobody has reserved.
func (m *model) eligible() []*fact {
	held := map[types.UID]bool{}
	for _, f := range m.facts {
		if f.holds() && !f.reservation() {
			held[f.chain()] = true
		}
	}
	return m.sorted(func(f *fact) bool {
		return f.waits() && !f.reservation() && !f.assumed && f.entry.Confirmed && !held[f.chain()] && !f.entry.NotBefore.After(m.now)
	})
}

// wake returns when the next run becomes eligible by time alone, whatever the limits.
func (m *model) wake() (wake time.Time) {
	for _, f := range m.facts {
		later := *m
		later.now = f.entry.NotBefore
		if f.waits() && f.entry.NotBefore.After(m.now) && slices.Contains(later.eligible(), f) {
			if wake.IsZero() || f.entry.NotBefore.Before(wake) {
				wake = f.entry.NotBefore
			}
		}
	}
	return wake
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

func (m *model) admit(batch int) (out []Entry) {
	if m.closed() {
		return nil
	}
	candidates := m.reserved(true)
	if len(candidates)+len(m.reserved(false)) == 0 {
		candidates = m.eligible()
	}
	used, chains := m.used(), map[types.UID]bool{}
	for _, f := range candidates {
		switch {
		case f.assumed || (f.chain() != "" && chains[f.chain()]):
			continue
		case used >= m.limits.Limit || len(out) == batch:
			return out
		case !f.outdated:
			out = append(out, f.entry)
		}
		used++
		chains[f.chain()] = true
	}
	return out
}

// refreshed returns the model as a manager that has just started sees it: what is told, and nothing of its own.
func (m *model) refreshed() *model {
	out := &model{facts: map[types.UID]*fact{}, limits: m.limits, now: m.now}
	for uid, f := range m.facts {
		g := *f
		g.assumed, g.outdated = false, false
		out.facts[uid] = &g
	}
	return out
}
