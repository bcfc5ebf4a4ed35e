// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// transitions say, of every field of a spec, how it may change. A kind that is not here lets all of its spec be edited.
var transitions = map[string]limits{
	"JobRun": {
		fixed("attempt", ""), fixed("chain", ""), fixed("claims", ""), fixed("groupRef", ""), fixed("queue", ""), fixed("recoveryPolicy", ""), fixed("retryOf", ""),
		fixed("retryPolicy", ""), fixed("scheduledJobRef", ""), fixed("scheduledTime", ""), fixed("staleAfterSeconds", ""), fixed("timeoutSeconds", ""), fixed("type", ""),
		fixed("work", "; create a new run instead"),
		{field: "work", may: initContainersInOrder, says: "the order of initContainers is immutable, as all of work is; create a new run instead"},
		whileQueued("priority"), whileQueued("notBefore"), on("cancel", "; create a new run instead"), free("ttlSecondsAfterFinished"),
	},
	"JobGroup": {
		fixed("mode", anotherGroup), fixed("onFailure", anotherGroup), fixed("scheduledJobRef", ""), fixed("scheduledTime", ""),
		{field: "members", fixed: true, may: unchanged("members") + " && " + membersInOrder, says: "members is immutable, its order included" + anotherGroup},
		on("cancel", anotherGroup), free("ttlSecondsAfterFinished"),
	},
	"DirectReservation": {
		fixed("claims", ""), fixed("leaseDurationSeconds", "; renew by setting renewTime"), fixed("queue", ""), fixed("type", ""), fixed("waitTimeoutSeconds", ""),
		{field: "renewTime", may: "!has(oldSelf.spec.renewTime) || (has(self.spec.renewTime) && self.spec.renewTime >= oldSelf.spec.renewTime)", says: "renewTime only moves forward"},
		on("release", "; create a new reservation instead"), free("holderIdentity"), free("ttlSecondsAfterFinished"),
	},
}

const (
	anotherGroup = "; create a new group instead"

	// Lists with keys are equal in any order.
	membersInOrder        = "self.spec.members.map(m, m.name) == oldSelf.spec.members.map(m, m.name)"
	initContainersInOrder = "!has(self.spec.work) || !has(self.spec.work.job) || !has(oldSelf.spec.work) || !has(oldSelf.spec.work.job)" +
		" || !has(self.spec.work.job.template.spec.template.spec.initContainers) || !has(oldSelf.spec.work.job.template.spec.template.spec.initContainers)" +
		" || self.spec.work.job.template.spec.template.spec.initContainers.map(c, c.name) == oldSelf.spec.work.job.template.spec.template.spec.initContainers.map(c, c.name)"
)

// limits are how the fields of one spec may change.
type limits []transition

// transition is how one field may change.
type transition struct {
	field string
	// may is true of a change that may be made, in CEL; "" of every one.
	may string
	// says is what is told of another.
	says string
	// fixed says that none may be made.
	fixed bool
}

// fixed is of a field that never changes; advice is told beside that.
func fixed(field, advice string) transition {
	return transition{field: field, may: unchanged(field), says: field + " is immutable" + advice, fixed: true}
}

// whileQueued is of a field that changes while the run waits.
func whileQueued(field string) transition {
	return transition{field: field, may: "oldSelf.status.phase == 'Queued' || (" + unchanged(field) + ")", says: field + " can be changed only while the run is Queued"}
}

// on is of a switch that stays on.
func on(field, advice string) transition {
	may := about(field, "!has(oldSelf.spec.FIELD) || !oldSelf.spec.FIELD || (has(self.spec.FIELD) && self.spec.FIELD)")
	return transition{field: field, may: may, says: field + " cannot be taken back" + advice}
}

// free is of a field that may be edited at any time.
func free(field string) transition { return transition{field: field} }

