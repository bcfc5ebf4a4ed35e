// SPDX-License-Identifier: Apache-2.0

package show

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/history"
	"reprise.dev/reprise/internal/plugin/text"
	"reprise.dev/reprise/internal/run"
)

// groupNode returns the tree of a group: its members in their order, and under each the runs of its chain. The runs are those
// of all its members.
func groupNode(g *batchv1alpha1.JobGroup, runs []batchv1alpha1.JobRun, now time.Time) Node {
	s := g.Status
	n := Node{
		Kind: kindJobGroup, Name: g.Name, Phase: string(s.Phase), Reason: s.Reason, Message: sentence(s.Settled, s.Message),
		Since: s.StartedAt, FinishedAt: s.FinishedAt, Time: took(s.StartedAt, s.FinishedAt, now),
	}
	if o := meta.FindStatusCondition(s.Conditions, batchv1alpha1.ConditionStalled); o != nil && !s.Phase.Terminal() {
		n.Reason, n.Message = o.Reason, sentence(s.Settled, o.Message)
	}
	trees := chains(runs, now)
	for i := range g.Spec.Members {
		n.Children = append(n.Children, memberNode(g, g.Spec.Members[i].Name, trees))
	}
	return n
}

func memberNode(g *batchv1alpha1.JobGroup, name string, trees []Node) Node {
	told := batchv1alpha1.GroupMemberStatus{Name: name, Phase: batchv1alpha1.MemberWaiting}
	for _, m := range g.Status.Members {
		if m.Name == name {
			told = m
		}
	}
	n := Node{Kind: kindMember, Name: name, Phase: string(told.Phase), Reason: told.Reason}
	i := slices.IndexFunc(trees, func(tree Node) bool { return tree.Name == told.RunName })
	if told.RunName == "" || i < 0 {
		n.Message = told.Message // what its runs would tell in their own words
		return n
	}
	n.Children = []Node{trees[i]}
	return n
}

// family is what was read of a ScheduledJob.
type family struct {
	runs   []batchv1alpha1.JobRun
	groups []batchv1alpha1.JobGroup
	// members are the runs of the groups, by the group's name.
	members map[string][]batchv1alpha1.JobRun
	// earlier is how many of its runs and groups were left out.
	earlier int
}

// scheduleNode returns the tree of a ScheduledJob: what it has made, in the order of time, and what hangs from that.
func scheduleNode(sj *batchv1alpha1.ScheduledJob, f family, now time.Time) Node {
	n := Node{Kind: kindScheduledJob, Name: sj.Name, Phase: "Ready", Message: plan(sj)}
	switch c := meta.FindStatusCondition(sj.Status.Conditions, batchv1alpha1.ConditionStalled); {
	case c != nil && c.Status == metav1.ConditionTrue:
		n.Phase, n.Reason, n.Message = c.Type, c.Reason, c.Message
	case sj.Spec.Suspend:
		n.Phase = "Suspended"
	}
	if f.earlier > 0 {
		n.Message = sentence(n.Message, fmt.Sprintf("%d earlier ones are not shown", f.earlier))
	}
	n.Children = chains(f.runs, now)
	for i := range f.groups {
		g := groupNode(&f.groups[i], f.members[f.groups[i].Name], now)
		if g.Since == nil {
			g.Since = &f.groups[i].CreationTimestamp
		}
		n.Children = append(n.Children, g)
	}
	slices.SortStableFunc(n.Children, func(a, b Node) int {
		return cmp.Or(compareTimes(a.Since, b.Since), cmp.Compare(a.Name, b.Name))
	})
	return n
}

// compareTimes puts what has no time last.
func compareTimes(a, b *metav1.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	default:
		return a.Compare(b.Time)
	}
}

// plan tells when a ScheduledJob fires.
func plan(sj *batchv1alpha1.ScheduledJob) string {
	switch next := sj.Status.NextScheduleTime; {
	case sj.Spec.Schedule == "" && sj.Spec.RunAt == nil:
		return "no schedule: runs are created by hand"
	case next != "":
		return "next at " + next
	case sj.Spec.RunAt != nil:
		return "once, at " + sj.Spec.RunAt.UTC().Format(time.RFC3339)
	default:
		return text.Line(sj.Spec.Schedule)
	}
}

// latest keeps the chains and groups that were made last. 0 keeps all.
func latest(runs []batchv1alpha1.JobRun, groups []batchv1alpha1.JobGroup, last int) family {
	type made struct {
		at   time.Time
		name string
		uid  types.UID
	}
	var all []made
	for _, c := range history.Chains(runs) {
		chain := run.Chain(c.Runs[0])
		all = append(all, made{chain.QueuedAt.Time, chain.RootName, c.UID})
	}
	for i := range groups {
		all = append(all, made{groups[i].CreationTimestamp.Time, groups[i].Name, groups[i].UID})
	}
	slices.SortFunc(all, func(a, b made) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.name, a.name)) })
	f := family{members: map[string][]batchv1alpha1.JobRun{}}
	if last > 0 && len(all) > last {
		f.earlier, all = len(all)-last, all[:last]
	}
	kept := map[types.UID]bool{}
	for _, m := range all {
		kept[m.uid] = true
	}
	f.runs = slices.DeleteFunc(slices.Clone(runs), func(r batchv1alpha1.JobRun) bool { return !kept[run.ChainUID(&r)] })
	f.groups = slices.DeleteFunc(slices.Clone(groups), func(g batchv1alpha1.JobGroup) bool { return !kept[g.UID] })
	return f
}
