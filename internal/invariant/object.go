// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// state is one version of an object.
type state[T client.Object] struct {
	at     time.Time
	rv     uint64
	object T
}

// life is what was seen of one object, from the first version to the last.
type life[T client.Object] struct {
	kind            string
	uid             types.UID
	namespace, name string
	// states in their order, that of the deletion included.
	states []state[T]
	// gone is when the object was seen deleted; nil: it was there at the end.
	gone *state[T]
	// back is a version that was seen after the deletion.
	back *state[T]
}

func (l *life[T]) subject() string { return l.kind + " " + l.namespace + "/" + l.name }

func (l *life[T]) first() state[T] { return l.states[0] }

func (l *life[T]) last() T { return l.states[len(l.states)-1].object }

// there reports whether the object existed at the end and was not to be deleted.
func (l *life[T]) there() bool { return l.gone == nil && l.last().GetDeletionTimestamp() == nil }

// when returns the first state of which f holds, nil if there is none.
func (l *life[T]) when(f func(T) bool) *state[T] {
	for i := range l.states {
		if f(l.states[i].object) {
			return &l.states[i]
		}
	}
	return nil
}

// add takes the next version that was seen.
func (l *life[T]) add(s state[T], deleted bool) {
	if l.gone != nil {
		if !deleted && s.rv > l.gone.rv && l.back == nil {
			l.back = &s
		}
		return
	}
	if n := len(l.states); !deleted && n > 0 && l.states[n-1].rv >= s.rv {
		return // seen before, by another watch
	}
	l.states = append(l.states, s)
	if deleted {
		l.gone = &s
	}
}

type (
	runLife         = life[*batchv1alpha1.JobRun]
	groupLife       = life[*batchv1alpha1.JobGroup]
	scheduleLife    = life[*batchv1alpha1.ScheduledJob]
	queueLife       = life[*batchv1alpha1.JobQueue]
	reservationLife = life[*batchv1alpha1.DirectReservation]
)

// lives are the objects of one kind, in the order in which they were first seen.
type lives[T client.Object] struct {
	kind string
	all  []*life[T]
	by   map[types.UID]*life[T]
}

func newLives[T client.Object](kind string) *lives[T] {
	return &lives[T]{kind: kind, by: map[types.UID]*life[T]{}}
}

func (m *lives[T]) add(v Version, object T) {
	uid := object.GetUID()
	l := m.by[uid]
	if l == nil {
		l = &life[T]{kind: m.kind, uid: uid, namespace: object.GetNamespace(), name: object.GetName()}
		m.by[uid] = l
		m.all = append(m.all, l)
	}
	l.add(state[T]{at: v.At, rv: version(object), object: object}, v.Type == watch.Deleted)
}

// named returns those of a name, in the order in which they were first seen.
func (m *lives[T]) named(namespace, name string) []*life[T] {
	var found []*life[T]
	for _, l := range m.all {
		if l.name == name && l.namespace == namespace {
			found = append(found, l)
		}
	}
	return found
}

