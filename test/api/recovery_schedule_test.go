// SPDX-License-Identifier: Apache-2.0

package api

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// The rows about schedules of the table in design section 6.

// schedule builds a ScheduledJob that calls the URL.
func (w *world) schedule(name, url string, change ...func(*batchv1alpha1.ScheduledJob)) *batchv1alpha1.ScheduledJob {
	sj := &batchv1alpha1.ScheduledJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}}
	sj.Spec.RunTemplate = &batchv1alpha1.JobRunTemplateSpec{Work: &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: url}}}
	for _, c := range change {
		c(sj)
	}
	return sj
}

func (w *world) readSchedule(name string) *batchv1alpha1.ScheduledJob {
	w.t.Helper()
	sj := &batchv1alpha1.ScheduledJob{}
	w.Expect(w.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, sj)).To(Succeed())
	return sj
}

// ticks returns the times of the runs of a ScheduledJob that completed, in order.
func (w *world) ticks(name string) []time.Time {
	w.t.Helper()
	runs := &batchv1alpha1.JobRunList{}
	w.Expect(w.List(w.ctx, runs, client.InNamespace(w.ns), client.MatchingFields{"spec.scheduledJobRef.name": name})).To(Succeed())
	var ticks []time.Time
	for _, r := range runs.Items {
		if r.Status.Phase == batchv1alpha1.JobRunCompleted {
			ticks = append(ticks, r.Spec.ScheduledTime.UTC())
		}
	}
	return ticks
}

func TestAOneTimeSchedulePastDueFiresAtOnceExactlyOnce(t *testing.T) {
	at := time.Now().Add(-10 * time.Second).Truncate(time.Second)
	due := func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.RunAt = ptr.To(metav1.NewTime(at)) }
	gone := func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.TTLSecondsAfterFired = ptr.To[int32](0) }

	t.Run("it stays", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		w.create(w.schedule("once", s.URL, due))
		m := w.start()
		w.Eventually(func() []time.Time { return w.ticks("once") }).Should(Equal([]time.Time{at.UTC()}))
		w.Expect(w.readSchedule("once").Status.FiredRunAt.Time).To(BeTemporally("==", at))
		w.idempotent(m)
		w.Expect(s.log()).To(HaveLen(1))
	})
	t.Run("it goes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		sj := w.schedule("once", s.URL, due, gone)
		w.create(sj)
		m := w.start()
		w.Eventually(func() bool { return apierrors.IsNotFound(w.Get(w.ctx, client.ObjectKeyFromObject(sj), sj)) }).Should(BeTrue())
		w.Eventually(func() []time.Time { return w.ticks("once") }).Should(Equal([]time.Time{at.UTC()}))
		w.idempotent(m)
		w.Expect(s.log()).To(HaveLen(1))
	})
	t.Run("the crash came between the run and the record of the fire", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := newServer(t, nil)
		sj := w.schedule("once", s.URL, due)
		w.create(sj)
		made := w.httpRun(schedule.RunName(sj.Name, at), s.URL, func(r *batchv1alpha1.JobRun) {
			r.Spec.ScheduledJobRef = &batchv1alpha1.ObjectName{Name: sj.Name}
			r.Spec.ScheduledTime = sj.Spec.RunAt
			r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(sj, batchv1alpha1.GroupVersion.WithKind("ScheduledJob"))}
		})
		w.create(made)
		m := w.start()
		w.Expect(w.eventually(made.Name, batchv1alpha1.JobRunCompleted).UID).To(Equal(made.UID))
		w.Expect(w.readSchedule("once").Status.FiredRunAt.Time).To(BeTemporally("==", at))
		w.idempotent(m)
		w.Expect(s.log()).To(HaveLen(1))
	})
}

func TestARecurringSchedulePastDueFiresAsItsPolicySays(t *testing.T) {
	year := time.Now().UTC().Year()
	newYear := func(ago int) time.Time { return time.Date(year-ago, time.January, 1, 0, 0, 0, 0, time.UTC) }
	for policy, c := range map[batchv1alpha1.MissedRunPolicy]struct {
		fires  []time.Time
		missed int64
	}{
		batchv1alpha1.MissedRunOnce: {fires: []time.Time{newYear(0)}, missed: 2},
		batchv1alpha1.MissedRunAll:  {fires: []time.Time{newYear(2), newYear(1), newYear(0)}},
		batchv1alpha1.MissedSkip:    {missed: 3},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := newServer(t, nil)
			sj := w.schedule("yearly", s.URL, func(sj *batchv1alpha1.ScheduledJob) {
				sj.Spec.Schedule = "@yearly"
				sj.Spec.MissedRunPolicy = policy
			})
			w.create(sj)
			sj.Status.ObservedSchedule = schedule.Rule{Schedule: sj.Spec.Schedule}.String()
			sj.Status.HandledThrough = ptr.To(metav1.NewTime(newYear(3)))
			w.Expect(w.Status().Update(w.ctx, sj)).To(Succeed())

			m := w.start()
			w.Eventually(func() int64 { return w.readSchedule("yearly").Status.MissedRuns }).Should(Equal(c.missed))
			w.Eventually(func() []time.Time { return w.ticks("yearly") }).Should(Equal(c.fires), func() string { return w.story() })
			status := w.readSchedule("yearly").Status
			w.Expect(status.HandledThrough.Time).To(BeTemporally("==", newYear(0)))
			w.Expect(strings.HasPrefix(status.NextScheduleTime, newYear(-1).Format(time.DateOnly))).To(BeTrue(), status.NextScheduleTime)
			w.idempotent(m)
			w.Expect(s.log()).To(HaveLen(len(c.fires)))
		})
	}
}
