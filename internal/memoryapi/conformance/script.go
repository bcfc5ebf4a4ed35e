// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// What a server may say to a request, beside yes.
const (
	ok         metav1.StatusReason = ""
	invalid                        = metav1.StatusReasonInvalid
	conflict                       = metav1.StatusReasonConflict
	notFound                       = metav1.StatusReasonNotFound
	exists                         = metav1.StatusReasonAlreadyExists
	badRequest                     = metav1.StatusReasonBadRequest
	forbidden                      = metav1.StatusReasonForbidden
	// unexpected is an error without a reason.
	unexpected = metav1.StatusReason("(no reason)")
	// refusedHere is what a client says before it sends anything.
	refusedHere metav1.StatusReason = "(by the client)"
)

// Script tries one sentence on a server and writes down what it answers.
type Script struct {
	*testing.T
	ctx       context.Context
	client    client.Client
	namespace string
	lines     []string
	// names stand for what differs from server to server: namespaces, UIDs, resource versions, generated names.
	names map[string]string
}

func newScript(t *testing.T, c client.Client, namespace string) *Script {
	s := &Script{T: t, ctx: t.Context(), client: c, namespace: namespace, names: map[string]string{}}
	s.names[namespace] = "NAMESPACE"
	return s
}

// object reads an object from YAML. It is put into the namespace of the script.
func (s *Script) object(text string) *unstructured.Unstructured {
	s.Helper()
	u := &unstructured.Unstructured{Object: s.content(text)}
	if u.GetAPIVersion() == "" {
		u.SetAPIVersion("batch.reprise.dev/v1alpha1")
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(s.namespace)
	}
	return u
}

func (s *Script) content(text string) map[string]any {
	s.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	return content
}

// set sets a field of an object.
func (s *Script) set(o *unstructured.Unstructured, value any, path ...string) {
	s.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		s.Fatal(err)
	}
}

// create creates what the text says.
func (s *Script) create(text string, want metav1.StatusReason) *unstructured.Unstructured {
	s.Helper()
	o := s.object(text)
	s.createObject(o, want)
	return o
}

func (s *Script) createObject(o client.Object, want metav1.StatusReason) {
	s.Helper()
	s.answered("create", o, s.client.Create(s.ctx, o), want)
}

// update changes an object as the text says, null for what is to go, and updates it.
func (s *Script) update(o *unstructured.Unstructured, text string, want metav1.StatusReason) {
	s.Helper()
	merge(o.Object, s.content(text))
	s.updateObject(o, want)
}

func (s *Script) updateObject(o client.Object, want metav1.StatusReason) {
	s.Helper()
	s.answered("update", o, s.client.Update(s.ctx, o), want)
}

// status is update for the status subresource.
func (s *Script) status(o *unstructured.Unstructured, text string, want metav1.StatusReason) {
	s.Helper()
	merge(o.Object, s.content(text))
	s.statusObject(o, want)
}

func (s *Script) statusObject(o client.Object, want metav1.StatusReason) {
	s.Helper()
	s.answered("status", o, s.client.Status().Update(s.ctx, o), want)
}

// patch sends the text as a merge patch.
func (s *Script) patch(o client.Object, text string, want metav1.StatusReason) {
	s.Helper()
	data, err := json.Marshal(s.content(text))
	if err != nil {
		s.Fatal(err)
	}
	s.answered("patch", o, s.client.Patch(s.ctx, o, client.RawPatch("application/merge-patch+json", data)), want)
}

// delete asks an object to go.
func (s *Script) delete(o client.Object, want metav1.StatusReason, how ...client.DeleteOption) {
	s.Helper()
	s.answered("delete", nil, s.client.Delete(s.ctx, o, how...), want)
}

// get reads an object anew and returns it.
func (s *Script) get(o client.Object, want metav1.StatusReason) *unstructured.Unstructured {
	s.Helper()
	gvk, err := s.client.GroupVersionKindFor(o)
	if err != nil {
		s.Fatal(err)
	}
	read := &unstructured.Unstructured{}
	read.SetGroupVersionKind(gvk)
	err = s.client.Get(s.ctx, client.ObjectKeyFromObject(o), read)
	s.answered("get", read, err, want)
	return read
}

// list reads the objects of a kind that are selected and returns their names.
func (s *Script) list(list client.ObjectList, want metav1.StatusReason, which ...client.ListOption) []string {
	s.Helper()
	err := s.client.List(s.ctx, list, append([]client.ListOption{client.InNamespace(s.namespace)}, which...)...)
	s.answered("list", nil, err, want)
	if err != nil {
		return nil
	}
	var found []string
	err = meta.EachListItem(list, func(o runtime.Object) error {
		item, is := o.(client.Object)
		if !is {
			return fmt.Errorf("%T is no object", o)
		}
		s.note("  item", s.shown(item))
		found = append(found, item.GetName())
		return nil
	})
	s.expect(err == nil, "the items: %v", err)
	s.note("  more", fmt.Sprint(list.GetContinue() != ""), "remaining", fmt.Sprint(remaining(list)))
	return found
}

// pages reads a list page by page, into the same list.
func (s *Script) pages(list client.ObjectList, size int64) []string {
	s.Helper()
	var all []string
	for more := ""; ; {
		all = append(all, s.list(list, ok, client.Limit(size), client.Continue(more))...)
		if more = list.GetContinue(); more == "" {
			return all
		}
	}
}

func remaining(list client.ObjectList) int64 {
	if n := list.GetRemainingItemCount(); n != nil {
		return *n
	}
	return -1
}

// answered writes down an answer and compares it with the one that is expected.
func (s *Script) answered(what string, o client.Object, err error, want metav1.StatusReason) {
	s.Helper()
	switch {
	case err != nil:
		s.note(what, s.named(refusal(err)))
	case o != nil:
		s.note(what, s.shown(o))
	default:
		s.note(what, "yes")
	}
	if got := reasonOf(err); got != want {
		s.Fatalf("%s: got %q, want %q: %v", what, got, want, err)
	}
}

// expect is an expectation of the script's own.
func (s *Script) expect(holds bool, format string, args ...any) {
	s.Helper()
	if !holds {
		s.Fatalf(format, args...)
	}
}

func (s *Script) note(words ...string) {
	s.lines = append(s.lines, strings.Join(words, " "))
}

// reasonOf is what an error says in one word.
func reasonOf(err error) metav1.StatusReason {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ok
	case errors.As(err, &status) && status.Status().Reason == "":
		return unexpected
	case errors.As(err, &status):
		return status.Status().Reason
	}
	return refusedHere
}

// refusal is an error without the words, which are the server's own: what it is about, and which fields are wrong how.
func refusal(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "refused by the client: " + err.Error()
	}
	st := status.Status()
	var causes []string
	about := ""
	if d := st.Details; d != nil {
		about = d.Group + "/" + d.Kind + "/" + d.Name
		for _, cause := range d.Causes {
			causes = append(causes, fmt.Sprintf("%s at %q", cause.Type, cause.Field))
		}
	}
	slices.Sort(causes)
	return fmt.Sprintf("refused: %s %d %s %v", st.Reason, st.Code, about, slices.Compact(causes))
}

// merge does to content what a merge patch says.
func merge(content, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(content, key)
		case isMap:
			under, ok := content[key].(map[string]any)
			if !ok {
				under = map[string]any{}
			}
			merge(under, inner)
			content[key] = under
		default:
			content[key] = value
		}
	}
}

// fieldsOf reads a field selector of the form name=value.
func fieldsOf(text string) client.MatchingFields {
	name, value, _ := strings.Cut(text, "=")
	return client.MatchingFields{name: value}
}
