// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"fmt"
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// customKind serves a custom resource.
func customKind(scheme *runtime.Scheme, d *definition) *kind {
	rules := customStrategy{quiet: quietly(scheme), definition: d}
	k := &kind{
		gvk: d.gvk, resource: d.resource, namespaced: d.namespaced, custom: true, main: rules,
		decode: d.decode, complete: d.complete, fields: d.fields,
		typed: func(o client.Object) (client.Object, error) { return toType(scheme, d.gvk, o) },
	}
	k.selectable = sets.KeySet(metadataFields(&unstructured.Unstructured{}))
	for _, f := range d.selectable {
		k.selectable.Insert(f.name)
	}
	if d.hasStatus {
		k.status = customStatusStrategy{customStrategy: rules}
	}
	return k
}

// decode does to an object that a client sends what an API server does before it looks at the rules.
func (d *definition) decode(o client.Object) (client.Object, error) {
	content, err := contentOf(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(d.gvk)
	metadata, found, err := objectmeta.GetObjectMeta(content, false)
	if err != nil {
		return nil, err
	}
	pruning.Prune(content, d.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(content, d.structural)
	if err := objectmeta.Coerce(nil, content, d.structural, false, false); err != nil {
		return nil, err
	}
	if found {
		if err := objectmeta.SetObjectMeta(content, metadata); err != nil {
			return nil, err
		}
	}
	defaulting.Default(content, d.structural)
	return u, nil
}

// complete applies the defaults of the definition to what is stored.
func (d *definition) complete(o client.Object) (client.Object, bool) {
	read := as[*unstructured.Unstructured](copyOf(o))
	defaulting.Default(read.Object, d.structural)
	return read, !apiequality.Semantic.DeepEqual(read.Object, as[*unstructured.Unstructured](o).Object)
}

// contentOf is the JSON form of an object; it shares nothing with it.
func contentOf(o client.Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return runtime.DeepCopyJSON(u.Object), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// toType makes an object of the scheme's type.
func toType(scheme *runtime.Scheme, gvk schema.GroupVersionKind, o client.Object) (client.Object, error) {
	made, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	u := as[*unstructured.Unstructured](o)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made); err != nil {
		return nil, err
	}
	typed, ok := made.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", made)
	}
	typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return typed, nil
}

// selectableField is a field that field selectors may name.
type selectableField struct {
	name string
	path []string
}

// plainPath is a path without the indexes and quotes that paths of definitions may have.
var plainPath = regexp.MustCompile(`^([.][a-zA-Z]+)+$`)

func selectableFields(declared []apiextensionsv1.SelectableField) ([]selectableField, error) {
	var all []selectableField
	for _, f := range declared {
		if !plainPath.MatchString(f.JSONPath) {
			return nil, fmt.Errorf("the selectable field %s is not served: only names with dots are", f.JSONPath)
		}
		name := f.JSONPath[1:]
		all = append(all, selectableField{name: name, path: strings.Split(name, ".")})
	}
	return all, nil
}

// fields are what field selectors see of a custom resource.
func (d *definition) fields(o client.Object) (fields.Set, error) {
	set := metadataFields(o)
	for _, f := range d.selectable {
		value, found, err := unstructured.NestedFieldNoCopy(as[*unstructured.Unstructured](o).Object, f.path...)
		if err != nil {
			return nil, err
		}
		set[f.name] = ""
		if found && value != nil {
			set[f.name] = fmt.Sprint(value)
		}
	}
	return set, nil
}

// metadataFields are the fields that can be selected by in every kind.
func metadataFields(o client.Object) fields.Set {
	return fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
}
