// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// listed is a run as the API server has it that was created in a second, as a version.
func listed(second, version int, with ...func(*batchv1alpha1.JobRun)) *batchv1alpha1.JobRun {
	r := &batchv1alpha1.JobRun{}
	r.Name, r.UID = fmt.Sprint("run-", version), types.UID(fmt.Sprint("uid-", version))
	r.ResourceVersion, r.CreationTimestamp = fmt.Sprint(version), metav1.NewTime(at(second))
	r.Status.Phase = batchv1alpha1.JobRunQueued
	for _, f := range with {
		f(r)
	}
	return r
}

func TestRunsAreToldOfInTheOrderInWhichAQueueServesThem(t *testing.T) {
	g := NewWithT(t)
	urgent := func(r *batchv1alpha1.JobRun) { r.Spec.Priority = new(int32(5)) }
	retry := func(r *batchv1alpha1.JobRun) {
		r.Spec.Chain = &batchv1alpha1.Chain{QueuedAt: metav1.NewTime(at(1)), Sequence: 3}
	}
	inOrder := []runtime.Object{listed(9, 20, urgent), listed(1, 2), listed(8, 19, retry), listed(1, 4), listed(2, 10), listed(2, 11), listed(3, 9)}
	for range 20 {
		shuffled := slices.Clone(inOrder)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		InTurn(shuffled)
		g.Expect(shuffled).To(Equal(inOrder))
	}
}

func TestWhateverPartOfAListWasToldNobodyInItComesAfterOneWhoIsYetToBeToldOf(t *testing.T) {
	g := NewWithT(t)
	var list []runtime.Object
	for i := range 30 {
		list = append(list, listed(rand.IntN(4), 100+i, func(r *batchv1alpha1.JobRun) { r.Spec.Priority = new(rand.Int32N(3)) }))
	}
	InTurn(list)
	q := NewQueue()
	for _, o := range list {
		e, err := RunEntry(o.(*batchv1alpha1.JobRun), true, true)
		g.Expect(err).NotTo(HaveOccurred())
		q.Upsert(e)
		d := Decide(q, Limits{Limit: 1}, Book{}, at(60), 1)
		g.Expect(d.Admit).To(HaveLen(1))
		g.Expect(d.Admit[0].Name).To(Equal(list[0].(*batchv1alpha1.JobRun).Name), "the first of the whole list is admitted, however much of it was told")
	}
}

func TestReservationsAreToldOfInTheOrderOfTheirSubmission(t *testing.T) {
	reservation := func(version int) *batchv1alpha1.DirectReservation {
		d := &batchv1alpha1.DirectReservation{}
		d.ResourceVersion, d.CreationTimestamp = fmt.Sprint(version), metav1.NewTime(epoch.Truncate(time.Second))
		return d
	}
	first, second := reservation(8), reservation(9)
	list := []runtime.Object{second, first}
	InTurn(list)
	NewWithT(t).Expect(list).To(Equal([]runtime.Object{first, second}))
}

func TestWhatHasNoPlaceInAQueueIsToldOfAsItWasListed(t *testing.T) {
	g := NewWithT(t)
	pods := []runtime.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	list := slices.Clone(pods)
	InTurn(list)
	g.Expect(list).To(Equal(pods))
	odd, even := listed(1, 2, func(r *batchv1alpha1.JobRun) { r.ResourceVersion = "odd" }), listed(1, 1)
	runs := []runtime.Object{even, odd}
	InTurn(runs)
	g.Expect(runs).To(ConsistOf(odd, even), "left out of its queue, but told of")
}
