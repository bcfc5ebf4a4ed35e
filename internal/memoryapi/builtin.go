// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"context"
	"fmt"
	"reflect"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
	accountKind   = corev1.SchemeGroupVersion.WithKind("ServiceAccount")
	podKind       = corev1.SchemeGroupVersion.WithKind("Pod")
	jobKind       = batchv1.SchemeGroupVersion.WithKind("Job")
	leaseKind     = coordinationv1.SchemeGroupVersion.WithKind("Lease")
	eventKind     = eventsv1.SchemeGroupVersion.WithKind("Event")
)

// quiet is what strategies have in common: they know kinds, and have nothing more to say.
type quiet struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func quietly(typer runtime.ObjectTyper) quiet {
	return quiet{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator}
}

// WarningsOnCreate are none.
func (quiet) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }

// WarningsOnUpdate are none.
func (quiet) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string { return nil }

// Canonicalize changes nothing.
func (quiet) Canonicalize(runtime.Object) {}

// builtin has the rules of one endpoint of a built-in kind. Each function may be nil.
type builtin[T client.Object] struct {
	quiet
	gvk        schema.GroupVersionKind
	namespaced bool
	// upsert lets an update create the object.
	upsert bool
	// unconditional lets an update come without a resource version.
	unconditional bool

	// prepareCreate and prepareUpdate drop what the sender may not say.
	prepareCreate func(T)
	prepareUpdate func(o, old T)
	// validate and validateUpdate say what is wrong, beyond the metadata.
	validate       func(T) field.ErrorList
	validateUpdate func(o, old T) field.ErrorList
}

// known is the strategy with what it is to know of kinds.
func (s builtin[T]) known(typer runtime.ObjectTyper) builtin[T] {
	s.quiet = quietly(typer)
	return s
}

// NamespaceScoped says whether objects have a namespace.
func (s builtin[T]) NamespaceScoped() bool { return s.namespaced }

// AllowCreateOnUpdate says whether an update may create the object.
func (s builtin[T]) AllowCreateOnUpdate(context.Context) bool { return s.upsert }

// AllowUnconditionalUpdate says whether an update may come without a resource version.
func (s builtin[T]) AllowUnconditionalUpdate(context.Context) bool { return s.unconditional }

// PrepareForCreate drops what the sender may not say of a new object.
func (s builtin[T]) PrepareForCreate(_ context.Context, o runtime.Object) {
	if typed, ok := o.(T); ok && s.prepareCreate != nil {
		s.prepareCreate(typed)
	}
}

// PrepareForUpdate drops what the sender may not say of the next version of an object.
func (s builtin[T]) PrepareForUpdate(_ context.Context, o, old runtime.Object) {
	typed, ok := o.(T)
	before, okBefore := old.(T)
	if ok && okBefore && s.prepareUpdate != nil {
		s.prepareUpdate(typed, before)
	}
}

// Validate says what is wrong with a new object.
func (s builtin[T]) Validate(_ context.Context, o runtime.Object) field.ErrorList {
	typed, ok := o.(T)
	if !ok {
		return field.ErrorList{field.InternalError(nil, fmt.Errorf("%T is no %s", o, s.gvk.Kind))}
	}
	errs := apivalidation.ValidateObjectMetaAccessor(typed, s.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if s.validate != nil {
		errs = append(errs, s.validate(typed)...)
	}
	return errs
}

// ValidateUpdate says what is wrong with the next version of an object.
func (s builtin[T]) ValidateUpdate(_ context.Context, o, old runtime.Object) field.ErrorList {
	typed, ok := o.(T)
	before, okBefore := old.(T)
	if !ok || !okBefore {
		return field.ErrorList{field.InternalError(nil, fmt.Errorf("%T or %T is no %s", o, old, s.gvk.Kind))}
	}
	if s.validateUpdate == nil {
		return nil
	}
	return s.validateUpdate(typed, before)
}

// serve makes a kind of the rules of its endpoints.
func serve[T client.Object](scheme *runtime.Scheme, resource string, rules builtin[T], defaults func(T), more func(T) fields.Set) *kind {
	k := &kind{gvk: rules.gvk, resource: resource, namespaced: rules.namespaced, main: rules.known(scheme)}
	k.decode = func(o client.Object) (client.Object, error) {
		copied, err := copyAs[T](scheme, rules.gvk, o)
		if err != nil {
			return nil, err
		}
		if defaults != nil {
			defaults(copied)
		}
		return copied, nil
	}
	k.complete = func(o client.Object) (client.Object, bool) {
		if defaults == nil {
			return o, false
		}
		read := copyOf(as[T](o))
		defaults(read)
		return read, !apiequality.Semantic.DeepEqual(read, o)
	}
	k.typed = func(o client.Object) (client.Object, error) { return o, nil }
	k.selectable = sets.KeySet(metadataFields(&metav1.PartialObjectMetadata{}))
	if more != nil {
		k.selectable = k.selectable.Union(sets.KeySet(more(as[T](reflect.New(reflect.TypeFor[T]().Elem()).Interface()))))
	}
	k.fields = func(o client.Object) (fields.Set, error) {
		set := metadataFields(o)
		if typed, ok := o.(T); ok && more != nil {
			for name, value := range more(typed) {
				set[name] = value
			}
		}
		return set, nil
	}
	return k
}

// wire is the format in which objects of built-in kinds are sent.
type wire interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// copyAs copies an object of a built-in kind into the scheme's type as if it were sent: without its type metadata, and with
// times in the precision that the format has.
func copyAs[T client.Object](scheme *runtime.Scheme, gvk schema.GroupVersionKind, o client.Object) (T, error) {
	var none T
	made, err := scheme.New(gvk)
	if err != nil {
		return none, err
	}
	if sent, ok := o.(wire); ok {
		data, err := sent.Marshal()
		if err != nil {
			return none, err
		}
		return as[T](made), as[wire](made).Unmarshal(data)
	}
	content, err := contentOf(o)
	if err != nil {
		return none, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, made); err != nil {
		return none, err
	}
	made.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return as[T](made), nil
}

// builtins serves the kinds of Kubernetes that the product uses.
func builtins(scheme *runtime.Scheme) []*kind {
	job := serve(scheme, "jobs", jobRules, defaultJob, jobFields)
	job.status, job.orphans = jobStatusRules.known(scheme), true
	pod := serve(scheme, "pods", podRules, defaultPod, podFields)
	pod.status, pod.grace = podStatusRules.known(scheme), podGrace
	event := serve(scheme, "events", eventRules, nil, nil)
	event.main, event.ungathered = eventRules.known(coreEvents{ObjectTyper: scheme}), true
	return []*kind{
		serve(scheme, "namespaces", builtin[*corev1.Namespace]{gvk: namespaceKind, unconditional: true}, defaultNamespace, nil),
		serve(scheme, "secrets", secretRules, defaultSecret, func(s *corev1.Secret) fields.Set { return fields.Set{"type": string(s.Type)} }),
		serve(scheme, "serviceaccounts", builtin[*corev1.ServiceAccount]{gvk: accountKind, namespaced: true, unconditional: true}, nil, nil),
		serve(scheme, "leases", leaseRules, nil, nil),
		event, pod, job,
	}
}
