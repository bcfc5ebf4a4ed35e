// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// trim finds, at any depth, the properties that the path names one below the other, and empties what is under the last.
func trim(s *schema, path []string) error {
	err := eachChild(s, func(_ string, child *schema) error { return trim(child, path) })
	return errors.Join(err, at(s, path, trimTemplate))
}

// at edits the schema at the end of the path, if the path leads anywhere. Properties are kept by value, so every schema
// on the way is stored again.
func at(s *schema, path []string, edit func(*schema) error) error {
	if len(path) == 0 {
		return edit(s)
	}
	child, ok := s.Properties[path[0]]
	if !ok {
		return nil
	}
	err := at(&child, path[1:], edit)
	s.Properties[path[0]] = child
	return err
}

// trimTemplate empties the schema of an embedded template, whose own description is ours.
func trimTemplate(s *schema) error {
	ours := s.Description
	found := findings{alpha: map[field]bool{}}
	err := found.clean("", s)
	s.Description = ours
	return errors.Join(err, found.complete(), restrict(s))
}

// findings are what the cleaning of one template has come across.
type findings struct {
	described bool
	alpha     map[field]bool
	unknown   []error
}

// clean strips and bounds a schema and everything below it. The name is that of the property it belongs to.
func (f *findings) clean(name string, s *schema) error {
	s.Description = ""
	s.XValidations = nil
	bound(s)
	for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
		here, description := field{name, property}, s.Properties[property].Description
		f.described = f.described || description != ""
		if _, ok := alphaFields[here]; ok {
			f.alpha[here] = true
			delete(s.Properties, property)
		} else if saysAlpha.MatchString(description) && graduated[here] == "" {
			f.unknown = append(f.unknown, fmt.Errorf("the description of %s speaks of alpha: list it in alpha.go", here))
		}
	}
	return eachChild(s, func(property string, child *schema) error {
		if property == "" {
			property = name // an item of a list, or a value of a map, belongs to the property that holds it
		}
		return f.clean(property, child)
	})
}

// complete complains where the tables of alpha.go do not fit the Kubernetes that was generated from. A file that was
// trimmed before has no descriptions and no alpha field, so there is nothing to compare with.
func (f *findings) complete() error {
	if !f.described {
		return nil
	}
	errs := f.unknown
	for _, listed := range slices.SortedFunc(maps.Keys(alphaFields), field.compare) {
		if !f.alpha[listed] {
			errs = append(errs, fmt.Errorf("there is no field %s: renamed, or gone? Correct alpha.go", listed))
		}
	}
	return errors.Join(errs...)
}

// eachChild visits the schemas right below one, in order, and stores what the visit changes. Items and values have no
// name.
func eachChild(s *schema, visit func(name string, child *schema) error) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		child := s.Properties[name]
		errs = append(errs, visit(name, &child))
		s.Properties[name] = child
	}
	if s.Items != nil && s.Items.Schema != nil {
		errs = append(errs, visit("", s.Items.Schema))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		errs = append(errs, visit("", s.AdditionalProperties.Schema))
	}
	return errors.Join(errs...)
}
