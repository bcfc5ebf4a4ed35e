// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQuantitiesOfAnyUseAreLetPassAndCanBeRead(t *testing.T) {
	readable := regexp.MustCompile(readableQuantity)
	for _, text := range []string{"0", "1", "100m", "1.5", ".5", "5.", "1Gi", "1.5Gi", "+5k", "-1", "1e3", "1E-3", "12E", "1e+9", "999999999999999999999999999999Ei"} {
		if !readable.MatchString(text) {
			t.Errorf("%s is refused", text)
		}
		if _, err := resource.ParseQuantity(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", ".", "1e1.5", "1e-999999999", "1e100", "1 Gi", "Gi", "1ki"} {
		if readable.MatchString(text) {
			t.Errorf("%s is let pass", text)
		}
	}
}

func TestWhatTheGoTypesCannotHoldIsRefused(t *testing.T) {
	template := embedded()
	template.Properties["quantity"] = schema{XIntOrString: true, Pattern: "^.*$"}
	template.Properties["port"] = schema{XIntOrString: true}
	template.Properties["name"] = schema{Type: "string", Pattern: "^a$"}
	got := trimmed(t, crdWith(t, object(map[string]schema{"spec": spec(template)})))
	properties := got.Properties["spec"].Properties["work"].Properties["job"].Properties["template"].Properties

	if quantity := properties["quantity"]; quantity.Pattern != readableQuantity || quantity.Maximum != nil {
		t.Errorf("a quantity became %+v", quantity)
	}
	if port := properties["port"]; port.Minimum == nil || *port.Minimum != math.MinInt32 || port.Maximum == nil || *port.Maximum != math.MaxInt32 {
		t.Errorf("a port became %+v", port)
	}
	if name := properties["name"]; name.Pattern != "^a$" {
		t.Errorf("a text became %+v", name)
	}
}
