// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// templateRules are what a Job template under work.job may not say, by the field that would say it. They stand at the fields,
// since a rule is evaluated only where its field is, and with every write of the object.
var templateRules = map[string]apiextensionsv1.ValidationRule{
	"spec.ttlSecondsAfterFinished": {
		Rule: never, Message: "ttlSecondsAfterFinished is not allowed under work.job: it would remove the evidence of the outcome; use the run's own ttlSecondsAfterFinished",
	},
	"spec.suspend":        {Rule: never, Message: "suspend is not allowed under work.job: Reprise uses it to stop work; suspend the queue instead"},
	"spec.managedBy":      {Rule: never, Message: "managedBy is not allowed under work.job: the Job controller must report the outcome"},
	"spec.selector":       {Rule: never, Message: noSelector},
	"spec.manualSelector": {Rule: never, Message: noSelector},
	"spec.backoffLimit":   {Rule: never, Message: "backoffLimit is not allowed under work.job: it is always 0, so that every attempt is a JobRun; use retryPolicy"},
	"spec.podReplacementPolicy": {
		Rule: "self == 'Failed'", Message: "podReplacementPolicy under work.job is always Failed, so that no two pods of one run do the same work",
	},
	"spec.template.spec.restartPolicy": {
		Rule: "self in ['Never', 'OnFailure']", Message: "restartPolicy under work.job must be Never (OnFailure is taken as Never: every attempt is a JobRun; use retryPolicy)",
	},
}

const (
	never      = "false"
	noSelector = "selector and manualSelector are not allowed under work.job: Reprise finds pods by the run's UID"
)

// restrict gives a template its rules.
func restrict(template *schema) error {
	var errs []error
	for path, rule := range templateRules {
		found := false
		errs = append(errs, at(template, strings.Split(path, "."), func(s *schema) error {
			found = true
			add(s, rule)
			return nil
		}))
		if !found {
			errs = append(errs, fmt.Errorf("there is no field %s: renamed, or gone? Correct rules.go", path))
		}
	}
	return errors.Join(errs...)
}

// add gives a schema a rule, once.
func add(s *schema, rule apiextensionsv1.ValidationRule) {
	if !slices.ContainsFunc(s.XValidations, func(other apiextensionsv1.ValidationRule) bool { return other.Rule == rule.Rule }) {
		s.XValidations = append(s.XValidations, rule)
	}
}
