// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"reprise.dev/reprise/internal/invariant"
)

// noted are the Events of all processes. They take no way: nothing rests on them, and the checker looks only at what they tell.
type noted struct {
	mu  sync.Mutex
	all []invariant.Version
}

func (n *noted) soFar() []invariant.Version {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// notes is how one process writes Events.
type notes struct{ process *process }

// Eventf keeps the Event, unless the process is dead and does not know it yet.
func (n *notes) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if n.process.ended() {
		return
	}
	s := n.process.sim
	s.noted.mu.Lock()
	defer s.noted.mu.Unlock()
	name := fmt.Sprintf("event-%d", len(s.noted.all))
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Type:       eventtype, Reason: reason, Action: action, Note: fmt.Sprintf(note, args...), Regarding: *referenceTo(regarding), Related: referenceTo(related),
	}
	s.noted.all = append(s.noted.all, invariant.Version{At: s.now(), Type: watch.Added, Object: e})
}

// AnnotatedEventf is the same: nobody annotates Events.
func (n *notes) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventtype, reason, action, note string, args ...any) {
	n.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

func referenceTo(o runtime.Object) *corev1.ObjectReference {
	about, is := o.(client.Object)
	if !is {
		return nil
	}
	return &corev1.ObjectReference{Namespace: about.GetNamespace(), Name: about.GetName(), UID: about.GetUID()}
}
