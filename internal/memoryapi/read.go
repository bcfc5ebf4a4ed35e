// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// get returns the record of an object.
func (s *Server) get(k *kind, key types.NamespacedName) (*record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.storage[k].records[key]
	if !found {
		return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
	}
	return r, nil
}

// keepType is answer for writes: the type metadata stays as the caller had it.
func (k *kind) keepType(r *record, o client.Object) error {
	gvk := o.GetObjectKind().GroupVersionKind()
	if err := k.answer(r, o); err != nil {
		return err
	}
	if !gvk.Empty() {
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return nil
}

// answer writes a record into the caller's object.
func (k *kind) answer(r *record, o client.Object) error {
	if u, ok := o.(*unstructured.Unstructured); ok {
		content, err := contentOf(r.object)
		if err != nil {
			return err
		}
		u.Object = content
		u.SetGroupVersionKind(k.gvk)
		return nil
	}
	if reflect.TypeOf(o) != reflect.TypeOf(r.typed) {
		return fmt.Errorf("a %T is no %s: only the scheme's types and unstructured objects are served", o, k.gvk.Kind)
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(copyOf(r.typed)).Elem())
	return nil
}
