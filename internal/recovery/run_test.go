// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"reflect"
	"testing"

	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/epoch"
	"reprise.dev/reprise/internal/executor"
	"reprise.dev/reprise/internal/run"
)

const (
	wasRunning    = "Scheduler crash recovery: run was Running when previous instance manager-1 stopped"
	wasCancelling = "Scheduler crash recovery: run was Cancelling when previous instance manager-1 stopped"
)

// row is one row of the table: what is found, the evidence, and what is done.
type row struct {
	name     string
	run      *batchv1alpha1.JobRun
	evidence executor.Evidence
	policy   batchv1alpha1.RecoveryPolicy
	leave    bool // --cleanup-stale-on-startup=false

	kind     Kind
	phase    batchv1alpha1.JobRunPhase // empty: as found
	reason   string
	message  string
	slotFree bool
	result   bool
}

func checkRows(t *testing.T, rows []row) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			want := Verdict{
				Kind: c.kind, Was: c.run.Status.Phase, Type: "story", Phase: c.phase,
				Reason: c.reason, Message: c.message, SlotFree: c.slotFree,
			}
			if want.Phase == "" {
				want.Phase = want.Was
			}
			if c.result {
				want.Result = &batchv1alpha1.WorkResult{ExitCode: ptr.To[int32](0)}
			}
			untouched := c.run.DeepCopy()
			if got := Decide(c.run, me, c.policy, c.evidence, !c.leave); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if !reflect.DeepEqual(c.run, untouched) {
				t.Error("the run was changed")
			}
		})
	}
}

const (
	failed    = batchv1alpha1.JobRunFailed
	completed = batchv1alpha1.JobRunCompleted
	skipped   = batchv1alpha1.JobRunSkipped
	crash     = batchv1alpha1.ReasonCrashRecovery
	adopt     = batchv1alpha1.RecoveryAdopt
)

func TestARunningOrphanWhoseWorkNeverStartedFailsAndIsRetried(t *testing.T) {
	failsAtOnce := row{kind: Fail, phase: failed, reason: crash, message: wasRunning, slotFree: true}
	byDefault, adopting := failsAtOnce, failsAtOnce
	byDefault.name, byDefault.run, byDefault.evidence = "by default", orphan(), neverStarted
	adopting.name, adopting.run, adopting.evidence, adopting.policy = "there is nothing to adopt", orphan(), neverStarted, adopt
	checkRows(t, []row{byDefault, adopting})
}

func TestARunningOrphanWhoseWorkEndedGetsItsTrueOutcome(t *testing.T) {
	checkRows(t, []row{
		{
			name: "it succeeded", run: orphan(), evidence: ended(completed, "Succeeded", true),
			kind: RecordOutcome, phase: completed, reason: "Succeeded", message: "exit code 0", slotFree: true, result: true,
		},
		{
			name: "it succeeded and its last pod is still ending", run: orphan(), evidence: ended(completed, "Succeeded", false),
			kind: RecordOutcome, phase: completed, reason: "Succeeded", message: "exit code 0", result: true,
		},
		{
			name: "there was nothing to do", run: orphan(), policy: adopt, evidence: ended(skipped, "NothingToDo", true),
			kind: RecordOutcome, phase: skipped, reason: "NothingToDo", message: "exit code 0", slotFree: true, result: true,
		},
		{
			name: "it failed", run: orphan(), evidence: ended(failed, "WorkFailed", true),
			kind: RecordOutcome, phase: failed, reason: "WorkFailed", message: "exit code 0", slotFree: true, result: true,
		},
		{
			name: "it failed and was asked to cancel", run: orphan(cancelAsked), evidence: ended(failed, "WorkFailed", true),
			kind: RecordOutcome, phase: failed, reason: "WorkFailed", message: "exit code 0", slotFree: true, result: true,
		},
		{
			name: "how it ended is not known", run: orphan(), evidence: executor.Evidence{Life: executor.Ended, Stopped: true},
			kind: Fail, phase: failed, reason: crash, message: wasRunning, slotFree: true,
		},
	})
}

func TestARunningOrphanWhoseWorkMayBeAliveFailsAndKeepsItsSlotUntilThatHasStopped(t *testing.T) {
	rows := []row{
		{name: "alive, nothing said", run: orphan(), evidence: working},
		{name: "alive, Fail", run: orphan(), evidence: working, policy: batchv1alpha1.RecoveryFail},
		{name: "unknowable, nothing said", run: orphan(), evidence: unknown},
		{name: "unknowable, Adopt", run: orphan(), evidence: unknown, policy: adopt},
		{name: "HTTP work cannot be adopted", run: orphan(httpWork), evidence: working, policy: adopt},
	}
	for i := range rows {
		rows[i].kind, rows[i].phase, rows[i].reason, rows[i].message = Fail, failed, crash, wasRunning
	}
	checkRows(t, rows)
}

