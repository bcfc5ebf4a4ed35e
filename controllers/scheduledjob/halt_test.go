// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func TestWhatATickReplacesIsAskedOnceToEndAsCancelled(t *testing.T) {
	seven := clockTime("07:00:00")
	asRun := func(details ...detail) client.Object { r := ticked(seven, details...); return &r }
	asGroup := func(phase batchv1alpha1.JobGroupPhase, changes ...func(*batchv1alpha1.JobGroup)) client.Object {
		g := grouped(seven, phase)
		for _, c := range changes {
			c(&g)
		}
		return &g
	}
	earlier := &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonReplaced, Message: "by an earlier tick"}
	for name, c := range map[string]struct {
		object client.Object
		asked  bool
	}{
		"a run that waits":                {asRun(), true},
		"a run at work":                   {asRun(running), true},
		"a run that is being stopped":     {asRun(running, func(r *batchv1alpha1.JobRun) { r.Status.Phase = batchv1alpha1.JobRunCancelling }), false},
		"a run that was asked before":     {asRun(running, func(r *batchv1alpha1.JobRun) { r.Status.Halt = earlier }), false},
		"a run that a person cancels":     {asRun(running, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true }), false},
		"a run that has ended":            {asRun(completed), false},
		"a failed run before its retry":   {asRun(inBackOff), false},
		"a failed run that has to stop":   {asRun(inBackOff, holding), false},
		"a group that waits":              {asGroup(groupWaits), true},
		"a group at work":                 {asGroup(groupRuns), true},
		"a group that was asked before":   {asGroup(groupCancels, func(g *batchv1alpha1.JobGroup) { g.Status.Halt = earlier }), false},
		"a group that a person cancels":   {asGroup(groupRuns, func(g *batchv1alpha1.JobGroup) { g.Spec.Cancel = true }), false},
		"a group that has ended":          {asGroup(groupCompleted), false},
		"what is neither a run nor group": {hourly(), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := c.object.DeepCopyObject()
			next := halted(c.object, "replaced by the tick of 2026-05-01T08:00:00Z")
			g.Expect(next != nil).To(Equal(c.asked))
			g.Expect(c.object).To(Equal(before), "the cache is left alone")
			if !c.asked {
				return
			}
			want := &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonReplaced, Message: "replaced by the tick of 2026-05-01T08:00:00Z"}
			g.Expect(next).To(HaveField("Status.Halt", Equal(want)))
			g.Expect(halted(next, "again")).To(BeNil())
		})
	}
}

func TestATickReplacesAllThatIsUnsettledAndWhatIsRecordedOnlyNow(t *testing.T) {
	seven, eight, nine := clockTime("07:00:00"), clockTime("08:00:00"), clockTime("09:00:00")
	for name, c := range map[string]struct {
		sj       *batchv1alpha1.ScheduledJob
		runs     []batchv1alpha1.JobRun
		replaced []string
	}{
		"a chain with its retry": {
			hourly(replace, named(ticked(seven))), all(ticked(seven, inBackOff), retryOf(ticked(seven))), []string{"sj-1777618800", "sj-1777618800-r1"},
		},
		"a manual run":               {hourly(replace), all(manual("m", running)), []string{"m"}},
		"the retry of a deleted run": {hourly(replace, named(ticked(seven))), all(retryOf(ticked(seven))), []string{"sj-1777618800-r1"}},
		"what a crash left unrecorded, once it is on record": {hourly(replace), all(ticked(eight)), []string{"sj-1777622400"}},
		"nothing where overlap is allowed":                   {hourly(named(ticked(seven))), all(ticked(seven, running)), nil},
		"nothing where overlap is forbidden":                 {hourly(forbid, named(ticked(seven))), all(ticked(seven, running)), nil},
		"nothing that has ended":                             {hourly(replace, named(ticked(seven))), all(ticked(seven, completed)), nil},
		"not what waits for its own tick to be decided anew": {
			hourly(replace, named(ticked(seven))), all(ticked(seven, running), ticked(eight)), []string{"sj-1777618800"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var names []string
			for _, p := range decide(c.sj, products(c.runs, nil), nine).replaced() {
				for _, part := range p.parts {
					names = append(names, part.GetName())
				}
			}
			g.Expect(names).To(Equal(c.replaced))
		})
	}
}

func TestATickThatWaitsForWhatItReplacesIsOnRecordUntilItFires(t *testing.T) {
	g := NewWithT(t)
	seven, eight := clockTime("07:00:00"), clockTime("08:00:00")
	skip := func(sj *batchv1alpha1.ScheduledJob) { sj.Spec.MissedRunPolicy = batchv1alpha1.MissedSkip }
	sj := hourly(replace, skip, named(ticked(seven)))
	sj.Status.HandledThrough = at(seven)
	busy := all(ticked(seven, running))
	sj.Status, _ = made(sj, busy, eight)
	g.Expect(sj.Status.ReplacingSince).To(Equal(at(eight)))
	g.Expect(sj.Status.Conditions).To(ConsistOf(HaveField("Message", ContainSubstring("waits until 1 earlier runs are cancelled"))))
	status, fire := made(sj, busy, eight.Add(30*time.Minute))
	g.Expect(fire).To(BeEmpty())
	g.Expect(status).To(Equal(sj.Status), "nothing is written meanwhile")

	stopped := all(ticked(seven, ended(batchv1alpha1.JobRunCancelled)))
	late := eight.Add(31 * time.Minute)
	p := decide(sj, products(stopped, nil), late)
	g.Expect(p.status(sj, fired{failure: errNamesTaken}, late).ReplacingSince).To(Equal(at(eight)), "it is on time still when it cannot be created at once")
	status, fire = made(sj, stopped, late)
	g.Expect(shown(fire)).To(Equal([]string{"08:00:00"}))
	g.Expect(status.ReplacingSince).To(BeNil())
	g.Expect(namesOf(status.Active)).To(Equal([]string{"08:00:00"}))
	g.Expect(status.MissedRuns).To(BeZero())
}
