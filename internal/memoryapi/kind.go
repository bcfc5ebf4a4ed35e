// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// strategy has the rules of one endpoint.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// kind is one kind that is served. Its objects have two forms: the one that the rules are applied to, which is unstructured
// for custom resources and typed for built-in kinds, and the type of the scheme.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
	// custom is set for custom resources.
	custom bool
	// main has the rules of the kind, status those of its status subresource; nil without one.
	main   strategy
	status rest.RESTUpdateStrategy
	// orphans says that a deletion without a policy orphans what the object owns.
	orphans bool
	// ungathered says that the garbage collector leaves the kind alone.
	ungathered bool
	// grace is how many seconds an object has to end after it is asked to; nil: objects do not end gracefully.
	grace func(client.Object, *metav1.DeleteOptions) int64
	// decode turns what a client sends into the form of the rules. It makes a copy and applies defaults.
	decode func(client.Object) (client.Object, error)
	// complete adds the defaults that an object as stored lacks when it is read, and says whether there were any.
	complete func(client.Object) (client.Object, bool)
	// typed turns an object from the form of the rules into the type of the scheme. It makes a copy.
	typed func(client.Object) (client.Object, error)
	// selectable are the fields that field selectors may name.
	selectable sets.Set[string]
	// fields are what field selectors see of an object.
	fields func(client.Object) (fields.Set, error)
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

// kindsOf returns every kind that is served.
func kindsOf(scheme *runtime.Scheme, crdDir string) ([]*kind, error) {
	definitions, err := definitionsIn(crdDir)
	if err != nil {
		return nil, err
	}
	kinds := builtins(scheme)
	for _, d := range definitions {
		kinds = append(kinds, customKind(scheme, d))
	}
	for _, k := range kinds {
		if _, err := scheme.New(k.gvk); err != nil {
			return nil, fmt.Errorf("the scheme does not know %s: %w", k.gvk, err)
		}
	}
	return kinds, nil
}

// mapperOf knows the resources of the kinds.
func mapperOf(kinds []*kind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds {
		scope := meta.RESTScopeRoot
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		plural := k.gvk.GroupVersion().WithResource(k.resource)
		mapper.AddSpecific(k.gvk, plural, plural, scope)
	}
	return mapper
}
