// SPDX-License-Identifier: Apache-2.0

// Package namesake sees through updates that are none: of an object that was deleted and made anew while a watch was
// interrupted, the watch shows one update from the one to its namesake.
package namesake

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Replaces reports whether the update replaced an object by a namesake.
func Replaces(before, now client.Object) bool {
	return before != nil && now != nil && before.GetUID() != now.GetUID()
}

// Aware returns p, but such an update passes if p would let the deletion or the creation pass that it stands for.
func Aware(p predicate.Predicate) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: p.Create,
		UpdateFunc: func(e event.UpdateEvent) bool {
			if Replaces(e.ObjectOld, e.ObjectNew) {
				return p.Delete(event.DeleteEvent{Object: e.ObjectOld}) || p.Create(event.CreateEvent{Object: e.ObjectNew})
			}
			return p.Update(e)
		},
		DeleteFunc:  p.Delete,
		GenericFunc: p.Generic,
	}
}
