// SPDX-License-Identifier: Apache-2.0

package jobqueue

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/run"
)

// nextOf writes what a queue tells of those that wait as "name Reason +seconds", the seconds being those of the estimate from
// noon.
func nextOf(s batchv1alpha1.JobQueueStatus) []string {
	out := []string{}
	for _, w := range s.Next {
		line := w.Name + " " + w.Reason
		if w.EstimatedStart != nil {
			line += fmt.Sprintf(" +%d", int(w.EstimatedStart.Sub(noon)/time.Second))
		}
		out = append(out, line)
	}
	return out
}

// took is a run that ended a while ago after so many seconds.
func took(name string, seconds int) *batchv1alpha1.JobRun {
	return aRun(name, func(r *batchv1alpha1.JobRun) {
		start := noon.Add(-time.Hour)
		run.Claim{Incarnation: &batchv1alpha1.Incarnation{ID: "me", Epoch: mine}, JobName: name}.Apply(r, start)
		run.Finish(r, batchv1alpha1.JobRunCompleted, batchv1alpha1.ReasonSucceeded, "done", true, start.Add(time.Duration(seconds)*time.Second))
	})
}

func TestAQueueTellsWhoIsNextWhyAndAboutWhen(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), took("x", 100), took("y", 100), took("z", 100), aRun("a"), aRun("b"), aRun("c", priority(1)), aRun("d", notBefore(noon.Add(time.Hour))))
	b.sync().settle()
	g.Expect(b.running()).To(Equal([]string{"c"}))
	b.clock.SetTime(noon.Add(2 * time.Second))
	b.sync().settle()
	g.Expect(nextOf(b.shown())).To(Equal([]string{"a LimitReached +100", "b LimitReached +200", "d BackOff +3600"}))
	g.Expect(b.shown().Next[0].Message).To(ContainSubstring("no slot is free"))
	g.Expect(b.shown().Next[0].Kind).To(Equal("JobRun"))
}

func TestNothingIsEstimatedByTooLittle(t *testing.T) {
	b := begin(t, aQueue(1), took("x", 100), took("y", 100), aRun("a"), aRun("b"))
	b.sync().settle()
	b.clock.SetTime(noon.Add(2 * time.Second))
	b.settle()
	NewWithT(t).Expect(nextOf(b.shown())).To(Equal([]string{"b LimitReached"}))
}

func TestAQueueTellsOfTheFirstTenOnly(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(0))
	for i := range 25 {
		g.Expect(b.api.Create(t.Context(), aRun(fmt.Sprintf("n%02d", i)))).To(Succeed())
	}
	b.sync().pass()
	g.Expect(nextOf(b.shown())).To(HaveLen(10))
	g.Expect(nextOf(b.shown())[9]).To(Equal("n09 LimitReached"))
	g.Expect(b.shown().Queued).To(BeEquivalentTo(25))
}

func TestWhoIsNextIsForgottenWhenNobodyWaits(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(0), aReservation("shell"))
	b.sync().pass()
	g.Expect(nextOf(b.shown())).To(Equal([]string{"shell LimitReached"}))
	d := b.shell("shell")
	g.Expect(b.api.Delete(t.Context(), d)).To(Succeed())
	b.d.observeReservationGone(d)
	g.Expect(b.pass().RequeueAfter).To(Equal(time.Second), "a moment after the last write")
	b.clock.SetTime(noon.Add(time.Second))
	b.pass()
	g.Expect(b.shown().Next).To(BeEmpty())
}

func TestAQueueIsNotWrittenSinceAnEstimateIsALittleOff(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), took("x", 1000), took("y", 1000), took("z", 1000), aRun("a"), aRun("b"))
	b.sync().settle()
	b.clock.SetTime(noon.Add(2 * time.Second))
	b.settle()
	g.Expect(nextOf(b.shown())).To(Equal([]string{"b LimitReached +1000"}))
	writes := b.times("status main")
	for i, seconds := range []int{1010, 1020, 1100} { // the median moves from 1000 to 1010
		g.Expect(b.api.Create(t.Context(), took(fmt.Sprint("more", i), seconds))).To(Succeed())
		b.clock.SetTime(noon.Add(time.Duration(10+10*i) * time.Second))
		b.sync().pass()
	}
	g.Expect(b.times("status main")).To(Equal(writes))
	for i := range 9 {
		g.Expect(b.api.Create(t.Context(), took(fmt.Sprint("slow", i), 3000))).To(Succeed())
	}
	b.clock.SetTime(noon.Add(time.Minute))
	result := b.sync().pass()
	g.Expect(b.times("status main")).To(Equal(writes + 1))
	g.Expect(nextOf(b.shown())).To(Equal([]string{"b LimitReached +3000"}))
	g.Expect(result.RequeueAfter).To(Equal(2940*time.Second), "it looks again when the estimate should have come true")
}

