// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// patch merges a change into an object and stores the result. Only merge patches are served.
func (s *Server) patch(k *kind, key types.NamespacedName, subresource string, t types.PatchType, data []byte) (*record, error) {
	if t != types.MergePatchType {
		return nil, fmt.Errorf("patches of type %s are not served", t)
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	rules, err := k.endpoint(key.Name, subresource)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, found := s.storage[k].records[key]
	if !found {
		return nil, apierrors.NewNotFound(k.groupResource(), key.Name)
	}
	content, err := contentOf(old.object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	next := &unstructured.Unstructured{Object: merged(content, change)}
	next.SetGroupVersionKind(k.gvk)
	o, err := k.decode(next)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.replace(k, rules, key, o)
}

// merged is content after a merge patch (RFC 7396). Content is used up.
func merged(content, change map[string]any) map[string]any {
	if content == nil {
		content = map[string]any{}
	}
	for name, value := range change {
		inner, is := value.(map[string]any)
		switch {
		case value == nil:
			delete(content, name)
		case is:
			below, _ := content[name].(map[string]any)
			content[name] = merged(below, inner)
		default:
			content[name] = value
		}
	}
	return content
}
