// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shown is an object as it was answered, without what one server has to say otherwise than another: UIDs, resource versions
// and generated names are numbered in the order in which they appear, and times of the server are only said to be there.
func (s *Script) shown(o client.Object) string {
	s.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		s.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
	if _, typed := o.(*unstructured.Unstructured); typed {
		s.learn(u)
	} else if accessor, err := meta.Accessor(o); err == nil && accessor.GetName() != "" {
		s.learn(u)
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if text, ok := metadata[name].(string); ok {
			if !strings.HasSuffix(text, "Z") || len(text) != len("2026-11-20T07:00:00Z") {
				s.Fatalf("%s is not in whole seconds: %s", name, text)
			}
			metadata[name] = "SET"
		}
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		s.Fatal(err)
	}
	return s.named(string(data))
}

// learn gives names to what differs from server to server.
func (s *Script) learn(u *unstructured.Unstructured) {
	s.name(string(u.GetUID()), "UID")
	s.name(u.GetResourceVersion(), "VERSION")
	if prefix := u.GetGenerateName(); prefix != "" && strings.HasPrefix(u.GetName(), prefix) {
		s.name(u.GetName(), "GENERATED")
	}
}

func (s *Script) name(value, kind string) {
	if value == "" || s.names[value] != "" {
		return
	}
	n := 1
	for _, name := range s.names {
		if strings.HasPrefix(name, kind) {
			n++
		}
	}
	s.names[value] = fmt.Sprintf("%s%d", kind, n)
}

// named puts the names in. Resource versions are short numbers, so only those that stand alone are meant.
func (s *Script) named(text string) string {
	longest := slices.SortedFunc(maps.Keys(s.names), func(a, b string) int { return len(b) - len(a) })
	for _, value := range longest {
		name := s.names[value]
		if strings.HasPrefix(name, "VERSION") {
			text = strings.ReplaceAll(text, fmt.Sprintf("%q:%q", "resourceVersion", value), fmt.Sprintf("%q:%q", "resourceVersion", name))
			continue
		}
		text = strings.ReplaceAll(text, value, name)
	}
	return text
}