func version(o client.Object) uint64 {
	n, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// world is a History by objects.
type world struct {
	History
	runs         *lives[*batchv1alpha1.JobRun]
	groups       *lives[*batchv1alpha1.JobGroup]
	schedules    *lives[*batchv1alpha1.ScheduledJob]
	queues       *lives[*batchv1alpha1.JobQueue]
	reservations *lives[*batchv1alpha1.DirectReservation]
	ledgers      *lives[*batchv1alpha1.QueueLedger]
	jobs         *lives[*batchv1.Job]
	pods         *lives[*corev1.Pod]
	events       []*eventsv1.Event

	// byName finds runs.
	byName map[types.NamespacedName][]*runLife
	// gone are the objects of any kind that were deleted, or were to be.
	gone map[types.UID]bool
	// confirmed is when a person was first seen to have said that nothing of the work of a run lives.
	confirmed map[types.UID]time.Time
	managers  map[string]*Manager
	limits    map[types.NamespacedName]*timeline
	work      []*execution
	held      []*holder
	// begun are the runs that the log tells of.
	begun map[types.UID]bool
	// busyAt and aliveAt are what holds at the end, once it was asked for.
	busyAt  map[types.NamespacedName]bool
	aliveAt map[types.UID]bool
	report  *Report
}

func newWorld(h History, report *Report) *world {
	w := &world{
		History:      h,
		runs:         newLives[*batchv1alpha1.JobRun]("JobRun"),
		groups:       newLives[*batchv1alpha1.JobGroup]("JobGroup"),
		schedules:    newLives[*batchv1alpha1.ScheduledJob]("ScheduledJob"),
		queues:       newLives[*batchv1alpha1.JobQueue]("JobQueue"),
		reservations: newLives[*batchv1alpha1.DirectReservation]("DirectReservation"),
		ledgers:      newLives[*batchv1alpha1.QueueLedger]("QueueLedger"),
		jobs:         newLives[*batchv1.Job]("Job"),
		pods:         newLives[*corev1.Pod]("Pod"),
		byName:       map[types.NamespacedName][]*runLife{},
		gone:         map[types.UID]bool{},
		confirmed:    map[types.UID]time.Time{},
		managers:     map[string]*Manager{},
		report:       report,
	}
	w.Until = end(h)
	if w.LeaseDuration == 0 {
		w.LeaseDuration = 15 * time.Second
	}
	w.read()
	for i := range w.Managers {
		w.managers[w.Managers[i].ID] = &w.Managers[i]
	}
	for _, r := range w.runs.all {
		key := types.NamespacedName{Namespace: r.namespace, Name: r.name}
		w.byName[key] = append(w.byName[key], r)
	}
	w.limits = timelines(w.queues)
	w.work = executions(w)
	w.begun = map[types.UID]bool{}
	for _, e := range w.work {
		if e.run != nil {
			w.begun[e.run.uid] = true
		}
	}
	return w
}

// read sorts the versions by object. The resourceVersion is the order: of all kinds, since one storage counts for all.
func (w *world) read() {
	ordered := slices.Clone(w.Versions)
	slices.SortStableFunc(ordered, func(a, b Version) int { return cmp.Compare(version(a.Object), version(b.Object)) })
	for _, v := range ordered {
		w.take(v)
	}
}

// end is when the history ends.
func end(h History) time.Time {
	at := h.Until
	if !at.IsZero() {
		return at
	}
	for _, v := range h.Versions {
		at = later(at, v.At)
	}
	for _, a := range h.Acts {
		at = later(at, a.At)
	}
	return at
}

func (w *world) take(v Version) {
	deleted := v.Type == watch.Deleted
	if (v.Type != watch.Added && v.Type != watch.Modified && !deleted) || !w.file(v) {
		return
	}
	if deleted || v.Object.GetDeletionTimestamp() != nil {
		w.gone[v.Object.GetUID()] = true
	}
	w.confirm(v)
}

// file puts a version with the others of its object; false if no rule reads its kind.
func (w *world) file(v Version) bool {
	switch o := v.Object.(type) {
	case *batchv1alpha1.JobRun:
		w.runs.add(v, o)
	case *batchv1alpha1.JobGroup:
		w.groups.add(v, o)
	case *batchv1alpha1.ScheduledJob:
		w.schedules.add(v, o)
	case *batchv1alpha1.JobQueue:
		w.queues.add(v, o)
	case *batchv1alpha1.DirectReservation:
		w.reservations.add(v, o)
	case *batchv1alpha1.QueueLedger:
		w.ledgers.add(v, o)
	case *batchv1.Job:
		w.jobs.add(v, o)
	case *corev1.Pod:
		w.pods.add(v, o)
	case *eventsv1.Event:
		w.events = append(w.events, o)
		return false // they expire, and are about others
	default:
		return false
	}
	return true
}

// confirm notes a person's word that nothing of the work of a run lives.
func (w *world) confirm(v Version) {
	uid := types.UID(v.Object.GetAnnotations()[batchv1alpha1.AnnotationConfirmStopped])
	if uid == "" {
		return
	}
	if before, said := w.confirmed[uid]; !said || v.At.Before(before) {
		w.confirmed[uid] = v.At
	}
}

// ownerGone reports whether an owner of the object was deleted, or was to be.
func (w *world) ownerGone(o client.Object) bool {
	for _, owner := range o.GetOwnerReferences() {
		if w.gone[owner.UID] {
			return true
		}
	}
	return false
}

// late reports whether the creation of a run may be a request of a manager that is long gone: it landed after its creator was
// deleted, and no owner goes with that. A creation cannot be fenced, and a creator that is gone no longer objects: that is one of
// the things that docs/retry-and-recovery.md leaves open.
func late[T client.Object](w *world, r *runLife, creator *life[T]) bool {
	return creator.gone != nil && creator.gone.rv < r.first().rv && !w.ownerGone(r.first().object)
}

func (w *world) checked(invariant int) { w.report.Checked[invariant]++ }

func (w *world) broken(invariant int, subject, message string) {
	w.report.Violations = append(w.report.Violations, Violation{Invariant: invariant, Subject: subject, Message: message})
}

// ended reports whether what can be said of the end only may be said.
func (w *world) ended() bool { return w.Settled && !w.Partial }
