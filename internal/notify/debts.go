// SPDX-License-Identifier: Apache-2.0

package notify

import "sync"

// Debts counts what every receiver is owed, by what it is shown of runs and groups. The zero value has been shown nothing. It
// is safe for concurrent use.
type Debts struct {
	mu   sync.Mutex
	of   map[Name][]Destination // one for each announcement that is owed
	owed map[Destination]int
}

// Show tells how a run or group is now.
func (d *Debts) Show(s Subject) {
	var to []Destination
	for _, a := range s.Announcements() {
		if owed(a) {
			to = append(to, DestinationOf(s, a))
		}
	}
	d.set(NameOf(s), to)
}

// Drop tells that a run or group exists no more.
func (d *Debts) Drop(name Name) { d.set(name, nil) }

// TooMany reports whether a receiver is owed more than MostOwed announcements.
func (d *Debts) TooMany(to Destination) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.owed[to] > MostOwed
}

func (d *Debts) set(name Name, to []Destination) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.of == nil {
		d.of, d.owed = map[Name][]Destination{}, map[Destination]int{}
	}
	for _, before := range d.of[name] {
		if d.owed[before]--; d.owed[before] == 0 {
			delete(d.owed, before)
		}
	}
	for _, now := range to {
		d.owed[now]++
	}
	if len(to) == 0 {
		delete(d.of, name)
	} else {
		d.of[name] = to
	}
}
