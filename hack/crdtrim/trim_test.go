// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var templatePath = []string{"work", "job", "template"}

// embedded is a template schema with every alpha field of the table, each below a property of its parent's name.
func embedded() schema {
	s := schema{Type: "object", Description: "template is ours", XValidations: rules("theirs"), Properties: map[string]schema{}}
	for f := range alphaFields {
		parent, ok := s.Properties[f.parent]
		if !ok {
			parent = schema{Type: "object", Description: "of Kubernetes", XValidations: rules("theirs"), Properties: map[string]schema{}}
		}
		parent.Properties[f.name] = schema{Type: "string", Description: "an alpha field"}
		parent.Properties["stays"] = schema{Type: "string", Description: "of Kubernetes", MaxLength: new(int64(7))}
		s.Properties[f.parent] = parent
	}
	for path := range templateRules {
		put(&s, strings.Split(path, "."))
	}
	return s
}

// put makes a property, and what is above it, unless it is there.
func put(s *schema, path []string) {
	child, ok := s.Properties[path[0]]
	if !ok {
		child = schema{Type: "object", Description: "of Kubernetes", XValidations: rules("theirs")}
	}
	if child.Properties == nil {
		child.Properties = map[string]schema{}
	}
	if len(path) > 1 {
		put(&child, path[1:])
	}
	s.Properties[path[0]] = child
}

func rules(message string) apiextensionsv1.ValidationRules {
	return apiextensionsv1.ValidationRules{{Rule: "self == oldSelf", Message: message}}
}

func object(properties map[string]schema) schema {
	return schema{Type: "object", Description: "ours", XValidations: rules("ours"), Properties: properties}
}

// spec is a schema of ours with the template inside work.job.
func spec(template schema) schema {
	return object(map[string]schema{"work": object(map[string]schema{
		"http": object(nil),
		"job":  object(map[string]schema{"template": template, "skipExitCodes": object(nil)}),
	})})
}

func crdWith(t *testing.T, s schema) []byte {
	t.Helper()
	crd := apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "things.example.org"
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &s}},
	}
	data, err := yaml.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func trimmed(t *testing.T, data []byte) schema {
	t.Helper()
	out, err := trimFile(data, templatePath)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(out, &crd); err != nil {
		t.Fatal(err)
	}
	return *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

func TestOnlyTheEmbeddedTemplateIsEmptied(t *testing.T) {
	root := object(map[string]schema{"spec": spec(embedded()), "template": embedded()})
	got := trimmed(t, crdWith(t, root))

	outside := got.Properties["template"]
	if outside.Properties["spec"].Description == "" || len(outside.Properties["spec"].XValidations) == 0 {
		t.Error("a template that is not below work.job was changed")
	}
	job := got.Properties["spec"].Properties["work"].Properties["job"]
	if job.Description != "ours" || len(job.XValidations) != 1 || job.Properties["skipExitCodes"].Description != "ours" {
		t.Errorf("our own texts and rules at work.job are not kept: %+v", job)
	}
	template := job.Properties["template"]
	if template.Description != "template is ours" {
		t.Errorf("the description of our own field is %q", template.Description)
	}
	if len(template.XValidations) != 0 {
		t.Error("the validation rules of the Job are still there")
	}
	for f := range alphaFields {
		parent := template.Properties[f.parent]
		if _, ok := parent.Properties[f.name]; ok {
			t.Errorf("alpha field %s is still there", f)
		}
		stays := parent.Properties["stays"]
		if parent.Description != "" || len(parent.XValidations) != 0 || stays.Description != "" {
			t.Errorf("%s still has texts or rules of Kubernetes: %+v", f.parent, parent)
		}
		if stays.Type != "string" || *stays.MaxLength != 7 {
			t.Errorf("%s.stays lost its type or limit: %+v", f.parent, stays)
		}
	}
}

func TestTheTemplateIsFoundAtAnyDepthAndInLists(t *testing.T) {
	member := spec(embedded())
	root := object(map[string]schema{
		"status": object(map[string]schema{"resolvedSpec": spec(embedded())}),
		"spec": object(map[string]schema{
			"members": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &member}},
		}),
	})
	got := trimmed(t, crdWith(t, root))
	for where, s := range map[string]schema{
		"status.resolvedSpec": got.Properties["status"].Properties["resolvedSpec"],
		"spec.members[]":      *got.Properties["spec"].Properties["members"].Items.Schema,
	} {
		template := s.Properties["work"].Properties["job"].Properties["template"]
		if template.Properties["emptyDir"].Description != "" {
			t.Errorf("the template below %s still has descriptions", where)
		}
	}
}

func TestTrimmingTwiceChangesNothingMore(t *testing.T) {
	once, err := trimFile(crdWith(t, object(map[string]schema{"spec": spec(embedded())})), templatePath)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := trimFile(once, templatePath)
	if err != nil {
		t.Fatal(err)
	}
	if string(once) != string(twice) {
		t.Errorf("the second time gave something else:\n%s\n---\n%s", once, twice)
	}
}

func TestANewReleaseOfKubernetesMakesThePersonLookAtTheTables(t *testing.T) {
	renamed := embedded()
	delete(renamed.Properties["emptyDir"].Properties, "mode")
	added := embedded()
	added.Properties["spec"].Properties["novelty"] = schema{Type: "string", Description: "(Alpha) something new"}

	for name, tc := range map[string]struct {
		template schema
		want     string
	}{
		"a listed field is gone":           {renamed, "no field emptyDir.mode"},
		"a field speaks of alpha unlisted": {added, "spec.novelty speaks of alpha"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trimFile(crdWith(t, object(map[string]schema{"spec": spec(tc.template)})), templatePath)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestACRDThatStaysTooLargeIsRefused(t *testing.T) {
	big := object(nil)
	big.Description = strings.Repeat("x", maxBytes)
	if _, err := trimFile(crdWith(t, big), templatePath); err == nil {
		t.Error("a CRD above the limit was written")
	}
}

func TestWithoutPathOrFilesNothingIsDone(t *testing.T) {
	if run("", []string{"a.yaml"}) == nil || run("work.job.template", nil) == nil {
		t.Error("no error")
	}
}