func TestAnEstimateThatHasNotComeTrueIsMadeAnewAndThenLeftOut(t *testing.T) {
	g := NewWithT(t)
	b := begin(t, aQueue(1), took("x", 100), took("y", 100), took("z", 500), aRun("a"), aRun("b"))
	b.sync().settle()
	for _, step := range []struct {
		after int
		want  string
	}{{2, "b LimitReached +100"}, {101, "b LimitReached +500"}, {501, "b LimitReached"}} {
		b.clock.SetTime(noon.Add(time.Duration(step.after) * time.Second))
		b.settle()
		g.Expect(nextOf(b.shown())).To(Equal([]string{step.want}))
	}
}

func TestWhenAnEstimateIsWorthTelling(t *testing.T) {
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
	}
	of := func(estimate *metav1.Time, with ...func(*batchv1alpha1.WaitingEntry)) []batchv1alpha1.WaitingEntry {
		w := batchv1alpha1.WaitingEntry{Kind: "JobRun", Name: "a", Reason: "LimitReached", Message: "m", EstimatedStart: estimate}
		for _, f := range with {
			f(&w)
		}
		return []batchv1alpha1.WaitingEntry{w}
	}
	for name, c := range map[string]struct {
		shown, found []batchv1alpha1.WaitingEntry
		told         bool
	}{
		"the same":                  {of(at(100)), of(at(100)), false},
		"a little later":            {of(at(100)), of(at(130)), false},
		"later":                     {of(at(100)), of(at(131)), true},
		"a fifth of an hour later":  {of(at(3000)), of(at(3600)), false},
		"more than a fifth later":   {of(at(3000)), of(at(3800)), true},
		"sooner":                    {of(at(3800)), of(at(3000)), true},
		"known now":                 {of(nil), of(at(100)), true},
		"not known any more":        {of(at(100)), of(nil), true},
		"never known":               {of(nil), of(nil), false},
		"for another reason":        {of(nil), of(nil, func(w *batchv1alpha1.WaitingEntry) { w.Reason = "BackOff" }), true},
		"for the same, told anew":   {of(nil), of(nil, func(w *batchv1alpha1.WaitingEntry) { w.Message = "n" }), true},
		"of another":                {of(nil), of(nil, func(w *batchv1alpha1.WaitingEntry) { w.Name = "b" }), true},
		"of another kind":           {of(nil), of(nil, func(w *batchv1alpha1.WaitingEntry) { w.Kind = "DirectReservation" }), true},
		"of nobody any more":        {of(nil), nil, true},
		"of somebody for the first": {nil, of(nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			got := worthTelling(c.shown, c.found, noon)
			want := c.shown
			if c.told {
				want = c.found
			}
			NewWithT(t).Expect(got).To(Equal(want))
		})
	}
}

func TestAnEventTellsOnceThatARunHasGotItsSlot(t *testing.T) {
	for name, answer := range map[string]func(*bench){
		"whose claim was answered":                             func(*bench) {},
		"whose claim was carried out without an answer":        func(b *bench) { b.lose("status a", true) },
		"whose claim was lost, and that was claimed once more": func(b *bench) { b.lose("status a", false) },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := begin(t, aQueue(1), aRun("a"), aRun("b"))
			answer(b)
			b.sync().settle()
			b.clock.SetTime(noon.Add(time.Minute))
			b.sync().settle()
			g.Expect(b.told).To(Equal([]string{"a Running: Normal Started Claim: it has a slot of JobQueue main, and Job a-job is created"}))
		})
	}
}
