// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiserver/pkg/cel/common"
)

// schemaView is a schema as the evaluation of rules sees it. The library's own builds the views of all fields of an object each
// time that one field is read, which takes nine tenths of the time of a write; this one builds them once.
type schemaView struct {
	*model.Structural
	items      common.Schema
	properties map[string]common.Schema
	additional common.SchemaOrBool
}

// viewOf builds the view of a schema and of all that is in it.
func viewOf(s *structuralschema.Structural) *schemaView {
	v := &schemaView{Structural: &model.Structural{Structural: s}}
	if s.Items != nil {
		v.items = viewOf(s.Items)
	}
	if s.Properties != nil {
		v.properties = make(map[string]common.Schema, len(s.Properties))
		for name, property := range s.Properties {
			v.properties[name] = viewOf(&property)
		}
	}
	if a := s.AdditionalProperties; a != nil {
		view := &schemaOrBoolView{allows: a.Bool}
		if a.Structural != nil {
			view.schema = viewOf(a.Structural)
		}
		v.additional = view
	}
	return v
}

// Items is the view of the items of a list.
func (v *schemaView) Items() common.Schema { return v.items }

// Properties are the views of the fields of an object.
func (v *schemaView) Properties() map[string]common.Schema { return v.properties }

// AdditionalProperties is the view of the values of a map.
func (v *schemaView) AdditionalProperties() common.SchemaOrBool { return v.additional }

// schemaOrBoolView is what the values of a map are.
type schemaOrBoolView struct {
	schema common.Schema
	allows bool
}

// Schema of the values; nil if there is none.
func (v *schemaOrBoolView) Schema() common.Schema { return v.schema }

// Allows says whether there may be values.
func (v *schemaOrBoolView) Allows() bool { return v.allows }
