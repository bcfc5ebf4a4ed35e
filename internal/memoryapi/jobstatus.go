// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// jobStatusRules are those of what a Job controller reports. Most of them look at what a report changes, so that one mistake
// does not keep a controller from reporting anything else.
var jobStatusRules = builtin[*batchv1.Job]{
	gvk: jobKind, namespaced: true, unconditional: true,
	prepareUpdate: func(j, old *batchv1.Job) { j.Spec = old.Spec },
	validateUpdate: func(j, old *batchv1.Job) field.ErrorList {
		r := report{Job: j, old: old}
		var errs field.ErrorList
		for _, rule := range []func() field.ErrorList{r.counts, r.readiness, r.leftovers, r.contradictions, r.announcements, r.takenBack, r.start, r.completion} {
			errs = append(errs, rule()...)
		}
		return errs
	},
}

// report is the next status of a Job.
type report struct {
	*batchv1.Job
	old *batchv1.Job
}

var statusPath = field.NewPath("status")

func over(j *batchv1.Job) bool {
	return conditionTrue(j, batchv1.JobComplete) || conditionTrue(j, batchv1.JobFailed)
}

// says whether a condition holds.
func (r report) says(t batchv1.JobConditionType) bool { return conditionTrue(r.Job, t) }

// changes says whether one of the conditions begins or ceases to hold.
func (r report) changes(types ...batchv1.JobConditionType) bool {
	for _, t := range types {
		if conditionTrue(r.Job, t) != conditionTrue(r.old, t) {
			return true
		}
	}
	return false
}

// unless is an error of a field if something is wrong.
func unless(right bool, err *field.Error) field.ErrorList {
	if right {
		return nil
	}
	return field.ErrorList{err}
}

// counts checks the numbers of pods: none is negative, and those that ended stay.
func (r report) counts() field.ErrorList {
	var errs field.ErrorList
	for name, n := range map[string]int32{
		"active": r.Status.Active, "succeeded": r.Status.Succeeded, "failed": r.Status.Failed,
		"ready": ptr.Deref(r.Status.Ready, 0), "terminating": ptr.Deref(r.Status.Terminating, 0),
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(n), statusPath.Child(name))...)
	}
	errs = append(errs, unless(r.Status.Failed >= r.old.Status.Failed, field.Invalid(statusPath.Child("failed"), r.Status.Failed, "must not decrease"))...)
	return append(errs, unless(r.Status.Succeeded >= r.old.Status.Succeeded, field.Invalid(statusPath.Child("succeeded"), r.Status.Succeeded, "must not decrease"))...)
}

// readiness checks that no more pods are ready than there are.
func (r report) readiness() field.ErrorList {
	ready, active := r.Status.Ready, r.Status.Active
	if ready == nil || *ready <= active || (active == r.old.Status.Active && ptr.Equal(ready, r.old.Status.Ready)) {
		return nil
	}
	return field.ErrorList{field.Invalid(statusPath.Child("ready"), *ready, "more are ready than there are")}
}

// leftovers checks that a Job that is over has no pods left.
func (r report) leftovers() field.ErrorList {
	if !over(r.Job) {
		return nil
	}
	ends, now, was := !over(r.old), r.Status, r.old.Status
	var errs field.ErrorList
	if now.Active > 0 && (ends || now.Active != was.Active) {
		errs = append(errs, field.Invalid(statusPath.Child("active"), now.Active, "the Job is over"))
	}
	if n := ptr.Deref(now.Terminating, 0); n > 0 && (ends || !ptr.Equal(now.Terminating, was.Terminating)) {
		errs = append(errs, field.Invalid(statusPath.Child("terminating"), n, "the Job is over"))
	}
	if u := now.UncountedTerminatedPods; ends && u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		errs = append(errs, field.Invalid(statusPath.Child("uncountedTerminatedPods"), u, "the Job is over"))
	}
	return errs
}

func conditionsAre(detail string) *field.Error {
	return field.Invalid(statusPath.Child("conditions"), field.OmitValueType{}, detail)
}

