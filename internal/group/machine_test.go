// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/creator"
	"reprise.dev/reprise/internal/retry"
	"reprise.dev/reprise/internal/run"
)

// machine is one group and its runs in memory, with managers that die at any step, caches that are behind, an API server that
// refuses, people who cancel, delete and retry, and the run controller as far as it matters to a group.
type machine struct {
	group *batchv1alpha1.JobGroup
	runs  map[string]*batchv1alpha1.JobRun
	now   time.Time
	born  int
	// earlier are what caches that are behind may show.
	earlier []view
	// executed are the roots that were at work, by member.
	executed map[string]types.UID
	// byHand are the chains that a person has taken up again: what overlaps with them is the person's wish.
	byHand map[types.UID]bool
	// begun counts the runs that were on record when a member had failed, -1 before.
	begun int
}

// view is what the API server had at a time.
type view struct {
	group *batchv1alpha1.JobGroup
	runs  []batchv1alpha1.JobRun
}

func newMachine(t *rapid.T) *machine {
	m := &machine{
		group: aGroup(), runs: map[string]*batchv1alpha1.JobRun{}, now: noon, executed: map[string]types.UID{}, byHand: map[types.UID]bool{}, begun: -1,
	}
	m.group.Spec.Mode = rapid.SampledFrom([]batchv1alpha1.GroupMode{"Sequential", "Parallel"}).Draw(t, "mode")
	m.group.Spec.OnFailure = rapid.SampledFrom([]batchv1alpha1.GroupFailurePolicy{"Stop", "Continue", "Skip"}).Draw(t, "onFailure")
	for i := range m.group.Spec.Members {
		m.group.Spec.Members[i].RunTemplate.RetryPolicy = &batchv1alpha1.RetryPolicy{MaxRetries: ptr.To(rapid.Int32Range(0, 2).Draw(t, "retries"))}
	}
	return m
}

func TestNoMemberRunsTwiceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"pass":   func(t *rapid.T) { m.pass(t, m.seen(t)) },
			"begin":  m.begin,
			"end":    m.end,
			"free":   m.free,
			"retry":  m.retry,
			"tell":   func(*rapid.T) { m.tell() },
			"answer": func(*rapid.T) { m.answer() },
			"obey":   func(*rapid.T) { m.obey() },
			"person": m.person,
			"look":   func(*rapid.T) { m.remember() },
		})
		m.rest(t)
	})
}

func (m *machine) remember() {
	m.earlier = append(m.earlier, m.present())
	m.earlier = m.earlier[max(0, len(m.earlier)-3):]
}

func (m *machine) present() view {
	v := view{group: m.group.DeepCopy()}
	for _, name := range slices.Sorted(maps.Keys(m.runs)) {
		v.runs = append(v.runs, *m.runs[name].DeepCopy())
	}
	return v
}

// seen is what the caches show: each of them may be behind.
func (m *machine) seen(t *rapid.T) view {
	views := append(slices.Clone(m.earlier), m.present())
	which := rapid.IntRange(0, len(views)-1)
	return view{group: views[which.Draw(t, "cached group")].group, runs: views[which.Draw(t, "cached runs")].runs}
}

// observe is what the reconciler makes of what it sees: an absence is read live.
func (m *machine) observe(g *batchv1alpha1.JobGroup, cached []batchv1alpha1.JobRun) Snapshot {
	s := Snapshot{Group: g}
	live := m.present().runs
	for _, told := range g.Status.Members {
		if told.RunUID == "" || told.Phase.Settled() {
			continue
		}
		of := func(r batchv1alpha1.JobRun) bool { return run.ChainUID(&r) == told.RunUID }
		known := func(r batchv1alpha1.JobRun) bool {
			return slices.ContainsFunc(s.Runs, func(o batchv1alpha1.JobRun) bool { return o.UID == r.UID })
		}
		s.Runs = append(s.Runs, slices.DeleteFunc(slices.Clone(cached), func(r batchv1alpha1.JobRun) bool { return !of(r) })...)
		if !known(batchv1alpha1.JobRun{ObjectMeta: metav1.ObjectMeta{UID: told.RunUID}}) {
			s.Runs = append(s.Runs, slices.DeleteFunc(slices.Clone(live), func(r batchv1alpha1.JobRun) bool { return !of(r) || known(r) || r.Spec.GroupRef == nil })...)
		}
	}
	return s
}

