// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// jobRules are those of Jobs.
var jobRules = builtin[*batchv1.Job]{
	gvk: jobKind, namespaced: true, unconditional: true,
	prepareCreate: func(j *batchv1.Job) {
		j.Generation, j.Status = 1, batchv1.JobStatus{}
		if !ptr.Deref(j.Spec.ManualSelector, false) {
			selectOwnPods(j)
		}
	},
	prepareUpdate: func(j, old *batchv1.Job) {
		j.Status = old.Status
		if !apiequality.Semantic.DeepEqual(j.Spec, old.Spec) {
			j.Generation = old.Generation + 1
		}
	},
	validate:       validateJob,
	validateUpdate: validateJobUpdate,
}

// Labels by which a Job knows its pods, with those of the time before labels had prefixes.
const (
	oldControllerUID = "controller-uid"
	oldJobName       = "job-name"
)

// ownLabels are those that every pod of a Job has.
func ownLabels(j *batchv1.Job) map[string]string {
	return map[string]string{
		batchv1.ControllerUidLabel: string(j.UID), oldControllerUID: string(j.UID), batchv1.JobNameLabel: j.Name, oldJobName: j.Name,
	}
}

// selectOwnPods makes the selector of a Job, and the labels of its pods that it selects.
func selectOwnPods(j *batchv1.Job) {
	for key, value := range ownLabels(j) {
		if _, ok := j.Spec.Template.Labels[key]; ok {
			continue
		}
		metav1.SetMetaDataLabel(&j.Spec.Template.ObjectMeta, key, value)
	}
	if j.Spec.Selector == nil {
		j.Spec.Selector = &metav1.LabelSelector{}
	}
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, ok := j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !ok {
		j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(j.UID)
	}
}

// defaultJob fills in what a Job is taken to mean.
func defaultJob(j *batchv1.Job) {
	if j.Spec.Completions == nil && j.Spec.Parallelism == nil {
		j.Spec.Completions = ptr.To[int32](1)
	}
	orPointer(&j.Spec.Parallelism, 1)
	orPointer(&j.Spec.BackoffLimit, 6)
	orPointer(&j.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	orPointer(&j.Spec.Suspend, false)
	orPointer(&j.Spec.ManualSelector, false)
	replace := batchv1.TerminatingOrFailed
	if j.Spec.PodFailurePolicy != nil {
		replace = batchv1.Failed
	}
	orPointer(&j.Spec.PodReplacementPolicy, replace)
	if len(j.Labels) == 0 && j.Spec.Template.Labels != nil {
		// The same map, to which the labels that the server makes are added later.
		j.Labels = j.Spec.Template.Labels
	}
	defaultPodSpec(&j.Spec.Template.Spec)
}

func orPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// validateJob says what is wrong with a Job. It knows the rules that the product's Jobs meet, not all.
func validateJob(j *batchv1.Job) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	for name, n := range map[string]*int32{
		"parallelism": j.Spec.Parallelism, "completions": j.Spec.Completions, "backoffLimit": j.Spec.BackoffLimit,
		"ttlSecondsAfterFinished": j.Spec.TTLSecondsAfterFinished,
	} {
		if n != nil {
			errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*n), spec.Child(name))...)
		}
	}
	if d := j.Spec.ActiveDeadlineSeconds; d != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*d, spec.Child("activeDeadlineSeconds"))...)
	}
	errs = append(errs, validateSelector(j)...)
	template := spec.Child("template", "spec")
	errs = append(errs, validatePodSpec(&j.Spec.Template.Spec, template)...)
	switch policy := j.Spec.Template.Spec.RestartPolicy; policy {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
	case corev1.RestartPolicyAlways:
		errs = append(errs, field.Required(template.Child("restartPolicy"), "must be OnFailure or Never"))
	default:
		errs = append(errs, field.NotSupported(template.Child("restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure}))
	}
	return errs
}

// validateSelector checks that a Job selects its own pods and no others.
func validateSelector(j *batchv1.Job) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if j.Spec.Selector == nil {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	}
	selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector)
	if err != nil {
		return field.ErrorList{field.Invalid(spec.Child("selector"), nil, err.Error())}
	}
	at := spec.Child("template", "metadata", "labels")
	if !selector.Matches(labels.Set(j.Spec.Template.Labels)) {
		errs = append(errs, field.Invalid(at, j.Spec.Template.Labels, "the selector does not select these pods"))
	}
	if ptr.Deref(j.Spec.ManualSelector, false) || j.Spec.Selector == nil {
		return errs
	}
	own := ownLabels(j)
	for key, value := range own {
		if j.Spec.Template.Labels[key] != value {
			errs = append(errs, field.Invalid(at.Key(key), j.Spec.Template.Labels[key], "must be "+value))
		}
	}
	if !selector.Matches(labels.Set(own)) {
		errs = append(errs, field.Invalid(spec.Child("selector"), j.Spec.Selector, "is not the one that is made for a Job"))
	}
	return errs
}

