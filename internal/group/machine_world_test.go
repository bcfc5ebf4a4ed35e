// SPDX-License-Identifier: Apache-2.0

package group

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// What goes on around the machine: queues, the run controller and people.

func (m *machine) pick(t *rapid.T, which func(*batchv1alpha1.JobRun) bool) *batchv1alpha1.JobRun {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(m.runs)) {
		if which(m.runs[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return m.runs[rapid.SampledFrom(names).Draw(t, "run")]
}

// begin admits a run that its creator names, while nothing else of its chain holds a slot.
func (m *machine) begin(t *rapid.T) {
	r := m.pick(t, func(r *batchv1alpha1.JobRun) bool {
		if r.Status.Phase != batchv1alpha1.JobRunQueued || run.Halted(r) != nil || run.Template(r) == nil {
			return false
		}
		for _, o := range m.runs {
			if run.ChainUID(o) == run.ChainUID(r) && run.HoldsSlot(o) {
				return false
			}
		}
		return !run.IsRoot(r) || m.ask(r).Answer == creator.Named
	})
	if r == nil {
		return
	}
	m.change(r, func(r *batchv1alpha1.JobRun) { run.Claim{}.Apply(r, m.now) })
	if !run.IsRoot(r) {
		return
	}
	member := r.Spec.GroupRef.Member
	if other, twice := m.executed[member]; twice {
		t.Fatalf("member %s is executed as %s and %s", member, other, r.UID)
	}
	m.executed[member] = r.UID
}

func (m *machine) ask(r *batchv1alpha1.JobRun) creator.Verdict {
	return creator.OfMember(m.group, creator.Made{UID: r.UID, At: m.now}, r.Spec.GroupRef.Member)
}

func (m *machine) finish(r *batchv1alpha1.JobRun, p batchv1alpha1.JobRunPhase, reason string, stopped bool) {
	m.change(r, func(r *batchv1alpha1.JobRun) {
		run.Finish(r, p, reason, "", stopped, m.now)
		retry.Conclude(r, m.now)
	})
}

func (m *machine) end(t *rapid.T) {
	if r := m.pick(t, func(r *batchv1alpha1.JobRun) bool { return r.Status.Phase == batchv1alpha1.JobRunRunning }); r != nil {
		p := rapid.SampledFrom([]batchv1alpha1.JobRunPhase{"Completed", "Failed", "Failed", "Skipped"}).Draw(t, "phase")
		m.finish(r, p, "ByTheWork", rapid.Bool().Draw(t, "stopped"))
	}
}

func (m *machine) free(t *rapid.T) {
	if r := m.pick(t, func(r *batchv1alpha1.JobRun) bool { return r.Status.Phase.Terminal() && run.HoldsSlot(r) }); r != nil {
		m.change(r, run.Free)
	}
}

func (m *machine) retry(t *rapid.T) {
	if r := m.pick(t, func(r *batchv1alpha1.JobRun) bool { return retry.Decide(r).Due }); r != nil {
		m.succeed(r)
	}
}

func (m *machine) succeed(r *batchv1alpha1.JobRun) {
	child := retry.Child(r, m.runs[run.Chain(r).RootName], 0)
	if _, taken := m.runs[child.Name]; taken {
		return
	}
	m.add(child)
	m.change(r, func(r *batchv1alpha1.JobRun) {
		r.Status.Retry = &batchv1alpha1.RetryRecord{Name: child.Name, UID: child.UID}
	})
}

// tell has the roots tell how their chains stand.
func (m *machine) tell() {
	for _, name := range slices.Sorted(maps.Keys(m.runs)) {
		r := m.runs[name]
		if !run.IsRoot(r) || !r.Status.Phase.Terminal() {
			continue
		}
		chain := slices.DeleteFunc(m.present().runs, func(o batchv1alpha1.JobRun) bool { return run.ChainUID(&o) != r.UID })
		next := r.DeepCopy()
		retry.Tell(next, chain, m.now)
		if !equality.Semantic.DeepEqual(next.Status, r.Status) {
			m.change(r, func(r *batchv1alpha1.JobRun) { r.Status = next.Status })
		}
	}
}

// answer sets aside what the group refuses.
func (m *machine) answer() {
	for _, name := range slices.Sorted(maps.Keys(m.runs)) {
		r := m.runs[name]
		if r.Status.Phase == batchv1alpha1.JobRunQueued && run.IsRoot(r) && m.ask(r).Answer == creator.Refused {
			m.finish(r, batchv1alpha1.JobRunSkipped, batchv1alpha1.ReasonSuperseded, true)
		}
	}
}

// obey carries out what runs were asked.
func (m *machine) obey() {
	for _, name := range slices.Sorted(maps.Keys(m.runs)) {
		r := m.runs[name]
		halt := run.Halted(r)
		if halt == nil || r.Status.Phase.Terminal() {
			continue
		}
		switch {
		case r.Status.Phase == batchv1alpha1.JobRunQueued:
			m.finish(r, halt.Phase, halt.Reason, true)
		case r.Status.Phase == batchv1alpha1.JobRunRunning && halt.Phase == batchv1alpha1.JobRunCancelled:
			m.change(r, func(r *batchv1alpha1.JobRun) { run.BeginCancel(r, m.now) })
		case r.Status.Phase == batchv1alpha1.JobRunCancelling:
			m.finish(r, batchv1alpha1.JobRunCancelled, halt.Reason, true)
		}
	}
}

// person does what people do.
func (m *machine) person(t *rapid.T) {
	r := m.pick(t, func(*batchv1alpha1.JobRun) bool { return true })
	deed := rapid.SampledFrom([]string{"cancel the group", "replace the group", "cancel", "cancel", "delete", "delete", "retry", "recover"}).Draw(t, "deed")
	switch {
	case deed == "cancel the group":
		m.group.Spec.Cancel = true
		m.edited()
	case deed == "replace the group" && m.group.Status.Halt == nil:
		m.group.Status.Halt = &batchv1alpha1.Halt{Phase: batchv1alpha1.JobRunCancelled, Reason: batchv1alpha1.ReasonReplaced}
		m.edited()
	case r == nil:
	case deed == "cancel":
		m.change(r, func(r *batchv1alpha1.JobRun) { r.Spec.Cancel = true })
	case deed == "delete":
		delete(m.runs, r.Name)
	case deed == "retry" && r.Status.Phase == batchv1alpha1.JobRunFailed && r.Status.Retry == nil && !retry.Decide(r).Due:
		m.byHand[run.ChainUID(r)] = true
		m.succeed(r)
	case deed == "recover" && r.Status.Phase.InProgress():
		m.finish(r, batchv1alpha1.JobRunFailed, batchv1alpha1.ReasonCrashRecovery, false)
	}
}
