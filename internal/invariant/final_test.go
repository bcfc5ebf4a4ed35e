// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestInvariant10(t *testing.T) {
	ends := func(change runChange) func(*story) {
		return func(s *story) {
			r := s.run("a")
			s.whole(r, batchv1alpha1.JobRunSkipped)
			s.change(r, change)
		}
	}
	cases{
		"a phase that is final does not change": {broken: 1, tell: ends(phase(batchv1alpha1.JobRunCompleted))},
		"nor does its reason":                   {broken: 1, tell: ends(because("Other"))},
		"nor its result":                        {broken: 1, tell: ends(func(r *batchv1alpha1.JobRun) { r.Status.Result = &batchv1alpha1.WorkResult{Body: "late"} })},
		"nor its time":                          {broken: 1, tell: ends(func(r *batchv1alpha1.JobRun) { r.Status.FinishedAt = ptr.To(metav1.NewTime(noon)) })},
		"what else follows from it is written":  {tell: ends(func(r *batchv1alpha1.JobRun) { r.Status.Chain = &batchv1alpha1.ChainStatus{} })},
		"the same time in another zone is no news": {tell: ends(func(r *batchv1alpha1.JobRun) {
			r.Status.FinishedAt = ptr.To(metav1.NewTime(r.Status.FinishedAt.In(time.FixedZone("x", 3600))))
		})},
		"a reservation that is over stays so": {broken: 1, tell: func(s *story) {
			d := s.reserve("a")
			s.over(d, batchv1alpha1.ReservationExpired)
			d.Status.Phase = batchv1alpha1.ReservationReleased
			s.put(d)
		}},
		"a group that has ended stays so": {broken: 1, tell: func(s *story) {
			gr, m := s.group("g", "uid-g")
			s.whole(m, batchv1alpha1.JobRunCompleted)
			s.groupOver(gr, batchv1alpha1.JobGroupFailed)
			s.groupOver(gr, batchv1alpha1.JobGroupCompleted)
		}},
	}.test(t, 10)
}
