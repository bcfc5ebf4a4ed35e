// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// defaultNamespace gives a namespace the label and the phase that every namespace has.
func defaultNamespace(ns *corev1.Namespace) {
	if ns.Name != "" {
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
	}
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	ns.Status.Phase = corev1.NamespaceActive
}

// defaultSecret moves the plain strings of a secret to its data.
func defaultSecret(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// secretRules are those of secrets without a type of their own.
var secretRules = builtin[*corev1.Secret]{
	gvk: secretKind, namespaced: true, unconditional: true,
	validateUpdate: func(s, old *corev1.Secret) field.ErrorList {
		return apivalidation.ValidateImmutableField(s.Type, old.Type, field.NewPath("type"))
	},
}

// leaseRules are those of leases, which an update may create.
var leaseRules = builtin[*coordinationv1.Lease]{
	gvk: leaseKind, namespaced: true, upsert: true,
	validate:       validateLease,
	validateUpdate: func(l, _ *coordinationv1.Lease) field.ErrorList { return validateLease(l) },
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *d, "must be positive"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *n, "must not be negative"))
	}
	return errs
}

// eventRules are those of events, of which only the series may change.
var eventRules = builtin[*eventsv1.Event]{
	gvk: eventKind, namespaced: true, upsert: true, unconditional: true,
	validate: validateEvent,
	validateUpdate: func(e, old *eventsv1.Event) field.ErrorList {
		errs := validateEvent(e)
		for _, fixed := range []struct {
			name     string
			now, was any
		}{
			{"involvedObject", e.Regarding, old.Regarding},
			{"related", e.Related, old.Related},
			{"eventTime", e.EventTime, old.EventTime},
			{"reason", e.Reason, old.Reason},
			{"action", e.Action, old.Action},
			{"message", e.Note, old.Note},
			{"type", e.Type, old.Type},
			{"reportingController", e.ReportingController, old.ReportingController},
			{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
		} {
			errs = append(errs, apivalidation.ValidateImmutableField(fixed.now, fixed.was, field.NewPath(fixed.name))...)
		}
		return errs
	},
}

// Limits of the texts of an event.
const (
	eventWordLimit = 128
	eventNoteLimit = 1024
)

// coreEvents speaks of events, in errors, as of the kind in which a server keeps them.
type coreEvents struct{ runtime.ObjectTyper }

// ObjectKinds is that kind.
func (coreEvents) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Event")}, false, nil
}

func validateEvent(e *eventsv1.Event) field.ErrorList {
	errs := validateEventWords(e)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), e.Type, "must be Normal or Warning"))
	}
	if !besideItsObject(e) {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), e.Regarding.Namespace, "must be that of the event"))
	}
	if s := e.Series; s != nil && s.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), s.Count, "must be at least 2"))
	}
	return errs
}

// besideItsObject says whether an event is where what it is about is: in its namespace, or for what has none, in one of two.
func besideItsObject(e *eventsv1.Event) bool {
	if e.Regarding.Namespace == "" {
		return e.Namespace == metav1.NamespaceDefault || e.Namespace == metav1.NamespaceSystem
	}
	return e.Regarding.Namespace == e.Namespace
}

func validateEventWords(e *eventsv1.Event) field.ErrorList {
	var errs field.ErrorList
	for name, text := range map[string]string{"reportingController": e.ReportingController, "reportingInstance": e.ReportingInstance, "action": e.Action, "reason": e.Reason} {
		switch {
		case text == "":
			errs = append(errs, field.Required(field.NewPath(name), ""))
		case len(text) > eventWordLimit:
			errs = append(errs, field.Invalid(field.NewPath(name), text, "is too long"))
		}
	}
	for _, message := range validation.IsQualifiedName(e.ReportingController) {
		errs = append(errs, field.Invalid(field.NewPath("reportingController"), e.ReportingController, message))
	}
	if len(e.Note) > eventNoteLimit {
		errs = append(errs, field.Invalid(field.NewPath("message"), "", "is too long"))
	}
	return errs
}
