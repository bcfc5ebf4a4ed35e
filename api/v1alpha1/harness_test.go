// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// rule is one promise of the API: variants of an object that it accepts, and variants that it refuses. Variants are merge
// patches in YAML.
type rule struct {
	// base is the object, without apiVersion and, as a rule, without metadata.
	base string
	// stored are written to the API server beforehand, one after the other. The variants are then updates of what they made;
	// without stored they are creations. A patch with a status goes to the status, another one to the rest.
	stored []string
	// accept and refuse are the variants.
	accept, refuse []string
	// at is the field that every refusal names; "" is the object as a whole.
	at string
	// says is a part of every refusal's message.
	says string
	// also are parts of the messages of other rules, which the variants cannot but break too.
	also []string
}

// rules are promises by the sentence that states them.
type rules map[string]rule

// created is for rules about updates of an object that is just as base says.
var created = []string{"{}"}

// outcome is what the API server said to one variant.
type outcome struct {
	sentence string
	rule     rule
	variant  string
	refuse   bool // what is expected
	object   *unstructured.Unstructured
	err      error
}

// causes returns the reasons of a refusal, but for the remark that others may follow.
func (o outcome) causes() []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(o.err, &status) || status.Status().Details == nil {
		return nil
	}
	var causes []metav1.StatusCause
	for _, cause := range status.Status().Details.Causes {
		if strings.Contains(cause.Message, "some validation rules were not checked") {
			continue
		}
		if cause.Field == "<nil>" {
			cause.Field = ""
		}
		causes = append(causes, cause)
	}
	return causes
}

// complaint says what is wrong with the outcome; "" is nothing. A refusal has to have the expected reason and no other: a
// variant that breaks two rules proves neither.
func (o outcome) complaint() string {
	if !o.refuse {
		if o.err != nil {
			return fmt.Sprintf("not accepted: %v", o.err)
		}
		return ""
	}
	if o.err == nil {
		return "accepted"
	}
	causes := o.causes()
	if !apierrors.IsInvalid(o.err) || len(causes) == 0 {
		return fmt.Sprintf("refused as something else than invalid: %v", o.err)
	}
	seen := false
	for _, cause := range causes {
		switch {
		case cause.Field == o.rule.at && strings.Contains(cause.Message, o.rule.says):
			seen = true
		case !slices.ContainsFunc(o.rule.also, func(also string) bool { return strings.Contains(cause.Message, also) }):
			return fmt.Sprintf("refused for %q: %s\nwant %q: %s", cause.Field, cause.Message, o.rule.at, o.rule.says)
		}
	}
	if !seen {
		return fmt.Sprintf("not refused for %q: %s", o.rule.at, o.rule.says)
	}
	return ""
}

// check reports what the API server says to the variants of every rule.
func check(t *testing.T, table rules) []outcome {
	t.Helper()
	var all []outcome
	for sentence, r := range table {
		t.Run(sentence, func(t *testing.T) {
			outcomes := try(t, sentence, r)
			for _, o := range outcomes {
				if complaint := o.complaint(); complaint != "" {
					t.Errorf("%s\n%s", short(o.variant), complaint)
				}
			}
			all = append(all, outcomes...)
		})
	}
	return all
}

// try shows the variants of a rule to the API server, without storing them.
func try(t *testing.T, sentence string, r rule) []outcome {
	t.Helper()
	base := parsed(r.base)
	base["apiVersion"] = batchv1alpha1.GroupVersion.String()
	existing := ""
	if r.stored != nil {
		existing = store(t, base, r.stored)
	}
	var outcomes []outcome
	add := func(variants []string, refuse bool) {
		for _, variant := range variants {
			o := outcome{sentence: sentence, rule: r, variant: variant, refuse: refuse}
			if existing == "" {
				o.object = object(merged(base, parsed(variant)), "variant")
				o.err = api.Create(t.Context(), o.object, client.DryRunAll)
			} else {
				o.object = object(base, existing)
				o.err = patch(t.Context(), o.object, parsed(variant), client.DryRunAll)
			}
			outcomes = append(outcomes, o)
		}
	}
	add(r.accept, false)
	add(r.refuse, true)
	return outcomes
}

