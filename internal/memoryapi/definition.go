// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"reprise.dev/reprise/internal/controlplane"
)

// definition is the stored version of a custom resource definition, compiled.
type definition struct {
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
	hasStatus  bool
	selectable []selectableField

	structural *structuralschema.Structural
	whole      validation.SchemaValidator
	status     validation.SchemaValidator
	// view is the schema with which versions are compared.
	view *schemaView
	// rules are the CEL rules; nil if there are none.
	rules *ruleNode
}

// compiled has the definitions by directory: compiling takes longer than thousands of writes.
var compiled sync.Map

// definitionsIn returns the definitions of a directory, compiled once per process.
func definitionsIn(dir string) ([]*definition, error) {
	if dir == "" {
		root, err := controlplane.Root()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(root, "config", "crd", "bases")
	}
	once, _ := compiled.LoadOrStore(dir, sync.OnceValues(func() ([]*definition, error) { return compileAll(dir) }))
	return as[func() ([]*definition, error)](once)()
}

func compileAll(dir string) ([]*definition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no custom resource definitions in %s", dir)
	}
	var all []*definition
	for _, file := range files {
		d, err := compileFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, d)
	}
	return all, nil
}

func compileFile(file string) (*definition, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, err
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return compile(crd, v)
		}
	}
	return nil, fmt.Errorf("no version is stored")
}

func compile(crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion) (*definition, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, err
	}
	whole, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	d := &definition{
		gvk:        schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
		resource:   crd.Spec.Names.Plural,
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		structural: structural,
		whole:      whole,
		view:       viewOf(structural),
	}
	if d.rules, err = compileRules(structural); err != nil {
		return nil, err
	}
	if d.selectable, err = selectableFields(v.SelectableFields); err != nil {
		return nil, err
	}
	if v.Subresources == nil || v.Subresources.Status == nil {
		return d, nil
	}
	d.hasStatus = true
	status := props.Properties["status"]
	d.status, _, err = validation.NewSchemaValidator(&status)
	return d, err
}