// validateJobUpdate says what is wrong with the next version of a Job.
func validateJobUpdate(j, old *batchv1.Job) field.ErrorList {
	errs := validateJob(j)
	spec := field.NewPath("spec")
	for _, fixed := range []struct {
		name     string
		now, was any
	}{
		{"selector", j.Spec.Selector, old.Spec.Selector},
		{"completionMode", j.Spec.CompletionMode, old.Spec.CompletionMode},
		{"podFailurePolicy", j.Spec.PodFailurePolicy, old.Spec.PodFailurePolicy},
		{"backoffLimitPerIndex", j.Spec.BackoffLimitPerIndex, old.Spec.BackoffLimitPerIndex},
		{"managedBy", j.Spec.ManagedBy, old.Spec.ManagedBy},
		{"successPolicy", j.Spec.SuccessPolicy, old.Spec.SuccessPolicy},
	} {
		errs = append(errs, apivalidation.ValidateImmutableField(fixed.now, fixed.was, spec.Child(fixed.name))...)
	}
	if *j.Spec.CompletionMode != batchv1.IndexedCompletion {
		errs = append(errs, apivalidation.ValidateImmutableField(j.Spec.Completions, old.Spec.Completions, spec.Child("completions"))...)
	}
	return append(errs, validateTemplateUpdate(&j.Spec.Template, old)...)
}

// validateTemplateUpdate lets the template change only while nothing is made of it, and then only where pods are put and what
// they may use.
func validateTemplateUpdate(template *corev1.PodTemplateSpec, old *batchv1.Job) field.ErrorList {
	was := old.Spec.Template.DeepCopy()
	at := field.NewPath("spec", "template")
	if idle(old) {
		was.Labels, was.Annotations = template.Labels, template.Annotations
		was.Spec.NodeSelector, was.Spec.Tolerations = template.Spec.NodeSelector, template.Spec.Tolerations
		was.Spec.SchedulingGates = template.Spec.SchedulingGates
		for i := range was.Spec.Containers {
			if i < len(template.Spec.Containers) {
				was.Spec.Containers[i].Resources = template.Spec.Containers[i].Resources
			}
		}
		return apivalidation.ValidateImmutableField(template.Spec, was.Spec, at.Child("spec"))
	}
	return apivalidation.ValidateImmutableField(template, was, at)
}

// idle says that a Job is suspended and has no pods.
func idle(j *batchv1.Job) bool {
	suspended := j.Status.StartTime == nil || conditionTrue(j, batchv1.JobSuspended)
	return ptr.Deref(j.Spec.Suspend, false) && suspended && j.Status.Active == 0
}

func conditionTrue(j *batchv1.Job, t batchv1.JobConditionType) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == t {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// jobFields are what field selectors see of a Job.
func jobFields(j *batchv1.Job) fields.Set {
	return fields.Set{"status.successful": strconv.Itoa(int(j.Status.Succeeded))}
}
