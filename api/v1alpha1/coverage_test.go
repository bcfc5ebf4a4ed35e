// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// promise is one validation in a generated CRD.
type promise struct {
	kind string
	// path of the field; [] is any item of a list.
	path string
	// says is a part of the message of a refusal.
	says string
	// bound is the number that is just accepted, of a value or of items, if there is one.
	bound *int64
}

func (p promise) String() string { return fmt.Sprintf("%s %s: %s", p.kind, p.path, p.says) }

// inherited are the parts of our kinds that Kubernetes defines.
var inherited = regexp.MustCompile(`work\.job\.template\.|status\.conditions\[]|^metadata|^kind|^apiVersion`)

// promises collects the validations below one schema. required says that the field has to be there.
func promises(kind, path string, required bool, s *apiextensionsv1.JSONSchemaProps) []promise {
	var found []promise
	for _, rule := range s.XValidations {
		at := strings.TrimPrefix(path+rule.FieldPath, ".")
		for _, says := range messages(rule) {
			found = append(found, promise{kind, at, says, nil})
		}
	}
	if !inherited.MatchString(path) {
		found = append(found, promisedHere(kind, path, required, s)...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		found = append(found, promises(kind, strings.TrimPrefix(path+"."+name, "."), slices.Contains(s.Required, name), &child)...)
	}
	if s.Items != nil {
		found = append(found, promises(kind, path+"[]", false, s.Items.Schema)...)
	}
	return found
}

// told finds what an expression of hack/crdtrim/transitions.go tells.
var told = regexp.MustCompile(`\? '' : '; ([^']+)'`)

// messages are what a rule says of what it refuses.
func messages(rule apiextensionsv1.ValidationRule) []string {
	if rule.MessageExpression == "" {
		return []string{rule.Message}
	}
	var all []string
	for _, found := range told.FindAllStringSubmatch(rule.MessageExpression, -1) {
		all = append(all, found[1])
	}
	return all
}

// promisedHere collects the validations of one schema but for its rules.
func promisedHere(kind, path string, required bool, s *apiextensionsv1.JSONSchemaProps) []promise {
	var found []promise
	add := func(says string, bound *int64) { found = append(found, promise{kind, path, says, bound}) }
	if required {
		add("Required value", nil)
	}
	if len(s.Enum) > 0 {
		add("supported values", nil)
	}
	if s.Pattern != "" {
		add("should match", nil)
	}
	bounds(s, add)
	if s.Items != nil && ptr.Deref(s.XListType, "atomic") != "atomic" {
		found = append(found, promise{kind, path + "[]", "Duplicate value", nil})
	}
	return found
}

func bounds(s *apiextensionsv1.JSONSchemaProps, add func(says string, bound *int64)) {
	if s.Minimum != nil {
		add(fmt.Sprintf("greater than or equal to %d", int64(*s.Minimum)), ptr.To(int64(*s.Minimum)))
	}
	if s.Maximum != nil {
		add(fmt.Sprintf("less than or equal to %d", int64(*s.Maximum)), ptr.To(int64(*s.Maximum)))
	}
	if s.MinLength != nil {
		add(fmt.Sprintf("at least %d chars long", *s.MinLength), nil)
	}
	if s.MaxLength != nil {
		add(fmt.Sprintf("may not be more than %d", *s.MaxLength), nil)
	}
	if s.MinItems != nil {
		add(fmt.Sprintf("at least %d items", *s.MinItems), nil)
	}
	if s.MaxItems != nil {
		add(fmt.Sprintf("at most %d items", *s.MaxItems), s.MaxItems)
	}
}

var index = regexp.MustCompile(`\[[0-9]+]`)

// meets says whether the outcome is a refusal for the promise.
func (p promise) meets(o outcome) bool {
	if o.object.GetKind() != p.kind {
		return false
	}
	return slices.ContainsFunc(o.causes(), func(cause metav1.StatusCause) bool {
		return index.ReplaceAllString(cause.Field, "[]") == p.path && strings.Contains(cause.Message, p.says)
	})
}

// atBound says whether the accepted object has the value that is just accepted.
func (p promise) atBound(o outcome) bool {
	return slices.ContainsFunc(values(o.object.Object, strings.Split(p.path, ".")), func(value any) bool {
		if items, ok := value.([]any); ok {
			value = int64(len(items))
		}
		return value == *p.bound
	})
}

// values returns what is at a path, in every item of the lists on it.
func values(content any, path []string) []any {
	if len(path) == 0 {
		return []any{content}
	}
	fields, _ := content.(map[string]any)
	name, ofItems := strings.CutSuffix(path[0], "[]")
	value, ok := fields[name]
	if !ok {
		return nil
	}
	if !ofItems {
		return values(value, path[1:])
	}
	var all []any
	items, _ := value.([]any)
	for _, item := range items {
		all = append(all, values(item, path[1:])...)
	}
	return all
}

// cover finds every validation in the CRDs and asks for a rule, in the tables, of which one variant was refused for it and
// another was accepted; and for an accepted variant with the very value of the bound, if it has one.
func cover(t *testing.T, outcomes []outcome) {
	t.Helper()
	bySentence := map[string][]outcome{}
	for _, o := range outcomes {
		key := o.object.GetKind() + o.sentence
		bySentence[key] = append(bySentence[key], o)
	}
	for kind, crd := range definitions(t) {
		found := promises(kind, "", false, crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if len(found) == 0 {
			t.Errorf("no validation found in %s", kind)
		}
		for _, p := range found {
			if complaint := p.lacks(bySentence); complaint != "" {
				t.Errorf("%s: %s", p, complaint)
			}
		}
	}
}

// lacks says which case is missing; "" is none.
func (p promise) lacks(bySentence map[string][]outcome) string {
	refused, accepted, bound := false, false, p.bound == nil
	for _, tried := range bySentence {
		good := slices.ContainsFunc(tried, func(o outcome) bool { return o.err == nil })
		bad := slices.ContainsFunc(tried, p.meets)
		refused = refused || bad
		accepted = accepted || bad && good
		bound = bound || bad && slices.ContainsFunc(tried, func(o outcome) bool { return o.err == nil && p.atBound(o) })
	}
	switch {
	case !refused:
		return "no variant is refused for it"
	case !accepted:
		return "no variant is accepted beside the refused one"
	case !bound:
		return fmt.Sprintf("no variant has just %d", *p.bound)
	default:
		return ""
	}
}