// contradictions checks that a Job does not end in two ways.
func (r report) contradictions() field.ErrorList {
	complete, failed := r.says(batchv1.JobComplete), r.says(batchv1.JobFailed)
	target, met := r.says(batchv1.JobFailureTarget), r.says(batchv1.JobSuccessCriteriaMet)
	var errs field.ErrorList
	if complete && failed && r.changes(batchv1.JobComplete, batchv1.JobFailed) {
		errs = append(errs, conditionsAre("the Job is both complete and failed"))
	}
	if complete && target && r.changes(batchv1.JobComplete, batchv1.JobFailureTarget) {
		errs = append(errs, conditionsAre("the Job is complete, and about to fail"))
	}
	errs = append(errs, unless(!met || !failed, conditionsAre("the Job has met its criteria and has failed"))...)
	return append(errs, unless(!met || !target, conditionsAre("the Job has met its criteria and is about to fail"))...)
}

// announcements checks that an end has been announced.
func (r report) announcements() field.ErrorList {
	var errs field.ErrorList
	if r.says(batchv1.JobFailed) && !r.says(batchv1.JobFailureTarget) && r.changes(batchv1.JobFailed) {
		errs = append(errs, conditionsAre("the Job has failed without having been about to fail"))
	}
	if r.says(batchv1.JobComplete) && !r.says(batchv1.JobSuccessCriteriaMet) && r.changes(batchv1.JobComplete, batchv1.JobSuccessCriteriaMet) {
		errs = append(errs, conditionsAre("the Job is complete without having met its criteria"))
	}
	return errs
}

// takenBack checks that no end is.
func (r report) takenBack() field.ErrorList {
	var errs field.ErrorList
	for _, t := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		errs = append(errs, unless(r.says(t) || !conditionTrue(r.old, t), conditionsAre("the condition "+string(t)+" must stay"))...)
	}
	return errs
}

// start checks when a Job began.
func (r report) start() field.ErrorList {
	began, was := r.Status.StartTime, r.old.Status.StartTime
	changed := !ptr.Equal(began, was)
	var errs field.ErrorList
	if over(r.Job) && began == nil && (changed || !over(r.old)) && !neverRuns(r.Job) {
		errs = append(errs, field.Required(statusPath.Child("startTime"), "the Job is over"))
	}
	if was != nil && changed && !ptr.Deref(r.Spec.Suspend, false) && !r.resumes() {
		errs = append(errs, field.Invalid(statusPath.Child("startTime"), began, "is set once, unless the Job is suspended"))
	}
	return errs
}

// completion checks when a Job was complete.
func (r report) completion() field.ErrorList {
	began, ended, was := r.Status.StartTime, r.Status.CompletionTime, r.old.Status.CompletionTime
	at, changed := statusPath.Child("completionTime"), !ptr.Equal(ended, was)
	complete := r.says(batchv1.JobComplete)
	var errs field.ErrorList
	if ended != nil {
		early := began != nil && ended.Before(began) && (changed || !ptr.Equal(began, r.old.Status.StartTime))
		errs = append(errs, unless(!early, field.Invalid(at, ended, "is before the start"))...)
		errs = append(errs, unless(was == nil || !changed, field.Invalid(at, ended, "is set once"))...)
	}
	if complete == (ended != nil) || (!changed && !r.changes(batchv1.JobComplete)) {
		return errs
	}
	if complete {
		return append(errs, field.Required(at, "the Job is complete"))
	}
	return append(errs, field.Invalid(at, ended, "the Job is not complete"))
}

// neverRuns says that a Job is over without having begun: it is suspended and has nothing to complete.
func neverRuns(j *batchv1.Job) bool {
	return ptr.Deref(j.Spec.Suspend, false) && ptr.Equal(j.Spec.Completions, ptr.To[int32](0))
}

// resumes says that the controller has seen that a Job is not suspended any more.
func (r report) resumes() bool {
	for _, c := range r.Status.Conditions {
		if c.Type == batchv1.JobSuspended {
			return conditionTrue(r.old, batchv1.JobSuspended) && c.Status == corev1.ConditionFalse
		}
	}
	return false
}
