// SPDX-License-Identifier: Apache-2.0

package namesake

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func pod(uid types.UID, generation int64) *corev1.Pod {
	p := &corev1.Pod{}
	p.UID, p.Generation = uid, generation
	return p
}

func TestAnUpdateToANamesakePassesAsTheDeletionAndTheCreationThatItStandsFor(t *testing.T) {
	only := func(create, remove bool) predicate.Predicate {
		return predicate.Funcs{
			CreateFunc: func(e event.CreateEvent) bool { return create && e.Object.GetUID() == "b" },
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(e event.DeleteEvent) bool { return remove && e.Object.GetUID() == "a" },
		}
	}
	for name, c := range map[string]struct {
		predicate predicate.Predicate
		now       client.Object
		passes    bool
	}{
		"one that creations may pass":                           {only(true, false), pod("b", 1), true},
		"one that deletions may pass":                           {only(false, true), pod("b", 1), true},
		"one that neither may pass":                             {only(false, false), pod("b", 1), false},
		"one of the same generation":                            {predicate.GenerationChangedPredicate{}, pod("b", 1), true},
		"an update of the same object is an update":             {only(true, true), pod("a", 1), false},
		"an update of the same object that the predicate wants": {predicate.GenerationChangedPredicate{}, pod("a", 2), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Aware(c.predicate).Update(event.UpdateEvent{ObjectOld: pod("a", 1), ObjectNew: c.now}); got != c.passes {
				t.Errorf("it passes: %v", got)
			}
		})
	}
}

func TestEverythingElsePassesAsItDid(t *testing.T) {
	p := Aware(predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
	if p.Create(event.CreateEvent{Object: pod("a", 1)}) || p.Delete(event.DeleteEvent{Object: pod("a", 1)}) || p.Generic(event.GenericEvent{Object: pod("a", 1)}) {
		t.Error("something passes that did not")
	}
}
