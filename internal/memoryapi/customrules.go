// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
)

// customStrategy has the rules of a custom resource.
type customStrategy struct {
	quiet
	*definition
}

// NamespaceScoped says whether objects have a namespace.
func (s customStrategy) NamespaceScoped() bool { return s.namespaced }

// AllowCreateOnUpdate is false: an update does not create.
func (customStrategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: an update comes with a resource version.
func (customStrategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// PrepareForCreate drops the status, which only its own endpoint can set.
func (s customStrategy) PrepareForCreate(_ context.Context, o runtime.Object) {
	u := as[*unstructured.Unstructured](o)
	if s.hasStatus {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
}

// PrepareForUpdate keeps the status, and counts a generation if anything but metadata has changed.
func (s customStrategy) PrepareForUpdate(_ context.Context, o, old runtime.Object) {
	u, was := as[*unstructured.Unstructured](o), as[*unstructured.Unstructured](old)
	if s.hasStatus {
		if status, ok := was.Object["status"]; ok {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
	}
	if !apiequality.Semantic.DeepEqual(withoutMetadata(u), withoutMetadata(was)) {
		u.SetGeneration(was.GetGeneration() + 1)
	}
}

func withoutMetadata(u *unstructured.Unstructured) map[string]any {
	rest := make(map[string]any, len(u.Object))
	for key, value := range u.Object {
		if key != "metadata" {
			rest[key] = value
		}
	}
	return rest
}

// Validate says what is wrong with a new object.
func (s customStrategy) Validate(ctx context.Context, o runtime.Object) field.ErrorList {
	u := as[*unstructured.Unstructured](o)
	errs := s.metadata(ctx, operation.Create, u, nil)
	errs = append(errs, validation.ValidateCustomResource(nil, u.Object, s.whole)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, s.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, u.Object)...)
	return append(errs, s.evaluate(errs, u, nil, nil)...)
}

// ValidateUpdate says what is wrong with the next version of an object. What was wrong already is tolerated where it is
// unchanged.
func (s customStrategy) ValidateUpdate(ctx context.Context, o, old runtime.Object) field.ErrorList {
	u, was := as[*unstructured.Unstructured](o), as[*unstructured.Unstructured](old)
	same := s.correlate(u, was)
	errs := s.metadata(ctx, operation.Update, u, was)
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, u.Object, was.Object, s.whole, validation.WithRatcheting(same))...)
	errs = append(errs, objectmeta.Validate(ctx, nil, u.Object, s.structural, false)...)
	errs = append(errs, s.lists(u, was)...)
	return append(errs, s.evaluate(errs, u, was, same)...)
}

func (s customStrategy) correlate(u, was *unstructured.Unstructured) *common.CorrelatedObject {
	return common.NewCorrelatedObject(u.Object, was.Object, s.view)
}

// lists checks that keys of lists are unique, unless they were not before.
func (s customStrategy) lists(u, was *unstructured.Unstructured) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, s.structural, u.Object)
	if len(errs) > 0 && len(listtype.ValidateListSetsAndMaps(nil, s.structural, was.Object)) > 0 {
		return nil
	}
	return errs
}

// blocking are the errors of an object that does not fit the schema.
var blocking = []field.ErrorType{
	field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid,
}

// evaluate evaluates the CEL rules, which need an object that fits the schema.
func (s customStrategy) evaluate(before field.ErrorList, u, was *unstructured.Unstructured, same *common.CorrelatedObject) field.ErrorList {
	for _, err := range before {
		if slices.Contains(blocking, err.Type) {
			return field.ErrorList{field.Invalid(nil, nil, "the rules were not checked: the object does not fit the schema")}
		}
	}
	var old any
	if was != nil {
		old = was.Object
	}
	return s.rules.check(nil, u.Object, old, same, false)
}

// metadata checks what the metadata of every custom resource must be.
func (s customStrategy) metadata(ctx context.Context, t operation.Type, u, was *unstructured.Unstructured) field.ErrorList {
	now, err := metadataOf(u)
	if err != nil {
		return field.ErrorList{err}
	}
	var before *metav1.ObjectMeta
	var name apivalidation.ValidateNameFunc = apivalidation.NameIsDNSSubdomain
	if was != nil {
		if before, err = metadataOf(was); err != nil {
			return field.ErrorList{err}
		}
		name = nil
	}
	return apivalidation.ValidateObjectMetaDeclaratively(ctx, t, now, before, s.namespaced, name, field.NewPath("metadata"), true)
}

func metadataOf(u *unstructured.Unstructured) (*metav1.ObjectMeta, *field.Error) {
	content, _, _ := unstructured.NestedMap(u.Object, "metadata")
	metadata := &metav1.ObjectMeta{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, metadata); err != nil {
		return nil, field.Invalid(field.NewPath("metadata"), content, err.Error())
	}
	return metadata, nil
}

// customStatusStrategy has the rules of the status subresource.
type customStatusStrategy struct{ customStrategy }

// PrepareForUpdate keeps everything but the status.
func (customStatusStrategy) PrepareForUpdate(_ context.Context, o, old runtime.Object) {
	u := as[*unstructured.Unstructured](o)
	status, ok := u.Object["status"]
	*u = *as[*unstructured.Unstructured](old).DeepCopy()
	delete(u.Object, "status")
	if ok {
		u.Object["status"] = status
	}
}

// ValidateUpdate says what is wrong with the next status.
func (s customStatusStrategy) ValidateUpdate(ctx context.Context, o, old runtime.Object) field.ErrorList {
	u, was := as[*unstructured.Unstructured](o), as[*unstructured.Unstructured](old)
	same := s.correlate(u, was)
	errs := s.metadata(ctx, operation.Update, u, was)
	if status, ok := u.Object["status"]; ok {
		errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, was.Object["status"], s.status,
			validation.WithRatcheting(same.Key("status")))...)
	}
	errs = append(errs, s.lists(u, was)...)
	return append(errs, s.evaluate(errs, u, was, same)...)
}