// pass is the reconcile of a manager, which may end anywhere, and whose creations may be refused.
func (m *machine) pass(t *rapid.T, seen view) {
	found := m.observe(seen.group, seen.runs)
	plan := Decide(found, m.now)
	if len(plan.Create) > 0 {
		found = m.observe(m.group.DeepCopy(), seen.runs)
		plan = Decide(found, m.now)
	}
	decidedOn := found.Group
	for _, member := range plan.Create {
		switch fate(t, "creation") {
		case "die":
			return
		case "fail":
			continue
		}
		found = found.Recorded(member, m.ensure(member))
	}
	if len(plan.Create) > 0 {
		plan = Decide(found, m.now)
	}
	if fate(t, "record") != "" || !m.record(t, decidedOn, plan.Status) {
		return
	}
	for _, ask := range plan.Halt {
		if fate(t, "halt") != "" {
			return
		}
		m.halt(t, ask)
	}
}

func fate(t *rapid.T, of string) string {
	return rapid.SampledFrom([]string{"", "", "", "", "", "die", "fail"}).Draw(t, of)
}

func (m *machine) ensure(member string) *batchv1alpha1.JobRun {
	name := RunName("g", member, 0)
	if _, there := m.runs[name]; !there {
		r := runOf(member)
		r.Spec.RetryPolicy = m.group.Spec.Members[slices.IndexFunc(m.group.Spec.Members, func(o batchv1alpha1.GroupMember) bool { return o.Name == member })].RunTemplate.RetryPolicy
		m.add(&r)
	}
	return m.runs[name].DeepCopy()
}

func (m *machine) add(r *batchv1alpha1.JobRun) {
	m.born++
	r.UID, r.ResourceVersion = types.UID(fmt.Sprintf("uid-%d", m.born)), "1"
	r.CreationTimestamp = metav1.NewTime(m.now)
	r.Status.Phase = batchv1alpha1.JobRunQueued
	m.runs[r.Name] = r
}

// change writes a run: whoever has seen it before cannot write it any more.
func (m *machine) change(r *batchv1alpha1.JobRun, how func(*batchv1alpha1.JobRun)) {
	how(r)
	m.born++
	r.ResourceVersion = fmt.Sprint(m.born)
}

// record writes the status on the version that was decided upon, if that is the present one and it says anything new.
func (m *machine) record(t *rapid.T, on *batchv1alpha1.JobGroup, next batchv1alpha1.JobGroupStatus) bool {
	if equality.Semantic.DeepEqual(next, on.Status) {
		return true
	}
	if on.ResourceVersion != m.group.ResourceVersion {
		return false
	}
	m.checkStep(t, m.group.Status, next)
	m.group.Status = next
	m.edited()
	return true
}

func (m *machine) edited() {
	m.born++
	m.group.ResourceVersion = fmt.Sprint(m.born)
}

// checkStep compares a status with the one before, by the rules of the API and of a group.
func (m *machine) checkStep(t *rapid.T, before, after batchv1alpha1.JobGroupStatus) {
	var from, to = before.Phase, after.Phase
	cancelling := from == batchv1alpha1.JobGroupCancelling && to != from && to != batchv1alpha1.JobGroupCancelled && to != batchv1alpha1.JobGroupFailed
	if from.Terminal() || cancelling || (to == batchv1alpha1.JobGroupPending && from != to) {
		t.Fatalf("from %s to %s", shown(before), shown(after))
	}
	recorded, failed := 0, false
	for _, told := range after.Members {
		was := toldOf(&batchv1alpha1.JobGroup{Status: before}, told.Name)
		if (was.Phase.Settled() && told != was) || (was.RunUID != "" && told.RunUID != was.RunUID) {
			t.Fatalf("from %+v to %+v", was, told)
		}
		if told.RunUID != "" {
			recorded++
		}
		failed = failed || told.Phase == batchv1alpha1.MemberFailed
	}
	if m.begun >= 0 && recorded > m.begun && m.group.Spec.OnFailure != batchv1alpha1.GroupContinue {
		t.Fatalf("a member was made after another had failed: %s", shown(after))
	}
	if failed && m.begun < 0 {
		m.begun = recorded
	}
	if to == batchv1alpha1.JobGroupCompleted && failed {
		t.Fatalf("completed with a failed member: %s", shown(after))
	}
	if to.Terminal() {
		m.checkStopped(t, after)
	}
}

// checkStopped expects that nothing of a group lives that has ended.
func (m *machine) checkStopped(t *rapid.T, s batchv1alpha1.JobGroupStatus) {
	for _, r := range m.runs {
		if m.recorded(s, r) && !m.byHand[run.ChainUID(r)] && (!r.Status.Phase.Terminal() || run.HoldsSlot(r)) {
			t.Fatalf("%s while %s is %s", shown(s), r.Name, r.Status.Phase)
		}
	}
}

func (m *machine) recorded(s batchv1alpha1.JobGroupStatus, r *batchv1alpha1.JobRun) bool {
	return slices.ContainsFunc(s.Members, func(told batchv1alpha1.GroupMemberStatus) bool { return told.RunUID == run.ChainUID(r) })
}

