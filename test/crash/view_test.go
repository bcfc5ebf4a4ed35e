// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/notify"
	"reprise.dev/reprise/internal/run"
)

// view is what there is in a namespace at one moment. Its objects are shared: do not change them.
type view []client.Object

// named returns the object of that kind and name; nil if there is none.
func named[T client.Object](v view, name string) (none T) {
	for _, o := range v {
		if t, is := o.(T); is && t.GetName() == name {
			return t
		}
	}
	return none
}

// every returns the objects of that kind, by name.
func every[T client.Object](v view) []T {
	var all []T
	for _, o := range v {
		if t, is := o.(T); is {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all
}

func (v view) run(name string) *batchv1alpha1.JobRun { return named[*batchv1alpha1.JobRun](v, name) }

func (v view) runs() []*batchv1alpha1.JobRun { return every[*batchv1alpha1.JobRun](v) }

// phase of a run; "" if there is none.
func (v view) phase(name string) batchv1alpha1.JobRunPhase {
	if r := v.run(name); r != nil {
		return r.Status.Phase
	}
	return ""
}

// chain returns the runs of a chain, the latest attempt last.
func (v view) chain(root string) []*batchv1alpha1.JobRun {
	chain := slices.DeleteFunc(v.runs(), func(r *batchv1alpha1.JobRun) bool {
		return r.Name != root && (r.Spec.Chain == nil || r.Spec.Chain.RootName != root) &&
			(r.Status.ResolvedSpec == nil || r.Status.ResolvedSpec.Chain == nil || r.Status.ResolvedSpec.Chain.RootName != root)
	})
	slices.SortStableFunc(chain, func(a, b *batchv1alpha1.JobRun) int { return cmp.Compare(run.Attempt(a), run.Attempt(b)) })
	return chain
}

// told returns how the root of a chain says that it ended: "Complete", "Failed", or "" while it does not.
func (v view) told(root string) string {
	if r := v.run(root); r != nil {
		for _, kind := range []string{batchv1alpha1.ConditionComplete, batchv1alpha1.ConditionFailed} {
			if meta.IsStatusConditionTrue(r.Status.Conditions, kind) {
				return kind
			}
		}
	}
	return ""
}

// unsettled says what has not come to its end; "" if everything has.
func (v view) unsettled() string {
	var waits []string
	for _, o := range v {
		if why := unsettled(v, o); why != "" {
			waits = append(waits, fmt.Sprintf("%T %s: %s", o, o.GetName(), why))
		}
	}
	slices.Sort(waits)
	return strings.Join(waits, "; ")
}

func unsettled(v view, o client.Object) string {
	switch o := o.(type) {
	case *batchv1alpha1.JobRun:
		return unsettledRun(v, o)
	case *batchv1alpha1.JobGroup:
		if !o.Status.Phase.Terminal() || notify.InDebt(notify.OfGroup(o)) {
			return string(o.Status.Phase)
		}
	case *batchv1alpha1.DirectReservation:
		if !o.Status.Phase.Terminal() {
			return string(o.Status.Phase)
		}
	case *batchv1alpha1.JobQueue:
		if int(o.Status.Queued+o.Status.Running+o.Status.Reserved)+len(o.Status.Next) > 0 || o.Status.ObservedGeneration != o.Generation {
			return fmt.Sprintf("%d queued, %d running, %d reserved, %d next", o.Status.Queued, o.Status.Running, o.Status.Reserved, len(o.Status.Next))
		}
	case *batchv1alpha1.ScheduledJob:
		if len(o.Status.Active) > 0 || o.Status.ObservedGeneration != o.Generation {
			return fmt.Sprintf("%d active", len(o.Status.Active))
		}
	}
	return ""
}

func unsettledRun(v view, r *batchv1alpha1.JobRun) string {
	switch {
	case !r.Status.Phase.Terminal(), r.Status.Slot == batchv1alpha1.SlotHeld:
		return fmt.Sprintf("%s %s slot=%s", r.Status.Phase, r.Status.Reason, r.Status.Slot)
	case notify.InDebt(notify.OfRun(r)):
		return "announcements are owed"
	case run.IsRoot(r) && v.told(r.Name) == "":
		return "the chain has not told its end"
	default:
		return ""
	}
}

// story tells what there is.
func (v view) story() string {
	var b strings.Builder
	for _, r := range v.runs() {
		_, _ = fmt.Fprintf(&b, "  run %s: %s %s slot=%s told=%s %s\n", r.Name, r.Status.Phase, r.Status.Reason, r.Status.Slot, v.told(r.Name), r.Status.Message)
	}
	for _, g := range every[*batchv1alpha1.JobGroup](v) {
		_, _ = fmt.Fprintf(&b, "  group %s: %s %s %+v\n", g.Name, g.Status.Phase, g.Status.Reason, g.Status.Members)
	}
	for _, s := range every[*batchv1alpha1.ScheduledJob](v) {
		_, _ = fmt.Fprintf(&b, "  schedule %s: %+v\n", s.Name, s.Status)
	}
	for _, d := range every[*batchv1alpha1.DirectReservation](v) {
		_, _ = fmt.Fprintf(&b, "  reservation %s: %s %s %s\n", d.Name, d.Status.Phase, d.Status.Reason, d.Status.Message)
	}
	for _, q := range every[*batchv1alpha1.JobQueue](v) {
		_, _ = fmt.Fprintf(&b, "  queue %s: %d queued, %d running, %d reserved\n", q.Name, q.Status.Queued, q.Status.Running, q.Status.Reserved)
	}
	return b.String()
}
