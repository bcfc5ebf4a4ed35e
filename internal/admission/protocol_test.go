// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// world is an API server and the way to it: writes are conditional on the version, answers are lost, watch events are late.
// The queue sees only what arrives; the promises are about what the server has.
type world struct {
	q       *Queue
	objects map[types.UID]Entry   // the truth
	events  map[types.UID][]Entry // on the way, in order for each object
	claims  []Entry               // sent, not yet arrived
	unknown []types.UID           // claims whose answer was lost
	limits  Limits
	book    Book
	version uint64
}

func TestTheServerNeverHasMoreAtWorkThanTheLimitHoweverLateTheQueueLearns(t *testing.T) {
	for range 8 { // what goes wrong here needs many coincidences
		rapid.Check(t, disturb)
	}
}

func disturb(t *rapid.T) {
	w := &world{
		q: NewQueue(), objects: map[types.UID]Entry{}, events: map[types.UID][]Entry{},
		limits: Limits{Limit: rapid.IntRange(1, 3).Draw(t, "limit")},
	}
	if rapid.Bool().Draw(t, "types and resources") {
		w.limits.Types, w.limits.Resources = map[string]int{"a": 1, "b": 2}, map[string]int{"r": 2, "s": 1}
		w.limits.MaxConsecutive = rapid.IntRange(0, 2).Draw(t, "maxConsecutive")
	}
	t.Repeat(map[string]func(*rapid.T){
		"":        w.check,
		"create":  w.create,
		"edit":    w.edit,
		"finish":  w.finish,
		"decide":  w.decide,
		"arrive":  w.arrive,
		"observe": w.observe,
		"read":    w.read,
		"resolve": w.resolve,
	})
	w.settle(t)
}

func (w *world) check(t *rapid.T) {
	held, chains := newUse(), map[types.UID]string{}
	slots := 0
	for _, e := range w.objects {
		if !e.Holds {
			continue
		}
		slots++
		held.add(e.Type, e.Claims, 1)
		if other := chains[e.ChainUID]; other != "" && e.ChainUID != "" {
			t.Fatalf("%s and %s of one chain are at work", other, e.Name)
		}
		chains[e.ChainUID] = e.Name
	}
	if slots > w.limits.Limit {
		t.Fatalf("%d slots are in use, of %d", slots, w.limits.Limit)
	}
	for kind, limit := range w.limits.Types {
		if held.types[kind] > limit {
			t.Fatalf("%d slots of type %s are in use, of %d", held.types[kind], kind, limit)
		}
	}
	for name, capacity := range w.limits.Resources {
		if held.resources[name] > capacity {
			t.Fatalf("%d of resource %s are in use, of %d", held.resources[name], name, capacity)
		}
	}
}

// write stores an object under a new version and puts the event on its way.
func (w *world) write(e Entry) Entry {
	w.version++
	e.ResourceVersion = w.version
	w.objects[e.UID] = e
	w.events[e.UID] = append(w.events[e.UID], e)
	return e
}

func (w *world) pick(t *rapid.T, match func(Entry) bool) Entry {
	all := slices.SortedFunc(maps.Values(w.objects), func(a, b Entry) int { return a.Compare(b.Key) })
	all = slices.DeleteFunc(all, func(e Entry) bool { return !match(e) })
	if len(all) == 0 {
		t.Skip("nothing to pick")
	}
	return rapid.SampledFrom(all).Draw(t, "object")
}

func (w *world) create(t *rapid.T) {
	e := waitingRun(fmt.Sprintf("n%d", len(w.objects)), int64(w.version+1))
	e.Priority = rapid.Int32Range(0, 3).Draw(t, "priority")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		e.Priority, e.Kind, e.ChainUID = 0, DirectReservation, ""
	case 1:
		e.ChainUID = "shared"
	}
	if w.limits.Types != nil {
		drawFittingNeed(t, &e)
	}
	w.write(e)
}

