// SPDX-License-Identifier: Apache-2.0

package admission

import "fmt"

// place keeps the places of those that wait for a type or a resource. Who is refused because one of them is short keeps all
// that it needs from those behind it, who in turn keep all that they need. With less than that, a run that needs two things
// starves behind two streams that need one each, since they are hardly ever free together.
type place struct{}

// Check refuses a candidate that would use what somebody before it waits for.
func (place) Check(s *Slots, c *Candidate) Verdict {
	if c.pending() {
		return Verdict{}
	}
	if k, ok := s.kept.types[c.Type]; ok && k.before(c) {
		return behind(k, "a slot of type", c.Type)
	}
	for _, claim := range c.Claims {
		if k, ok := s.kept.resources[claim.Name]; ok && k.before(c) {
			return behind(k, "resource", claim.Name)
		}
	}
	return Verdict{}
}

func behind(k keeper, what, name string) Verdict {
	kind := "run"
	if k.kind == DirectReservation {
		kind = "reservation"
	}
	return refuseAlike(CodeBehindOthers, fmt.Sprintf("%s %s is before it and also needs %s %q", kind, k.name, what, name))
}

// keeper is an entry that keeps its place.
type keeper struct {
	kind Kind
	name string
	key  Key
}

// before reports whether the keeper is served before the candidate. It is when it has met the keeper: those of a kind are
// asked in order, and runs before reservations if at all.
func (k keeper) before(c *Candidate) bool {
	if k.kind != c.Kind {
		return k.kind == JobRun
	}
	return k.key.Compare(c.Key) < 0
}

// kept are the places kept in a decision: for each type and resource, by the first who waits for it.
type kept struct {
	types     map[string]keeper
	resources map[string]keeper
}

// keep keeps the place of an entry for everything it needs that has a limit.
func (k *kept) keep(l *Limits, e *Entry) {
	if k.types == nil {
		k.types, k.resources = map[string]keeper{}, map[string]keeper{}
	}
	who := keeper{kind: e.Kind, name: e.Name, key: e.Key}
	if _, bounded := l.bound(e.Type); bounded {
		first(k.types, e.Type, who)
	}
	for _, c := range e.Claims {
		first(k.resources, c.Name, who)
	}
}

func first(m map[string]keeper, what string, who keeper) {
	if _, taken := m[what]; !taken {
		m[what] = who
	}
}
