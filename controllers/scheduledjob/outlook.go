// SPDX-License-Identifier: Apache-2.0

package scheduledjob

import (
	"time"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/schedule"
)

// Outlook is what the controller would do for a ScheduledJob at some time.
type Outlook struct {
	// Invalid is why its schedule or zone cannot be used; nil if they can.
	Invalid error
	// Spec and State are what the decision rests on.
	Spec  schedule.Spec
	State schedule.State
	// Decision on what to fire.
	Decision schedule.Decision
	// Kind of what a tick makes: run or group.
	Kind string
	// Unsettled names what the ScheduledJob has made that is not over, retries in back-off included.
	Unsettled []string
}

// Foresee returns the outlook of a ScheduledJob at a time by what there is of its runs, all retries included, and groups. It is
// pure: the controller decides by the same rules.
func Foresee(sj *batchv1alpha1.ScheduledJob, runs []batchv1alpha1.JobRun, groups []batchv1alpha1.JobGroup, at time.Time) Outlook {
	p := decide(sj, products(runs, groups), at)
	o := Outlook{Invalid: p.invalid, Spec: p.spec, State: p.state, Decision: p.decision, Kind: "run"}
	if sj.Spec.GroupTemplate != nil {
		o.Kind = "group"
	}
	for _, u := range p.standing.unsettled {
		o.Unsettled = append(o.Unsettled, u.name())
	}
	return o
}

// Name returns the name of what a tick makes, if nothing foreign has it.
func (o Outlook) Name(sj string, tick time.Time) string { return productName(sj, tick, 0) }

// name of the object, or of what is left of a chain whose first run was deleted.
func (p product) name() string {
	switch {
	case p.object != nil:
		return p.object.GetName()
	case len(p.parts) > 0:
		return p.parts[0].GetName()
	default:
		return string(p.uid)
	}
}