// drawFittingNeed gives an entry a type and claims that the queue of a world has.
func drawFittingNeed(t *rapid.T, e *Entry) {
	e.Type = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "type")
	if n := rapid.IntRange(0, 2).Draw(t, "r"); n > 0 {
		e.Claims = append(e.Claims, Claim{"r", n})
	}
	if rapid.IntRange(0, 2).Draw(t, "s") == 0 {
		e.Claims = append(e.Claims, Claim{"s", 1})
	}
}

// edit is a write that the queue did not ask for.
func (w *world) edit(t *rapid.T) {
	w.write(w.pick(t, func(e Entry) bool { return e.Waiting }))
}

func (w *world) finish(t *rapid.T) {
	e := w.pick(t, func(e Entry) bool { return e.Holds })
	over(&e)
	w.write(e)
}

func (w *world) decide(*rapid.T) {
	d := Decide(w.q, w.limits, w.book, epoch, 2)
	if len(d.Admit) > 0 {
		w.book = d.Book
	}
	for _, e := range d.Admit {
		if w.q.Assume(e.UID, e.ResourceVersion) {
			w.claims = append(w.claims, e)
		}
	}
	for _, e := range d.Activate {
		if w.objects[e.UID].ResourceVersion == e.ResourceVersion {
			e.Active = true
			w.q.Upsert(w.write(e))
		}
	}
}

// arrive lets a claim reach the server, in any order, and its answer come back or not.
func (w *world) arrive(t *rapid.T) {
	if len(w.claims) == 0 {
		t.Skip("no claim is on its way")
	}
	i := rapid.IntRange(0, len(w.claims)-1).Draw(t, "claim")
	e := w.claims[i]
	w.claims = slices.Delete(w.claims, i, i+1)
	landed := w.objects[e.UID].ResourceVersion == e.ResourceVersion
	if landed {
		holding(&e)
		e = w.write(e)
	}
	switch {
	case rapid.IntRange(0, 3).Draw(t, "answer") == 0:
		w.unknown = append(w.unknown, e.UID)
	case landed:
		w.q.Upsert(e)
	case w.q.items[e.UID].entry.ResourceVersion == e.ResourceVersion: // else there may be a later claim on the way
		w.q.Conflict(e.UID)
	}
}

// resolve touches an object whose claim was not answered and reads it live.
func (w *world) resolve(t *rapid.T) {
	if len(w.unknown) == 0 {
		t.Skip("every claim is answered")
	}
	uid := w.unknown[0]
	w.unknown = w.unknown[1:]
	w.q.Upsert(w.write(w.objects[uid]))
}

// read tells the queue of the truth, ahead of the events.
func (w *world) read(t *rapid.T) {
	w.q.Upsert(w.pick(t, func(Entry) bool { return true }))
}

// observe delivers the next event of one object.
func (w *world) observe(t *rapid.T) {
	var late []types.UID
	for uid, events := range w.events {
		if len(events) > 0 {
			late = append(late, uid)
		}
	}
	if len(late) == 0 {
		t.Skip("nothing is on its way")
	}
	slices.Sort(late)
	w.deliver(rapid.SampledFrom(late).Draw(t, "event"))
}

func (w *world) deliver(uid types.UID) {
	w.q.Upsert(w.events[uid][0])
	w.events[uid] = w.events[uid][1:]
}

// settle ends all disturbance: then everything that waits gets its slot.
func (w *world) settle(t *rapid.T) {
	for range 4 * (len(w.objects) + 1) {
		w.decide(t)
		for len(w.claims) > 0 {
			w.arrive(t)
		}
		for len(w.unknown) > 0 {
			w.resolve(t)
		}
		w.check(t)
		for uid := range w.events {
			for len(w.events[uid]) > 0 {
				w.deliver(uid)
			}
		}
		for _, e := range w.objects {
			if e.Holds {
				over(&e)
				w.q.Upsert(w.write(e))
			}
		}
	}
	for _, e := range w.objects {
		if e.Waiting {
			t.Fatalf("%s never got a slot", e.Name)
		}
	}
	expectEmpty(t, w.q)
}

func expectEmpty(t *rapid.T, q *Queue) {
	t.Helper()
	if got := q.Counts(); got != (Counts{}) {
		t.Fatalf("in the end counts are %+v", got)
	}
}
