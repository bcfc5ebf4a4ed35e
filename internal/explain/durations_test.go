// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
)

// lasted is a run of the type "a" that ended after noon and had lasted so many seconds.
func lasted(name string, ended, seconds int, reason string) *batchv1alpha1.JobRun {
	r := aRun(name, ofType("a"))
	r.Status.Phase, r.Status.Reason = batchv1alpha1.JobRunCompleted, reason
	r.Status.StartedAt, r.Status.FinishedAt = at(ended-seconds), at(ended)
	return r
}

func TestWhatHasEndedByItselfTellsHowLongTheNextOneLasts(t *testing.T) {
	g := NewWithT(t)
	var d Durations
	a := admission.Entry{Record: admission.Record{Kind: admission.JobRun}, Type: "a"}
	g.Expect(d.Lasts(a)).To(BeZero(), "nothing is known")
	for i, seconds := range []int{10, 30} {
		d.Run(lasted(fmt.Sprint("n", i), 100*i, seconds, batchv1alpha1.ReasonSucceeded))
	}
	for i, reason := range []string{batchv1alpha1.ReasonCancelled, batchv1alpha1.ReasonCrashRecovery, batchv1alpha1.ReasonManagerShutdown, batchv1alpha1.ReasonSuperseded} {
		d.Run(lasted(fmt.Sprint("cut", i), 100*i, 1, reason))
	}
	d.Run(lasted("n1", 100, 30, batchv1alpha1.ReasonSucceeded)) // told again
	g.Expect(d.Lasts(a)).To(BeZero(), "two tell nothing")
	d.Run(lasted("n2", 500, 70, batchv1alpha1.ReasonWorkFailed))
	g.Expect(d.Lasts(a)).To(Equal(30 * time.Second))
	g.Expect(d.Lasts(admission.Entry{Record: admission.Record{Kind: admission.JobRun}, Type: "b"})).To(BeZero(), "of another type")
	g.Expect(d.Lasts(admission.Entry{Record: admission.Record{Kind: admission.DirectReservation}, Type: "a"})).To(BeZero(), "of another kind")
	g.Expect(d.Left(a, 5*time.Second)).To(Equal(25 * time.Second))
	g.Expect(d.Left(a, 40*time.Second)).To(Equal(30*time.Second), "only one lasted longer")
	g.Expect(d.Left(a, 70*time.Second)).To(BeZero(), "none lasted longer")
}

func TestAReservationThatWasReleasedTellsToo(t *testing.T) {
	g := NewWithT(t)
	var d Durations
	for i := range 3 {
		dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}}
		dr.Status.Phase, dr.Status.GrantedAt, dr.Status.FinishedAt = batchv1alpha1.ReservationReleased, at(i), at(i+20)
		d.Reservation(dr)
		dr = dr.DeepCopy()
		dr.UID, dr.Status.Phase, dr.Status.FinishedAt = types.UID(fmt.Sprint("expired", i)), batchv1alpha1.ReservationExpired, at(i+300)
		d.Reservation(dr)
	}
	g.Expect(d.Lasts(admission.Entry{Record: admission.Record{Kind: admission.DirectReservation}})).To(Equal(20 * time.Second))
}

func TestOnlyTheLatestAreRememberedInWhateverOrderTheyAreTold(t *testing.T) {
	g := NewWithT(t)
	var d Durations
	for _, i := range []int{0, 999, 1} {
		for n := range 1000 {
			ended := (n*7919 + i) % 1000 // every time of day, in no order
			seconds := 10
			if ended >= 1000-samplesKept {
				seconds = 60
			}
			d.Run(lasted(fmt.Sprint("n", ended), 100*ended, seconds, batchv1alpha1.ReasonSucceeded))
		}
	}
	g.Expect(d.of[class{admission.JobRun, "a"}]).To(HaveLen(samplesKept))
	g.Expect(d.Lasts(admission.Entry{Record: admission.Record{Kind: admission.JobRun}, Type: "a"})).To(Equal(time.Minute))
	for n := range 1000 {
		r := lasted(fmt.Sprint("type", n), n, 5, batchv1alpha1.ReasonSucceeded)
		r.Spec.Type = fmt.Sprint("t", n)
		d.Run(r)
	}
	g.Expect(len(d.of)).To(Equal(classesKept))
}
