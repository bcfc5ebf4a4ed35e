// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// terminalIsFinal is invariant 10: what a run, a group or a reservation has ended as never changes, nor does why, when, and what
// the work left behind.
func terminalIsFinal(w *world) {
	final(w, w.runs, func(r *batchv1alpha1.JobRun) *outcome {
		s := r.Status
		if !s.Phase.Terminal() {
			return nil
		}
		return &outcome{string(s.Phase), s.Reason, s.FinishedAt, s.Result}
	})
	final(w, w.groups, func(g *batchv1alpha1.JobGroup) *outcome {
		s := g.Status
		if !s.Phase.Terminal() {
			return nil
		}
		return &outcome{string(s.Phase), s.Reason, s.FinishedAt, nil}
	})
	final(w, w.reservations, func(d *batchv1alpha1.DirectReservation) *outcome {
		s := d.Status
		if !s.Phase.Terminal() {
			return nil
		}
		return &outcome{string(s.Phase), s.Reason, s.FinishedAt, nil}
	})
}

// outcome is what must not change.
type outcome struct {
	phase, reason string
	finishedAt    *metav1.Time
	result        *batchv1alpha1.WorkResult
}

func (o *outcome) same(p *outcome) bool {
	return p != nil && o.phase == p.phase && o.reason == p.reason && o.finishedAt.Equal(p.finishedAt) && equality.Semantic.DeepEqual(o.result, p.result)
}

func (o *outcome) String() string {
	if o == nil {
		return "not over"
	}
	text := o.phase + ", " + o.reason
	if o.finishedAt != nil {
		text += " at " + clock(o.finishedAt.Time)
	}
	if o.result != nil {
		text += fmt.Sprintf(" with %+v", *o.result)
	}
	return text
}

func final[T client.Object](w *world, all *lives[T], of func(T) *outcome) {
	for _, l := range all.all {
		var was *outcome
		for _, s := range l.states {
			is := of(s.object)
			if was != nil {
				w.checked(10)
				if !was.same(is) {
					w.broken(10, l.subject(), fmt.Sprintf("version %d: it was %s; it is %s", s.rv, was, is))
				}
			}
			if is != nil {
				was = is
			}
		}
	}
}
