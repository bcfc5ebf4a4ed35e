// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAReservationGoesWhenItsTimeToLiveIsOver(t *testing.T) {
	w := newWorld(t)
	kept, dated := w.reserve("kept", nil), w.reserve("dated", ptr.To[int32](1800))
	w.at(29 * time.Minute)
	result := w.reservation(dated)
	w.Expect(result.RequeueAfter).To(Equal(time.Minute))
	w.Expect(result.Priority).To(HaveValue(BeZero()), "or it would starve behind the first list after a restart")

	w.at(30 * time.Minute)
	w.Expect(w.reservation(dated)).To(BeZero())
	w.Expect(w.reservation(kept)).To(BeZero())
	w.Expect(w.reservationsLeft()).To(Equal([]string{"kept"}))
	w.Expect(w.reservation(dated)).To(BeZero())
}

func TestAReservationThatGoesOnStays(t *testing.T) {
	w := newWorld(t)
	dr := &batchv1alpha1.DirectReservation{}
	dr.Namespace, dr.Name, dr.Spec.TTLSecondsAfterFinished = w.ns, "waiting", ptr.To[int32](0)
	w.Expect(w.api.Create(w.ctx, dr)).To(Succeed())
	w.Expect(w.reservation(dr)).To(BeZero())
	w.Expect(w.reservationsLeft()).To(Equal([]string{"waiting"}))
}

func TestAReservationThatSomebodyChangesOrReplacesIsLookedAtAnew(t *testing.T) {
	for name, meddle := range map[string]func(*world, *batchv1alpha1.DirectReservation){
		"its time to live is taken away": func(w *world, dr *batchv1alpha1.DirectReservation) {
			dr.Spec.TTLSecondsAfterFinished = nil
			w.Expect(w.api.Update(w.ctx, dr)).To(Succeed())
		},
		"a namesake takes its place": func(w *world, dr *batchv1alpha1.DirectReservation) {
			w.Expect(w.api.Delete(w.ctx, dr)).To(Succeed())
			w.reserve("dated", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dr := w.reserve("dated", ptr.To[int32](0))
			w.onDelete = func(client.Object) error {
				meddle(w, dr)
				return nil
			}
			result := w.reservation(dr)
			w.Expect(result.RequeueAfter).To(Equal(again))
			w.Expect(result.Priority).To(HaveValue(BeZero()))
			w.onDelete = nil
			w.Expect(w.reservation(dr)).To(BeZero())
			w.Expect(w.reservationsLeft()).To(Equal([]string{"dated"}))
		})
	}
}
