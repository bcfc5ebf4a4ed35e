// SPDX-License-Identifier: Apache-2.0

package memoryapi

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/common/types"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"
)

// ruleNode has the CEL rules of one place in a schema, and of those below it.
type ruleNode struct {
	view *schemaView
	// self is the view of the values that the rules see: at the root, with the metadata that rules may read.
	self       common.Schema
	object     bool
	rules      []rule
	items      *ruleNode
	properties map[string]*ruleNode
	additional *ruleNode
}

// rule is one rule, compiled by the API server's library.
type rule struct {
	cel.CompilationResult
	message string
	// optionalOld says that the rule sees an optional old value, and is evaluated without one too.
	optionalOld bool
}

// compileRules compiles the rules of a schema; nil if there are none. It refuses what no definition of this project uses, and
// what it would thus be untested in: rules in allOf, reasons, embedded resources.
func compileRules(s *structuralschema.Structural) (*ruleNode, error) {
	return compileNode(s, viewOf(s), model.SchemaDeclType(s, true), true)
}

func compileNode(s *structuralschema.Structural, view *schemaView, t *apiservercel.DeclType, root bool) (*ruleNode, error) {
	n := &ruleNode{view: view, self: view, object: s.Type == "object" || s.Type == "array", properties: map[string]*ruleNode{}}
	if root {
		n.self = viewOf(model.WithTypeAndObjectMeta(s))
	}
	if s.XEmbeddedResource || (s.ValueValidation != nil && ruled(s.ValueValidation.AllOf)) {
		return nil, errors.New("embedded resources and rules in allOf are not served")
	}
	if err := n.compile(s, t); err != nil {
		return nil, err
	}
	if err := n.compileBelow(s, t); err != nil {
		return nil, err
	}
	if len(n.rules) == 0 && n.items == nil && n.additional == nil && len(n.properties) == 0 {
		return nil, nil
	}
	return n, nil
}

func ruled(all []structuralschema.NestedValueValidation) bool {
	for _, v := range all {
		if len(v.ValidationExtensions.XValidations) > 0 || len(v.Properties) > 0 || v.Items != nil || v.AdditionalProperties != nil {
			return true
		}
	}
	return false
}

// compile compiles the rules of this place.
func (n *ruleNode) compile(s *structuralschema.Structural, t *apiservercel.DeclType) error {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	compiled, err := cel.Compile(s, t, celconfig.PerCallLimit, base, cel.StoredExpressionsEnvLoader())
	if err != nil {
		return err
	}
	for i, c := range compiled {
		declared := s.XValidations[i]
		switch {
		case c.Error != nil:
			return fmt.Errorf("rule %q: %s", declared.Rule, c.Error.Detail)
		case c.MessageExpressionError != nil:
			return fmt.Errorf("message of rule %q: %s", declared.Rule, c.MessageExpressionError.Detail)
		case declared.Reason != nil:
			return fmt.Errorf("rule %q: rules with a reason are not served", declared.Rule)
		}
		message := declared.Message
		if message == "" {
			message = "failed rule: " + declared.Rule
		}
		n.rules = append(n.rules, rule{CompilationResult: c, message: message, optionalOld: ptr.Deref(declared.OptionalOldSelf, false)})
	}
	return nil
}