func TestARunningOrphanThatWasAskedToCancelIsNotRetried(t *testing.T) {
	checkRows(t, []row{{
		name: "alive", run: orphan(cancelAsked), evidence: working,
		kind: Fail, phase: failed, reason: crash, message: wasRunning,
	}})
}

func TestARunningOrphanWhoseWorkIsAliveIsAdoptedIfItsPolicySaysSo(t *testing.T) {
	checkRows(t, []row{
		{name: "alive, Adopt", run: orphan(), evidence: working, policy: adopt, kind: Adopt},
		{
			name: "of an earlier Lease", policy: adopt, evidence: working, kind: Adopt,
			run: orphan(claimedIn(epoch.New(at(-60), 9))),
		},
	})
}

func TestACancellingOrphanFailsAndIsNotRetried(t *testing.T) {
	cancelling := orphan(phase(batchv1alpha1.JobRunCancelling), cancelAsked)
	base := row{run: cancelling, kind: Fail, phase: failed, reason: crash, message: wasCancelling}
	with := func(name string, change func(*row)) row { r := base; r.name = name; change(&r); return r }
	checkRows(t, []row{
		with("alive", func(r *row) { r.evidence = working }),
		with("alive, Adopt", func(r *row) { r.evidence, r.policy = working, adopt }),
		with("unknowable", func(r *row) { r.evidence = unknown }),
		with("never started", func(r *row) { r.evidence, r.slotFree = neverStarted, true }),
		with("ended", func(r *row) {
			r.evidence, r.slotFree, r.result = ended(completed, "Succeeded", true), true, true
			r.message = wasCancelling + "; its work had ended: Completed (Succeeded)"
		}),
		with("without a wish to cancel on record", func(r *row) {
			r.run, r.evidence = orphan(phase(batchv1alpha1.JobRunCancelling)), working
		}),
	})
}

func TestARunWithoutIncarnationIsAnOrphanWithoutEvidence(t *testing.T) {
	const message = "Scheduler crash recovery: run was Running when previous instance unknown stopped"
	garbled := func(r *batchv1alpha1.JobRun) { r.Status.Incarnation.Epoch = "yesterday" }
	checkRows(t, []row{
		{name: "never started", run: orphan(noIncarnation), evidence: neverStarted, kind: Fail, phase: failed, reason: crash, message: message, slotFree: true},
		{name: "alive, Adopt", run: orphan(noIncarnation), evidence: working, policy: adopt, kind: Fail, phase: failed, reason: crash, message: message},
		{name: "its epoch cannot be read", run: orphan(garbled), evidence: working, policy: adopt, kind: Fail, phase: failed, reason: crash, message: wasRunning},
		{
			name: "a proven outcome counts", run: orphan(noIncarnation), evidence: ended(completed, "Succeeded", true),
			kind: RecordOutcome, phase: completed, reason: "Succeeded", message: "exit code 0", slotFree: true, result: true,
		},
	})
}

func TestOrphansAreLeftIfTheManagerWasToldSo(t *testing.T) {
	const rest = "; it is left as it is (--cleanup-stale-on-startup=false) and keeps its slot"
	checkRows(t, []row{
		{name: "Running", run: orphan(), evidence: neverStarted, leave: true, kind: LeaveOrphaned, message: wasRunning + rest},
		{
			name: "Cancelling", run: orphan(phase(batchv1alpha1.JobRunCancelling)), evidence: working, leave: true,
			kind: LeaveOrphaned, message: wasCancelling + rest,
		},
		{name: "one's own runs are no orphans", run: orphan(claimedIn(me)), evidence: working, leave: true, kind: NotAnOrphan},
	})
}

func TestWhatIsNotAtWorkOrIsOnesOwnIsNoOrphan(t *testing.T) {
	rows := []row{{name: "Running in the present epoch", run: orphan(claimedIn(me)), evidence: working}}
	for _, p := range []batchv1alpha1.JobRunPhase{batchv1alpha1.JobRunQueued, completed, failed, skipped, batchv1alpha1.JobRunCancelled} {
		rows = append(rows, row{name: string(p), run: orphan(phase(p)), evidence: unknown})
	}
	for i := range rows {
		rows[i].kind = NotAnOrphan
	}
	checkRows(t, rows)
}

