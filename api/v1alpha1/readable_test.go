// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	stdjson "encoding/json"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// odd are values, in JSON, that a schema may let pass although the Go type cannot take them.
var odd = []string{
	`""`, `"x"`, `"1"`, `".5"`, `"5."`, `"+5"`, `"."`, `"1E"`, `"1e"`, `"1e5"`, `"1e-5"`, `"1e1.5"`, `"1e99"`, `"99999999999999999999999999Ei"`, `"80%"`,
	`0`, `-1`, `2147483647`, `2147483648`, `-2147483649`, `99999999999`, `9223372036854775807`, `9223372036854775808`, `1.0`, `1.5`, `1e30`, `true`, `[]`, `{}`, `[1]`,
}

// hanging is a quantity on which Go's decoder computes for hours.
const hanging = `"1e-999999999"`

// TestWhatTheAPIServerAcceptsClientsCanRead looks at every field that a user can write. A client that lists a kind cannot
// read any object of it while one of them cannot be decoded: one such object would stop the manager for everybody.
func TestWhatTheAPIServerAcceptsClientsCanRead(t *testing.T) {
	for kind, crd := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			leaves := 0
			eachLeaf(&properties, "spec", func(value string) string { return `{"spec":` + value + `}` }, func(l leaf) {
				leaves++
				if complaint := l.unreadable(t, kind); complaint != "" {
					t.Errorf("%s accepts %s", l.path, complaint)
				}
			})
			if leaves == 0 {
				t.Error("no field found")
			}
		})
	}
}

// leaf is a field that is no object, list or map.
type leaf struct {
	path   string
	schema *apiextensionsv1.JSONSchemaProps
	// wrap puts a value where it belongs in an object.
	wrap func(value string) string
}

func eachLeaf(s *apiextensionsv1.JSONSchemaProps, path string, wrap func(string) string, visit func(leaf)) {
	inside := func(before, after string) func(string) string {
		return func(value string) string { return wrap(before + value + after) }
	}
	for name, child := range s.Properties {
		eachLeaf(&child, path+"."+name, inside(fmt.Sprintf("{%q:", name), "}"), visit)
	}
	if s.Items != nil {
		eachLeaf(s.Items.Schema, path+"[]", inside("[", "]"), visit)
	}
	if s.AdditionalProperties != nil {
		eachLeaf(s.AdditionalProperties.Schema, path+".*", inside(`{"key":`, "}"), visit)
	}
	if s.Type != "object" && s.Type != "array" {
		visit(leaf{path, s, wrap})
	}
}

// unreadable returns a value that the schema accepts and the Go type does not, with the reason; "" if there is none.
func (l leaf) unreadable(t *testing.T, kind string) string {
	t.Helper()
	if l.schema.Format == "date-time" {
		// The format lets too much pass, and the schema can say no more; a rule that reads the time can. See badTimes.
		if len(l.schema.XValidations) == 0 {
			return "times that cannot be read, since no rule reads it"
		}
		return ""
	}
	validator := l.validator(t)
	if quantity := l.schema.XIntOrString && l.schema.Pattern != ""; quantity && validator.Validate(decoded(t, hanging)).IsValid() {
		return hanging
	}
	for _, value := range odd {
		content := decoded(t, value)
		if !validator.Validate(content).IsValid() {
			continue
		}
		stored, err := stdjson.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if err := stdjson.Unmarshal([]byte(l.wrap(string(stored))), typed(t, kind)); err != nil {
			return fmt.Sprintf("%s: %v", value, err)
		}
	}
	return ""
}

// validator judges values as the API server does, but for the rules.
func (l leaf) validator(t *testing.T) *validate.SchemaValidator {
	t.Helper()
	data, err := stdjson.Marshal(l.schema)
	if err != nil {
		t.Fatal(err)
	}
	schema := &spec.Schema{}
	if err := stdjson.Unmarshal(data, schema); err != nil {
		t.Fatal(err)
	}
	return validate.NewSchemaValidator(schema, nil, "", strfmt.Default)
}

// decoded reads JSON as the API server does.
func decoded(t *testing.T, value string) any {
	t.Helper()
	var wrapped map[string]any
	if err := json.Unmarshal([]byte(`{"value":`+value+`}`), &wrapped); err != nil {
		t.Fatal(err)
	}
	return wrapped["value"]
}

// typed returns an empty object of the kind.
func typed(t *testing.T, kind string) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := batchv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.New(batchv1alpha1.GroupVersion.WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	return object
}
