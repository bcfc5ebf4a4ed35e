// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// Direct access: reservations that are granted and given back, that run out, and those of requests over HTTP.

func directScenarios() []scenario {
	return slices.Concat(
		scenario{name: "reservation", pairs: true, fast: true, drive: released, expect: inOrder}.at(1, 2),
		scenario{name: "reservation-expired", drive: expired, expect: reservationsEnd}.at(1, 2),
		scenario{
			name: "direct-http", door: true, pairs: true,
			drive: func(h *history) {
				h.create(h.queue(func(q *batchv1alpha1.JobQueue) {
					q.Spec.Direct = &batchv1alpha1.QueueDirect{Upstream: works.URL + "/" + h.ns + "/direct"}
				}))
				h.create(three(h.calls(0))...)
				for _, name := range abc {
					h.ask("default", name)
				}
				h.told(abc...)
			},
			expect: reservationsEnd,
		}.at(1, 2),
	)
}

// reservation is one whose holder has shown that it lives.
func reservation(name string, change func(*batchv1alpha1.DirectReservationSpec)) *batchv1alpha1.DirectReservation {
	dr := &batchv1alpha1.DirectReservation{ObjectMeta: called(name)}
	dr.Spec.HolderIdentity = name
	dr.Spec.RenewTime = ptr.To(metav1.Now())
	change(&dr.Spec)
	return dr
}

// busy has the queue full of runs that end when the gate is opened, with three more behind them.
func (h *history) busy() (roots []string) {
	h.create(h.queue())
	for i := range h.limit {
		name := fmt.Sprint("first-", i)
		h.create(run1(name, h.holds("gate")))
		h.atWork(name)
		roots = append(roots, name)
	}
	h.create(three(h.calls(0))...)
	return append(roots, abc...)
}

// released has three reservations granted, between the work and the rest of the queue, and given back one after the other.
func released(h *history) {
	roots := h.busy()
	for _, name := range []string{"x", "y", "z"} {
		h.create(reservation(name, func(*batchv1alpha1.DirectReservationSpec) {}))
	}
	h.log.openGate("gate")
	given := map[string]bool{}
	for {
		var next *batchv1alpha1.DirectReservation
		h.await("a reservation is granted, or all have ended", func(v view) bool {
			all := every[*batchv1alpha1.DirectReservation](v)
			next = nil
			if i := slices.IndexFunc(all, func(dr *batchv1alpha1.DirectReservation) bool {
				return dr.Status.Phase == batchv1alpha1.ReservationGranted && !given[dr.Name]
			}); i >= 0 {
				next = all[i].DeepCopy()
			}
			return next != nil || !slices.ContainsFunc(all, func(dr *batchv1alpha1.DirectReservation) bool { return !dr.Status.Phase.Terminal() })
		})
		if next == nil {
			break
		}
		given[next.Name] = true
		h.change(next, func() { next.Spec.Release = true })
	}
	h.told(roots...)
}

// inOrder expects that reservations were granted in the order in which they were made, as far as there was one slot.
func inOrder(h *history, v view) []string {
	var granted []string
	for _, version := range h.record.all() {
		dr, is := version.Object.(*batchv1alpha1.DirectReservation)
		if is && dr.Status.Phase == batchv1alpha1.ReservationGranted && !slices.Contains(granted, dr.Name) {
			granted = append(granted, dr.Name)
		}
	}
	wrong := reservationsEnd(h, v)
	if h.limit == 1 && !slices.IsSorted(granted) {
		wrong = append(wrong, fmt.Sprintf("x, y and z were granted in the order %v", granted))
	}
	return wrong
}

// expired has one reservation granted whose lease runs out, and others that nobody serves in time.
func expired(h *history) {
	roots := h.busy()
	// A death frees the slot of the call: then one of those that wait may be granted, and runs out.
	soon := func(s *batchv1alpha1.DirectReservationSpec) { s.WaitTimeoutSeconds, s.LeaseDurationSeconds = 1, 1 }
	h.create(reservation("y", soon), reservation("z", soon))
	h.create(reservation("x", func(s *batchv1alpha1.DirectReservationSpec) { s.LeaseDurationSeconds = 1 }))
	h.await("those that wait are told so", func(v view) bool {
		return named[*batchv1alpha1.DirectReservation](v, "y").Status.Phase.Terminal() && named[*batchv1alpha1.DirectReservation](v, "z").Status.Phase.Terminal()
	})
	h.log.openGate("gate")
	h.await("the lease runs out", func(v view) bool {
		return named[*batchv1alpha1.DirectReservation](v, "x").Status.Phase.Terminal()
	})
	h.told(roots...)
}

// reservationsEnd expects that no reservation holds anything, and that the runs behind them went on.
func reservationsEnd(h *history, v view) (wrong []string) {
	for _, dr := range every[*batchv1alpha1.DirectReservation](v) {
		if !dr.Status.Phase.Terminal() {
			wrong = append(wrong, fmt.Sprintf("reservation %s is %s", dr.Name, dr.Status.Phase))
		}
	}
	return append(wrong, endsAs(batchv1alpha1.ConditionComplete)(h, v)...)
}