func TestAManagerThatMeetsALaterEpochAnywhereIsDeposed(t *testing.T) {
	touched := func(r *batchv1alpha1.JobRun) { run.Fence(r, after.String()) }
	checkRows(t, []row{
		{name: "on a Running run", run: orphan(claimedIn(after)), evidence: neverStarted, kind: Deposed},
		{name: "on a finished run", run: orphan(claimedIn(after), phase(completed)), evidence: neverStarted, kind: Deposed},
		{name: "on a Queued run that was touched", run: orphan(noIncarnation, touched, phase(batchv1alpha1.JobRunQueued)), kind: Deposed},
		{name: "even if it leaves orphans", run: orphan(claimedIn(after)), evidence: working, leave: true, kind: Deposed},
	})
}

// anything draws a run in any state.
func anything(t *rapid.T) *batchv1alpha1.JobRun {
	r := orphan(phase(rapid.SampledFrom([]batchv1alpha1.JobRunPhase{
		batchv1alpha1.JobRunQueued, batchv1alpha1.JobRunRunning, batchv1alpha1.JobRunCancelling,
		completed, failed, skipped, batchv1alpha1.JobRunCancelled,
	}).Draw(t, "phase")))
	r.Spec.Cancel = rapid.Bool().Draw(t, "cancel")
	claimedIn(rapid.SampledFrom([]epoch.Epoch{{}, before, me, after}).Draw(t, "epoch"))(r)
	if rapid.Bool().Draw(t, "http") {
		httpWork(r)
	}
	if rapid.IntRange(0, 4).Draw(t, "incarnation") == 0 {
		noIncarnation(r)
	}
	return r
}

func anyEvidence(t *rapid.T) executor.Evidence {
	ev := rapid.SampledFrom([]executor.Evidence{
		neverStarted, working, unknown, {Life: executor.NeverStarted},
		ended(completed, "Succeeded", true), ended(failed, "WorkFailed", false), ended(skipped, "NothingToDo", true),
	}).Draw(t, "evidence")
	return ev
}

func TestEveryVerdictIsSoundAndFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, ev := anything(t), anyEvidence(t)
		policy := rapid.SampledFrom([]batchv1alpha1.RecoveryPolicy{"", batchv1alpha1.RecoveryFail, adopt}).Draw(t, "policy")
		cleanup := rapid.Bool().Draw(t, "cleanup")
		v := Decide(r, me, policy, ev, cleanup)

		checkVerdict(t, r, ev, policy, cleanup, v)

		r.Status.Phase, r.Status.Reason, r.Status.Message = v.Phase, v.Reason, v.Message
		if v.Kind == Adopt {
			claimedIn(me)(r)
		}
		again := Decide(r, me, policy, ev, cleanup)
		if want := afterwards(v.Kind); again.Kind != want {
			t.Fatalf("after %s comes %s, want %s", v.Kind, again.Kind, want)
		}
	})
}

func checkVerdict(t *rapid.T, r *batchv1alpha1.JobRun, ev executor.Evidence, policy batchv1alpha1.RecoveryPolicy, cleanup bool, v Verdict) {
	claimed := parse(run.Epoch(r))
	orphaned := r.Status.Phase.InProgress() && claimed.Compare(me) < 0
	switch {
	case v.resolves() != (orphaned && cleanup):
		t.Fatalf("an orphan (%t), cleaned up (%t), got %+v", orphaned, cleanup, v)
	case !v.resolves() && v.Phase != r.Status.Phase:
		t.Fatalf("%s became %s by %s", r.Status.Phase, v.Phase, v.Kind)
	case r.Status.Phase.Terminal() && v.Phase != r.Status.Phase:
		t.Fatalf("terminal %s became %s", r.Status.Phase, v.Phase)
	case v.resolves() && policy != adopt && !v.Phase.Terminal():
		t.Fatalf("an orphan stays %s: %+v", v.Phase, v)
	case v.Phase == batchv1alpha1.JobRunQueued && r.Status.Phase != batchv1alpha1.JobRunQueued:
		t.Fatal("it returned to Queued")
	case v.Phase == completed && v.resolves() && (ev.Outcome == nil || ev.Outcome.Phase != completed):
		t.Fatal("completed without proof")
	case v.SlotFree && !ev.Stopped:
		t.Fatal("the slot is free although the work may live")
	}
}

// afterwards is the verdict on a run on which a verdict is on record.
func afterwards(k Kind) Kind {
	switch k {
	case RecordOutcome, Fail, Adopt:
		return NotAnOrphan
	default:
		return k
	}
}