// store creates an object from base, applies the patches to it, and returns its name. It is deleted when the test ends.
func store(t *testing.T, base map[string]any, patches []string) string {
	t.Helper()
	o := object(base, "")
	if o.GetName() == "" {
		o.SetGenerateName("stored-")
	}
	if err := api.Create(t.Context(), o); err != nil {
		t.Fatalf("the object to start from: %v", err)
	}
	t.Cleanup(func() {
		if err := api.Delete(context.Background(), o); err != nil {
			t.Error(err)
		}
	})
	for _, p := range patches {
		if err := patch(t.Context(), object(base, o.GetName()), parsed(p)); err != nil {
			t.Fatalf("preparing with %s: %v", p, err)
		}
	}
	return o.GetName()
}

// patch merges changes into the stored object, through the status if they are about the status.
func patch(ctx context.Context, o *unstructured.Unstructured, changes map[string]any, options ...client.PatchOption) error {
	data, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	raw := client.RawPatch(types.MergePatchType, data)
	if _, ok := changes["status"]; !ok {
		return api.Patch(ctx, o, raw, options...)
	}
	status := make([]client.SubResourcePatchOption, len(options))
	for i, option := range options {
		status[i] = option.(client.SubResourcePatchOption)
	}
	return api.Status().Patch(ctx, o, raw, status...)
}

// object makes an API object of content; name is for content that has none.
func object(content map[string]any, name string) *unstructured.Unstructured {
	o := (&unstructured.Unstructured{Object: content}).DeepCopy()
	o.SetNamespace(namespace)
	if o.GetName() == "" {
		o.SetName(name)
	}
	return o
}

// parsed reads YAML, or panics: tables are constant.
func parsed(text string) map[string]any {
	content := map[string]any{}
	if json.Unmarshal([]byte(text), &content) == nil { // JSON may hold characters that YAML has to escape
		return content
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		err = json.Unmarshal(data, &content)
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", short(text), err))
	}
	return content
}

// with returns a document with a merge patch applied.
func with(text, change string) string {
	data, err := json.Marshal(merged(parsed(text), parsed(change)))
	if err != nil {
		panic(err)
	}
	return string(data)
}

// merged applies a JSON merge patch (RFC 7386).
func merged(target, patch map[string]any) map[string]any {
	result := maps.Clone(target)
	if result == nil {
		result = map[string]any{}
	}
	for key, value := range patch {
		child, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(result, key)
		case isMap:
			old, _ := result[key].(map[string]any)
			result[key] = merged(old, child)
		default:
			result[key] = value
		}
	}
	return result
}

// each puts values into a variant, one variant a value.
func each(format string, values ...any) []string {
	variants := make([]string, len(values))
	for i, value := range values {
		variants[i] = fmt.Sprintf(format, value)
	}
	return variants
}

// set returns variants that set one field, given by its path, to each of the values.
func set(path string, values ...any) []string {
	variants := make([]string, len(values))
	for i, value := range values {
		variants[i] = nest(path, value)
	}
	return variants
}

// nest returns the variant that has the content at the path and nothing else.
func nest(path string, content any) string {
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		content = map[string]any{name: content}
	}
	data, err := json.Marshal(content)
	if err != nil {
		panic(err) // tables hold plain values
	}
	return string(data)
}

// long returns a text of n letters.
func long(n int) string { return strings.Repeat("a", n) }

// list returns n items in YAML's flow style; $i in an item is its index, in two digits.
func list(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(item, "$i", fmt.Sprintf("%02d", i))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// short keeps failures readable.
func short(text string) string {
	const most = 300
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
