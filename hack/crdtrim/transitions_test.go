// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// reservation is the root of a kind with limits, with a rule at each level.
func reservation() schema {
	claims := schema{Type: "array", XListType: new("map"), XValidations: ruled("size(self) > 0"), Items: items("self.name != ''")}
	spec := schema{Type: "object", Properties: map[string]schema{
		"claims": claims, "queue": {Type: "string", XValidations: ruled("self != ''")}, "type": {Type: "string", XValidations: ruled("self == oldSelf")},
		"leaseDurationSeconds": {Type: "array", XListType: new("set"), Items: items("self > 1")}, "waitTimeoutSeconds": {},
		"renewTime": {Type: "string", XValidations: ruled("self > 'a'")}, "release": {}, "holderIdentity": {}, "ttlSecondsAfterFinished": {},
	}, XValidations: ruled("has(self.queue) || has(self.type)", "has(self.queue) || has(self.release)")}
	return schema{
		Type: "object", Properties: map[string]schema{"spec": spec, "status": {XValidations: ruled("self.phase != ''")}},
		XValidations: ruled("self.metadata.name != self.spec.queue", "self.spec.release", "self.status.phase != ''"),
	}
}

func items(rule string) *apiextensionsv1.JSONSchemaPropsOrArray {
	return &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &schema{XValidations: ruled(rule)}}
}

func ruled(all ...string) apiextensionsv1.ValidationRules {
	var made apiextensionsv1.ValidationRules
	for _, rule := range all {
		made = append(made, apiextensionsv1.ValidationRule{Rule: rule})
	}
	return made
}

// onlyAtCreation says of each rule of a schema whether it is evaluated only where the value is new.
func onlyAtCreation(s schema) []bool {
	var all []bool
	for _, r := range s.XValidations {
		all = append(all, r.OptionalOldSelf != nil && *r.OptionalOldSelf && strings.HasPrefix(r.Rule, "oldSelf.hasValue() || ("))
	}
	return all
}

func TestRulesAboutNothingButFixedFieldsAreEvaluatedOnlyWhereTheseAreNew(t *testing.T) {
	root := reservation()
	if err := confine("DirectReservation", &root); err != nil {
		t.Fatal(err)
	}
	spec := root.Properties["spec"]
	for name, tc := range map[string]struct {
		schema schema
		want   []bool
	}{
		"of the object, beside the rule about changes": {root, []bool{true, false, false, false}},
		"of the spec":                                {spec, []bool{true, false}},
		"of the status":                              {root.Properties["status"], []bool{false}},
		"of a fixed field":                           {spec.Properties["queue"], []bool{true}},
		"of a fixed list":                            {spec.Properties["claims"], []bool{true}},
		"of the items of a fixed list":               {*spec.Properties["claims"].Items.Schema, []bool{true}},
		"of items without a key, which have no past": {*spec.Properties["leaseDurationSeconds"].Items.Schema, []bool{false}},
		"of a field that may change":                 {spec.Properties["renewTime"], []bool{false}},
		"about a change":                             {spec.Properties["type"], []bool{false}},
	} {
		if got := onlyAtCreation(tc.schema); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v: %+v", name, got, tc.want, tc.schema.XValidations)
		}
	}
}

func TestAKindHasOneRuleAboutChangesOfItsSpec(t *testing.T) {
	root := reservation()
	for range 2 {
		if err := confine("DirectReservation", &root); err != nil {
			t.Fatal(err)
		}
	}
	var about []apiextensionsv1.ValidationRule
	for _, r := range root.XValidations {
		if r.FieldPath == ".spec" {
			about = append(about, r)
		}
	}
	if len(about) != 1 || !strings.HasPrefix(about[0].Rule, "self.status != oldSelf.status || (") {
		t.Fatalf("%+v", about)
	}
	for _, says := range []string{"queue is immutable", "leaseDurationSeconds is immutable; renew by setting renewTime", "renewTime only moves forward", "release cannot be taken back"} {
		if !strings.Contains(about[0].MessageExpression, "'; "+says) {
			t.Errorf("%q is never told: %s", says, about[0].MessageExpression)
		}
	}
}

func TestAKindWithoutLimitsStaysAsItIs(t *testing.T) {
	root := reservation()
	if err := confine("JobQueue", &root); err != nil || len(root.XValidations) != 3 || slices.Contains(onlyAtCreation(root), true) {
		t.Errorf("%v, %+v", err, root.XValidations)
	}
}

func TestEveryFieldOfASpecNeedsItsLimits(t *testing.T) {
	added, gone := reservation(), reservation()
	added.Properties["spec"].Properties["novelty"] = schema{}
	delete(gone.Properties["spec"].Properties, "queue")
	for want, root := range map[string]schema{
		"spec.novelty of DirectReservation: say in transitions.go how it may change": added,
		"DirectReservation has no spec.queue":                                        gone,
	} {
		if err := confine("DirectReservation", &root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