func unchanged(field string) string {
	return about(field, "has(self.spec.FIELD) == has(oldSelf.spec.FIELD) && (!has(self.spec.FIELD) || self.spec.FIELD == oldSelf.spec.FIELD)")
}

func about(field, expression string) string { return strings.ReplaceAll(expression, "FIELD", field) }

// rule is the one rule about changes of the spec. A write changes the spec or the status, never both: where it has changed the
// status there is nothing to compare, and most writes do that.
func (l limits) rule() apiextensionsv1.ValidationRule {
	var may, says []string
	for _, t := range l {
		if t.may != "" {
			may = append(may, "("+t.may+")")
			says = append(says, "(("+t.may+") ? '' : '; "+t.says+"')")
		}
	}
	return apiextensionsv1.ValidationRule{
		Rule:              "self.status != oldSelf.status || (" + strings.Join(may, " && ") + ")",
		MessageExpression: "(" + strings.Join(says, " + ") + ").substring(2)",
		Message:           "a field was changed that cannot be changed",
		FieldPath:         ".spec",
	}
}

// confine gives the schema of a kind the rule about changes of its spec, and lets rules about nothing but fixed fields be
// evaluated only where these are new.
func confine(kind string, root *schema) error {
	l, ok := transitions[kind]
	if !ok {
		return nil
	}
	if err := l.fit(kind, root.Properties["spec"]); err != nil {
		return err
	}
	onlyNew(root, func(rule string) bool { return l.allFixed(rule, `self\.spec\.(\w+)|self\.(status)`) })
	add(root, l.rule())
	return at(root, []string{"spec"}, func(spec *schema) error {
		onlyNew(spec, func(rule string) bool { return l.allFixed(rule, `self\.(\w+)`) })
		return eachChild(spec, func(field string, s *schema) error {
			if l.isFixed(field) {
				onlyNewBelow(s)
			}
			return nil
		})
	})
}

// fit complains of a field of the spec that has no limits, and of limits for a field that is not there.
func (l limits) fit(kind string, spec schema) error {
	var errs []error
	for _, field := range slices.Sorted(maps.Keys(spec.Properties)) {
		if !slices.ContainsFunc(l, func(t transition) bool { return t.field == field }) {
			errs = append(errs, fmt.Errorf("spec.%s of %s: say in transitions.go how it may change", field, kind))
		}
	}
	for _, t := range l {
		if _, ok := spec.Properties[t.field]; !ok {
			errs = append(errs, fmt.Errorf("%s has no spec.%s: renamed, or gone? Correct transitions.go", kind, t.field))
		}
	}
	return errors.Join(errs...)
}

func (l limits) isFixed(field string) bool {
	return slices.ContainsFunc(l, func(t transition) bool { return t.field == field && t.fixed })
}

// allFixed says whether every field that the pattern finds in a rule is fixed. The name of an object is, too.
func (l limits) allFixed(rule, pattern string) bool {
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(rule, -1) {
		if !l.isFixed(found[1]) {
			return false
		}
	}
	return true
}

// onlyNew lets the rules of a schema that ask for nothing but what never changes be evaluated only when the value is new. A rule
// that looks at the old value is none of them.
func onlyNew(s *schema, neverChanges func(rule string) bool) {
	for i, r := range s.XValidations {
		if !strings.Contains(r.Rule, "oldSelf") && neverChanges(r.Rule) {
			s.XValidations[i].Rule, s.XValidations[i].OptionalOldSelf = "oldSelf.hasValue() || ("+r.Rule+")", new(true)
		}
	}
}

// onlyNewBelow does the same to a field that never changes and to all that is in it. Items of a list without keys have no old
// value that rules could see.
func onlyNewBelow(s *schema) {
	onlyNew(s, func(string) bool { return true })
	if s.Type == "array" && (s.XListType == nil || *s.XListType != "map") {
		return
	}
	_ = eachChild(s, func(_ string, child *schema) error { onlyNewBelow(child); return nil })
}