// compileBelow compiles the rules of what is in this place.
func (n *ruleNode) compileBelow(s *structuralschema.Structural, t *apiservercel.DeclType) error {
	var element *apiservercel.DeclType
	if t != nil {
		element = t.ElemType
	}
	var err error
	if s.Items != nil {
		if n.items, err = compileNode(s.Items, as[*schemaView](n.view.items), element, false); err != nil {
			return err
		}
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil {
		if n.additional, err = compileNode(a.Structural, as[*schemaView](n.view.additional.Schema()), element, false); err != nil {
			return err
		}
	}
	for name, property := range s.Properties {
		typed := typeOf(name, &property, t)
		if typed == nil {
			continue
		}
		below, err := compileNode(&property, as[*schemaView](n.view.properties[name]), typed, false)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if below != nil {
			n.properties[name] = below
		}
	}
	return nil
}

// typeOf is the type that rules see of a field; nil for fields that rules cannot see, of which no rule is evaluated.
func typeOf(name string, property *structuralschema.Structural, t *apiservercel.DeclType) *apiservercel.DeclType {
	escaped, ok := apiservercel.Escape(name)
	if !ok {
		return model.SchemaDeclType(property, false)
	}
	if t == nil || t.Fields[escaped] == nil {
		return nil
	}
	return t.Fields[escaped].Type
}

// check evaluates the rules on a value and on what it was before, nil if it was not there. same knows what of it is unchanged;
// nil for a new object. Unchanged values keep what is wrong with them, so that only transition rules are evaluated there.
func (n *ruleNode) check(at *field.Path, value, old any, same *common.CorrelatedObject, unchanged bool) field.ErrorList {
	if n == nil || value == nil {
		return nil
	}
	unchanged = unchanged || (same != nil && same.CachedDeepEqual())
	errs := n.checkHere(at, value, old, unchanged)
	switch value := value.(type) {
	case map[string]any:
		before, _ := old.(map[string]any)
		for name, below := range value {
			if node := n.properties[name]; node != nil {
				errs = append(errs, node.check(at.Child(name), below, before[name], same.Key(name), unchanged)...)
			} else if n.additional != nil {
				errs = append(errs, n.additional.check(at.Key(name), below, before[name], same.Key(name), unchanged)...)
			}
		}
	case []any:
		if n.items == nil {
			return errs
		}
		before, _ := old.([]any)
		byKey := common.MakeMapList(n.view, before)
		for i, below := range value {
			errs = append(errs, n.items.check(at.Index(i), below, byKey.Get(below), same.Index(i), unchanged)...)
		}
	}
	return errs
}

// checkHere evaluates the rules of this place.
func (n *ruleNode) checkHere(at *field.Path, value, old any, unchanged bool) field.ErrorList {
	var errs field.ErrorList
	var plain, optional map[string]any
	for _, r := range n.rules {
		if !r.applies(old != nil, unchanged) {
			continue
		}
		if plain == nil {
			plain, optional = n.variables(value, old)
		}
		vars := plain
		if r.optionalOld {
			vars = optional
		}
		place, shown := at, value
		if r.NormalizedRuleFieldPath != "" {
			place = at.Child(r.NormalizedRuleFieldPath)
		}
		if n.object {
			shown = field.OmitValueType{}
		}
		holds, _, err := r.Program.Eval(vars)
		if err != nil {
			errs = append(errs, field.Invalid(place, shown, fmt.Sprintf("%v evaluating rule: %s", err, r.message)))
		} else if holds.Value() != true {
			errs = append(errs, field.Invalid(place, shown, r.told(plain)))
		}
	}
	return errs
}

// applies says whether the rule is evaluated on a value that was or was not there before, and is or is not as it was.
func (r rule) applies(existed, unchanged bool) bool {
	if !r.UsesOldSelf {
		return !unchanged
	}
	return existed || r.optionalOld
}

// variables are what rules see of a value and of what it was before, nil if it was not there: those of plain rules, and those of
// rules to which the old value is optional.
func (n *ruleNode) variables(value, old any) (plain, optional map[string]any) {
	self := common.UnstructuredToVal(value, n.self)
	plain = map[string]any{cel.ScopedVarName: self}
	optional = map[string]any{cel.ScopedVarName: self, cel.OldScopedVarName: types.OptionalNone}
	if old != nil {
		before := common.UnstructuredToVal(old, n.self)
		plain[cel.OldScopedVarName] = before
		optional[cel.OldScopedVarName] = types.OptionalOf(before)
	}
	return plain, optional
}

// told is the message of a rule that does not hold.
func (r rule) told(vars map[string]any) string {
	if r.MessageExpression != nil {
		if says, _, err := r.MessageExpression.Eval(vars); err == nil {
			if text, ok := says.Value().(string); ok {
				return text
			}
		}
	}
	return r.message
}
