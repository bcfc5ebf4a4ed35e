// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestATemplateHasTheRulesOfOursAtTheFieldsAndNoOthers(t *testing.T) {
	got := trimmed(t, crdWith(t, object(map[string]schema{"spec": spec(embedded())})))
	template := got.Properties["spec"].Properties["work"].Properties["job"].Properties["template"]
	for path, want := range templateRules {
		field := template
		for _, name := range strings.Split(path, ".") {
			field = field.Properties[name]
		}
		if len(field.XValidations) != 1 || field.XValidations[0].Rule != want.Rule || field.XValidations[0].Message != want.Message {
			t.Errorf("%s has the rules %+v", path, field.XValidations)
		}
	}
}

func TestAFieldThatIsGoneFromTheTemplateMakesThePersonLookAtTheRules(t *testing.T) {
	template := embedded()
	delete(template.Properties["spec"].Properties, "suspend")
	_, err := trimFile(crdWith(t, object(map[string]schema{"spec": spec(template)})), templatePath)
	if err == nil || !strings.Contains(err.Error(), "no field spec.suspend") {
		t.Errorf("error %v", err)
	}
}
