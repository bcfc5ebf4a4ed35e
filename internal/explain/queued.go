// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/admission"
	"reprise.dev/reprise/internal/creator"
	"reprise.dev/reprise/internal/run"
)

// Reasons of a Queued run that are neither those of admission nor those of the API.
const (
	// ReasonBeingDeleted: the object is being deleted.
	ReasonBeingDeleted = "BeingDeleted"
	// ReasonUnresolved: what the run names is yet to be looked up.
	ReasonUnresolved = "Unresolved"
)

// managerPatience is how long after nothing stands in the way of a run any more the manager is expected to have admitted it.
const managerPatience = 30 * time.Second

// queued explains a run that waits.
func (v *View) queued(a *Answer, r *batchv1alpha1.JobRun) {
	a.Waits, a.Since = true, r.CreationTimestamp.Time
	if v.alone(a, r) {
		return
	}
	p := v.picture(a.Queue)
	if p.queue == nil {
		v.queueMissing(a)
		return
	}
	v.line(a, p, r.UID)
	if a.Reason == admission.CodeNextInTurn {
		v.nothingInTheWay(a, later(r.CreationTimestamp.Time, r.Spec.NotBefore))
	}
}

// alone explains a run that waits for something of its own, whatever its queue would say, and reports whether it does.
func (v *View) alone(a *Answer, r *batchv1alpha1.JobRun) bool {
	verdict := creator.Ask(known{v}, r)
	switch halt := run.Halted(r); {
	case halt != nil:
		a.Waits = false
		a.say(halt.Reason, "it is to become %s in a moment: %s", halt.Phase, halt.Message)
		v.hintManager(a, a.Since)
	case r.DeletionTimestamp != nil:
		a.Waits = false
		a.say(ReasonBeingDeleted, "it is being deleted, and is not admitted any more")
	case !creator.Owned(known{v}, r):
		owner := metav1.GetControllerOf(r)
		a.say(batchv1alpha1.ReasonOwnerNotFound, "its owner, %s %s with UID %s, does not exist", owner.Kind, owner.Name, owner.UID)
		a.hint("if it comes from a backup, it may have run already: create a new run in its place, or remove metadata.ownerReferences to let this one run")
	case run.Template(r) == nil:
		v.unresolved(a, r)
	case run.Template(r).Work == nil:
		a.say(batchv1alpha1.ReasonInvalidWork, "it has no work, and is to become Skipped")
	case verdict.Answer == creator.Refused:
		a.say(verdict.Reason, "it is never executed, and is to become Skipped: %s", verdict.Message)
	case verdict.Answer == creator.Unrecorded:
		a.say(admission.CodeUnconfirmed, "%s, which created it, has not recorded it yet", creatorName(r))
		v.hintManager(a, a.Since)
	default:
		return false
	}
	return true
}

// unresolved explains a run that names only a ScheduledJob or another run.
func (v *View) unresolved(a *Answer, r *batchv1alpha1.JobRun) {
	switch ref := r.Spec.ScheduledJobRef; {
	case r.Spec.RetryOf != "" && v.runs[r.Spec.RetryOf] == nil:
		a.say(batchv1alpha1.ReasonRetryTargetNotFound, "run %s, which it is to retry, does not exist", r.Spec.RetryOf)
		a.hint("delete it and retry a run that exists: kubectl reprise retry RUN")
	case r.Spec.RetryOf == "" && ref != nil && v.schedules[ref.Name] == nil:
		a.say(batchv1alpha1.ReasonScheduledJobNotFound, "ScheduledJob %s, which it is to run, does not exist", ref.Name)
		a.hint("create that ScheduledJob, or delete the run")
	default:
		if c := meta.FindStatusCondition(r.Status.Conditions, batchv1alpha1.ConditionStalled); c != nil && c.Status == metav1.ConditionTrue {
			a.say(c.Reason, "%s", c.Message)
			return
		}
		a.say(ReasonUnresolved, "what it names is looked up in a moment")
		v.hintManager(a, a.Since)
	}
}

// creatorName names what has created a run.
func creatorName(r *batchv1alpha1.JobRun) string {
	switch {
	case r.Spec.RetryOf != "":
		return "run " + r.Spec.RetryOf
	case r.Spec.ScheduledTime != nil && r.Spec.ScheduledJobRef != nil:
		return "ScheduledJob " + r.Spec.ScheduledJobRef.Name
	case r.Spec.GroupRef != nil:
		return "JobGroup " + r.Spec.GroupRef.Name
	default:
		return "nobody"
	}
}

// queueMissing explains something whose queue does not exist.
func (v *View) queueMissing(a *Answer) {
	if a.Queue == batchv1alpha1.DefaultQueue {
		a.say(batchv1alpha1.ReasonQueueNotFound, "JobQueue %s does not exist in namespace %s yet: the manager creates it in a moment", a.Queue, v.snapshot.Namespace)
		v.hintManager(a, a.Since)
		return
	}
	a.say(batchv1alpha1.ReasonQueueNotFound, "JobQueue %s does not exist in namespace %s", a.Queue, v.snapshot.Namespace)
	var names []string
	for i := range v.snapshot.Queues {
		names = append(names, v.snapshot.Queues[i].Name)
	}
	if len(names) == 0 {
		a.hint("create that JobQueue: the namespace has none")
		return
	}
	a.hint("create that JobQueue, or name one that exists: %s", strings.Join(listed(names), ", "))
}

// nothingInTheWay explains that something is served in its turn.
func (v *View) nothingInTheWay(a *Answer, since time.Time) {
	if a.Place != nil && a.Place.Number > 1 && !a.Start.Equal(v.now) {
		a.Message = fmt.Sprintf("nothing stands in its way but the %d before it", a.Place.Number-1)
		return
	}
	a.Message = "nothing stands in its way: its queue admits it in a moment"
	v.hintManager(a, since)
}

// hintManager says where to look if the manager should have done something a while ago.
func (v *View) hintManager(a *Answer, since time.Time) {
	if v.now.Sub(since) >= managerPatience {
		a.hint("nothing has happened for %s: see whether the manager runs and what it logs: kubectl get pods -A -l app.kubernetes.io/name=reprise", short(v.now.Sub(since)))
	}
}

func later(t time.Time, o *metav1.Time) time.Time {
	if o != nil && o.After(t) {
		return o.Time
	}
	return t
}