func (m *machine) halt(t *rapid.T, ask Ask) {
	r := m.runs[ask.Run.Name]
	if r == nil || r.UID != ask.Run.UID || r.ResourceVersion != ask.Run.ResourceVersion {
		return
	}
	if before := r.Status.Halt; before != nil && (before.Phase != batchv1alpha1.JobRunSkipped || ask.Halt.Phase != batchv1alpha1.JobRunCancelled) {
		t.Fatalf("%s was asked %s, and then %s", r.Name, before.Phase, ask.Halt.Phase)
	}
	m.change(r, func(r *batchv1alpha1.JobRun) { r.Status.Halt = &ask.Halt })
}

func (m *machine) check(t *rapid.T) {
	m.now = m.now.Add(time.Second)
	unsettled := 0
	for _, told := range m.group.Status.Members {
		if told.RunUID != "" && !told.Phase.Settled() {
			unsettled++
		}
	}
	atWork := map[string]bool{}
	for _, r := range m.runs {
		if run.HoldsSlot(r) && !m.byHand[run.ChainUID(r)] {
			atWork[r.Spec.GroupRef.Member] = true
		}
	}
	if m.group.Spec.Mode == batchv1alpha1.GroupSequential && (unsettled > 1 || len(atWork) > 1) {
		t.Fatalf("%d members of a sequence are unsettled, %v at work: %s", unsettled, atWork, shown(m.group.Status))
	}
}

// rest lets all faults end and everything run its course: the group ends, and nothing changes any more.
func (m *machine) rest(t *rapid.T) {
	for range 200 {
		before := m.born
		m.calm(t)
		for _, r := range m.runs {
			m.course(r)
		}
		m.tell()
		m.answer()
		m.obey()
		m.check(t)
		if m.born == before {
			break
		}
	}
	if !m.group.Status.Phase.Terminal() {
		t.Fatalf("at rest it is %s: %+v", shown(m.group.Status), m.group.Status.Members)
	}
	for _, r := range m.runs {
		if !r.Status.Phase.Terminal() && !m.byHand[run.ChainUID(r)] {
			t.Fatalf("at rest %s is %s", r.Name, r.Status.Phase)
		}
	}
}

// calm is a pass without faults.
func (m *machine) calm(t *rapid.T) {
	now := m.present()
	found := m.observe(now.group, now.runs)
	plan := Decide(found, m.now)
	for _, member := range plan.Create {
		found = found.Recorded(member, m.ensure(member))
	}
	plan = Decide(found, m.now)
	m.record(t, now.group, plan.Status)
	for _, ask := range plan.Halt {
		m.halt(t, ask)
	}
	m.checkHalted(t)
}

// checkHalted expects that nothing begins any more, or goes on, that the failure of a member or a cancellation ends.
func (m *machine) checkHalted(t *rapid.T) {
	g := m.group
	cancelled := g.Spec.Cancel || g.Status.Halt != nil
	broken := g.Spec.OnFailure != batchv1alpha1.GroupContinue &&
		slices.ContainsFunc(g.Status.Members, func(told batchv1alpha1.GroupMemberStatus) bool { return told.Phase == batchv1alpha1.MemberFailed })
	for _, r := range m.runs {
		open := slices.ContainsFunc(g.Status.Members, func(told batchv1alpha1.GroupMemberStatus) bool {
			return told.RunUID == run.ChainUID(r) && !told.Phase.Settled()
		})
		if !open || r.Status.Phase.Terminal() || (!cancelled && !broken) {
			continue
		}
		want := batchv1alpha1.JobRunCancelled
		if !cancelled && g.Spec.OnFailure == batchv1alpha1.GroupSkip {
			want = batchv1alpha1.JobRunSkipped
		}
		if r.Status.Halt == nil || r.Status.Halt.Phase != want {
			t.Fatalf("%s is %s and was asked %+v", r.Name, r.Status.Phase, r.Status.Halt)
		}
	}
}

// course lets a run do what it would do next, with success.
func (m *machine) course(r *batchv1alpha1.JobRun) {
	switch {
	case retry.Decide(r).Due:
		m.succeed(r)
	case r.Status.Phase.Terminal() && run.HoldsSlot(r):
		m.change(r, run.Free)
	case r.Status.Phase == batchv1alpha1.JobRunRunning:
		m.finish(r, batchv1alpha1.JobRunCompleted, "ByTheWork", true)
	case r.Status.Phase == batchv1alpha1.JobRunQueued && run.Halted(r) == nil && (!run.IsRoot(r) || m.ask(r).Answer == creator.Named):
		m.change(r, func(r *batchv1alpha1.JobRun) { run.Claim{}.Apply(r, m.now) })
	}
}
