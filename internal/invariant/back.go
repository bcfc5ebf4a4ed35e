// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nothingComesBack is invariant 12: nothing deleted comes back. It is broken by
//
//   - a UID that is seen again after its deletion;
//   - the execution of a run or group that a controller made, in the place of one that its creator had recorded and that was
//     deleted before: the retry of the same failure, the same tick, the same member of the same group. That one is
//     created again is harmless: a creation cannot be fenced. It must not be executed.
//
// What a person creates under an old name is a person's doing. A creation that lands after its creator is gone is left open by
// the design, and counts here for nothing (see late).
func nothingComesBack(w *world) {
	again(w, w.runs)
	again(w, w.groups)
	again(w, w.schedules)
	again(w, w.reservations)
	named := recorded(w)
	before := map[string]*runLife{}
	for _, r := range w.runs.all {
		place := w.place(r)
		if place == "" {
			continue
		}
		w.checked(12)
		if old := before[place]; old != nil && r.first().rv > old.gone.rv && w.executed(r) {
			w.broken(12, r.subject(), fmt.Sprintf("%s, whose run with UID %s was recorded and deleted (version %d), was executed again with UID %s", place, old.uid, old.gone.rv, r.uid))
		}
		if _, known := named[r.uid]; known && r.gone != nil && before[place] == nil {
			before[place] = r
		}
	}
}

// place is what a controller made the run for; "" for what a person made.
func (w *world) place(r *runLife) string {
	spec := r.last().Spec
	switch {
	case automatic(r.last()):
		f := w.parentOf(r)
		if f == nil || late(w, r, f) {
			return ""
		}
		return fmt.Sprintf("the retry of %s with UID %s", f.name, f.uid)
	case spec.RetryOf != "":
		return ""
	case spec.ScheduledTime != nil && spec.ScheduledJobRef != nil:
		key := types.NamespacedName{Namespace: r.namespace, Name: spec.ScheduledJobRef.Name}
		if w.severalSchedules(key) || w.lateTick(r) {
			return ""
		}
		return fmt.Sprintf("tick %d of ScheduledJob %s", spec.ScheduledTime.Unix(), key)
	case spec.GroupRef != nil:
		groups := w.groups.named(r.namespace, spec.GroupRef.Name)
		if len(groups) != 1 {
			return ""
		}
		return fmt.Sprintf("member %s of group %s with UID %s", spec.GroupRef.Member, groups[0].name, groups[0].uid)
	default:
		return ""
	}
}

func again[T client.Object](w *world, all *lives[T]) {
	for _, l := range all.all {
		if l.gone == nil {
			continue
		}
		w.checked(12)
		if l.back != nil {
			w.broken(12, l.subject(), fmt.Sprintf("UID %s was deleted (version %d), and is there again (version %d)", l.uid, l.gone.rv, l.back.rv))
		}
	}
}
