// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestAChainIsRemovedWhenItsTimeToLiveIsOver(t *testing.T) {
	const hour = 3600
	resolved := func(r *batchv1alpha1.JobRun) {
		r.Spec.Work = nil
		r.Status.ResolvedSpec = &batchv1alpha1.ResolvedSpec{}
		r.Status.ResolvedSpec.TTLSecondsAfterFinished = ptr.To[int32](hour)
	}
	for name, c := range map[string]struct {
		runs []batchv1alpha1.JobRun
		at   time.Duration // from noon; negative: never
	}{
		"kept if it names none":                           {runs(root("a", 48*time.Hour)), -1},
		"removed once it is over":                         {runs(root("a", 90*time.Minute, ttl(hour))), 0},
		"looked at when it will be":                       {runs(root("a", 20*time.Minute, ttl(hour))), 40 * time.Minute},
		"counted from the end of the chain":               {runs(root("a", 3*time.Hour, ttl(hour)), retryOf("a", 1, 30*time.Minute)), 30 * time.Minute},
		"what the root was resolved to counts":            {runs(root("a", 20*time.Minute, resolved)), 40 * time.Minute},
		"the root's own value counts before that":         {runs(root("a", 20*time.Minute, resolved, ttl(2*hour))), 100 * time.Minute},
		"a retry's value does not count":                  {runs(root("a", 3*time.Hour), retryOf("a", 1, 2*time.Hour, ttl(0))), -1},
		"without the root the earliest run's counts":      {runs(retryOf("a", 1, 3*time.Hour, ttl(hour)), retryOf("a", 2, 2*time.Hour)), 0},
		"a run that was cancelled before it was resolved": {runs(root("a", time.Hour, func(r *batchv1alpha1.JobRun) { r.Spec.Work = nil }, ttl(0))), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := ByTTL(one(c.runs...), nil, noon)
			switch {
			case c.at < 0:
				g.Expect(p).To(Equal(Plan{}))
			case c.at == 0:
				g.Expect(names(p.Remove)).To(Equal([]string{"a"}))
			default:
				g.Expect(p.Remove).To(BeEmpty())
				g.Expect(p.Look).To(BeTemporally("==", noon.Add(c.at)))
			}
		})
	}
}

func TestNothingFollowsFromAChainThatIsGone(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ByTTL(Chain{}, nil, noon)).To(Equal(Plan{}))
	g.Expect(Chain{}.Order()).To(BeEmpty())
}

func TestTheTimeToLiveOfAMemberCountsOnceItsGroupHasEnded(t *testing.T) {
	for _, phase := range []batchv1alpha1.JobGroupPhase{
		"", batchv1alpha1.JobGroupPending, batchv1alpha1.JobGroupRunning, batchv1alpha1.JobGroupCancelling,
		batchv1alpha1.JobGroupCompleted, batchv1alpha1.JobGroupFailed, batchv1alpha1.JobGroupSkipped, batchv1alpha1.JobGroupCancelled,
	} {
		g := NewWithT(t)
		of := group("g", phase, 0)
		p := ByTTL(one(root("a", time.Hour, ttl(60), ownedBy(of.Object))), of.Object, noon)
		if phase.Terminal() {
			g.Expect(names(p.Remove)).To(Equal([]string{"a"}), string(phase))
		} else {
			g.Expect(p).To(Equal(Plan{}), string(phase))
		}
	}
}

func TestAGroupIsRemovedWhenItsTimeToLiveIsOver(t *testing.T) {
	const hour = 3600
	for name, c := range map[string]struct {
		ttl   *int32
		phase batchv1alpha1.JobGroupPhase
		ended time.Duration
		at    time.Duration // from noon; negative: never
	}{
		"kept if it names none":               {nil, batchv1alpha1.JobGroupCompleted, 48 * time.Hour, -1},
		"removed once it is over":             {ptr.To[int32](hour), batchv1alpha1.JobGroupCompleted, 90 * time.Minute, 0},
		"whatever its end was":                {ptr.To[int32](hour), batchv1alpha1.JobGroupFailed, 90 * time.Minute, 0},
		"looked at when it will be":           {ptr.To[int32](hour), batchv1alpha1.JobGroupSkipped, 20 * time.Minute, 40 * time.Minute},
		"kept while it goes on":               {ptr.To[int32](0), batchv1alpha1.JobGroupRunning, 48 * time.Hour, -1},
		"kept for ten minutes in any case":    {ptr.To[int32](0), batchv1alpha1.JobGroupCancelled, 4 * time.Minute, 6 * time.Minute},
		"kept while it waits for all to stop": {ptr.To[int32](0), batchv1alpha1.JobGroupCancelling, 48 * time.Hour, -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			of := group("g", c.phase, c.ended, root("a", c.ended))
			of.Object.Spec.TTLSecondsAfterFinished = c.ttl
			p := GroupByTTL(of, noon)
			switch {
			case c.at < 0:
				g.Expect(p).To(Equal(Plan{}))
			case c.at == 0:
				g.Expect(names(p.Remove)).To(Equal([]string{"g"}))
				g.Expect(p.Look).To(BeZero())
			default:
				g.Expect(p.Remove).To(BeEmpty())
				g.Expect(p.Look).To(BeTemporally("==", noon.Add(c.at)))
			}
		})
	}
}

func TestAReservationIsDeletedWhenItsTimeToLiveIsOver(t *testing.T) {
	ended := ptr.To(ago(time.Hour))
	for name, c := range map[string]struct {
		ttl      *int32
		phase    batchv1alpha1.DirectReservationPhase
		finished *metav1.Time
		want     time.Duration // before noon; negative: never
	}{
		"counted from its release":              {ptr.To[int32](60), batchv1alpha1.ReservationReleased, ended, 59 * time.Minute},
		"counted from its expiry":               {ptr.To[int32](0), batchv1alpha1.ReservationExpired, ended, time.Hour},
		"counted from its creation if need be":  {ptr.To[int32](0), batchv1alpha1.ReservationExpired, nil, 2 * time.Hour},
		"kept if it names none":                 {nil, batchv1alpha1.ReservationReleased, ended, -1},
		"kept while it waits":                   {ptr.To[int32](0), batchv1alpha1.ReservationPending, nil, -1},
		"kept while the next slot is for it":    {ptr.To[int32](0), batchv1alpha1.ReservationActive, nil, -1},
		"kept while it holds a slot":            {ptr.To[int32](0), batchv1alpha1.ReservationGranted, nil, -1},
		"kept while nothing is known of it yet": {ptr.To[int32](0), "", nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dr := &batchv1alpha1.DirectReservation{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(2 * time.Hour)}}
			dr.Spec.TTLSecondsAfterFinished = c.ttl
			dr.Status.Phase, dr.Status.FinishedAt = c.phase, c.finished
			at, ends := ReservationExpiry(dr)
			g.Expect(ends).To(Equal(c.want >= 0))
			if ends {
				g.Expect(at).To(BeTemporally("==", noon.Add(-c.want)))
			}
		})
	}
}
