// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// choose picks one of the objects of a kind that are right, the zero value if none is.
func choose[T client.Object](s *sim, c chance, list client.ObjectList, right func(T) bool) T {
	var none T
	var found []T
	_ = s.direct.List(context.Background(), list, client.InNamespace(namespace))
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if t, ok := o.(T); ok && right(t) {
			found = append(found, t)
		}
		return nil
	})
	if len(found) == 0 {
		return none
	}
	return found[c.of("which").below(len(found))]
}

// change has a user edit one of the objects that are right.
func change[T interface {
	client.Object
	comparable
}](s *sim, c chance, list client.ObjectList, right func(T) bool, edit func(T)) {
	var none T
	o := choose(s, c, list, right)
	if o == none {
		return
	}
	edit(o)
	err := s.direct.Update(context.Background(), o)
	s.trace("a user edits %s %s: %s", s.kindOf(o), o.GetName(), s.result(err))
	s.changed()
}

// deleteOne has a user delete an object.
func deleteOne[T interface {
	client.Object
	comparable
}](s *sim, c chance, list client.ObjectList) {
	var none T
	o := choose(s, c, list, func(T) bool { return true })
	if o == none {
		return
	}
	s.deleted(o.GetUID())
	err := s.direct.Delete(context.Background(), o, client.PropagationPolicy("Background"))
	s.trace("a user deletes %s %s: %s", s.kindOf(o), o.GetName(), s.result(err))
	s.changed()
}
