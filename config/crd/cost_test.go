// SPDX-License-Identifier: Apache-2.0

// Package crd_test bounds what one write costs the API server in rules of the CRDs.
package crd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// validator is what an API server validates the objects of one kind with.
type validator struct {
	structural    *structuralschema.Structural
	whole, status validation.SchemaValidator
	rules         *cel.Validator
}

func validatorOf(t testing.TB, plural string) *validator {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("bases", "batch.reprise.dev_"+plural+".yaml"))
	must(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.UnmarshalStrict(data, crd))
	props := &apiextensions.JSONSchemaProps{}
	must(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil))
	v := &validator{}
	v.structural, err = structuralschema.NewStructural(props)
	must(t, err)
	v.whole, _, err = validation.NewSchemaValidator(props)
	must(t, err)
	status := props.Properties["status"]
	v.status, _, err = validation.NewSchemaValidator(&status)
	must(t, err)
	v.rules = cel.NewValidator(v.structural, true, celconfig.PerCallLimit)
	return v
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parsed is the object as the API server has it after decoding: with its defaults.
func (v *validator) parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	must(t, err)
	object := map[string]any{}
	must(t, json.Unmarshal(data, &object))
	defaulting.Default(object, v.structural)
	return object
}

// create validates a creation.
func (v *validator) create(object map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, object, v.whole)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	return append(errs, v.evaluate(object, nil, nil)...)
}

// evaluate evaluates the rules on an object and what it was before; nil if it is new.
func (v *validator) evaluate(object, old map[string]any, same *common.CorrelatedObject) field.ErrorList {
	var before any
	if old != nil {
		before = old
	}
	errs, _ := v.rules.Validate(context.Background(), nil, v.structural, object, before, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(same))
	return errs
}

func (v *validator) correlate(object, old map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(object, old, &model.Structural{Structural: v.structural})
}

// updateStatus validates a write of the status.
func (v *validator) updateStatus(object, old map[string]any) field.ErrorList {
	same := v.correlate(object, old)
	errs := validation.ValidateCustomResourceUpdate(field.NewPath("status"), object["status"], old["status"], v.status, validation.WithRatcheting(same.Key("status")))
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	return append(errs, v.evaluate(object, old, same)...)
}

const (
	metadata = `apiVersion: batch.reprise.dev/v1alpha1
metadata: {name: nightly-1795417200, namespace: default, uid: "1", resourceVersion: "5"}
`
	httpRun = metadata + `kind: JobRun
spec:
  queue: big
  type: story
  scheduledJobRef: {name: nightly}
  scheduledTime: "2026-11-20T07:00:00Z"
  retryPolicy: {maxRetries: 2}
  work: {http: {url: "https://work.example/path", method: POST, body: "{}", headers: [{name: A, value: a}, {name: B, secretKeyRef: {name: b, key: c}}]}}
`
	jobRun = metadata + `kind: JobRun
spec:
  queue: big
  type: story
  scheduledJobRef: {name: nightly}
  scheduledTime: "2026-11-20T07:00:00Z"
  retryPolicy: {maxRetries: 2}
  work:
    job:
      template:
        metadata: {labels: {a: b}}
        spec:
          activeDeadlineSeconds: 600
          template:
            spec:
              restartPolicy: Never
              containers: [{name: main, image: "busybox:1", args: [a, b], env: [{name: A, value: a}], resources: {requests: {cpu: 100m}}}]
              volumes: [{name: data, emptyDir: {sizeLimit: 1Gi}}]
`
	queued  = `status: {phase: Queued, observedGeneration: -1}`
	claimed = `status:
  phase: Running
  observedGeneration: 1
  slot: Held
  queue: big
  attempt: 0
  sequence: 5
  startedAt: "2026-11-20T07:00:01Z"
  deadline: "2026-11-20T07:10:01Z"
  incarnation: {id: a, epoch: "1.0", pod: {namespace: a, name: b, uid: c, startedAt: "2026-11-20T07:00:00Z"}}
`
	noted = claimed + `  message: it is alive
`
	notedAgain = claimed + `  message: it is still alive
`
	ended = `status:
  phase: Completed
  observedGeneration: 1
  slot: Free
  queue: big
  attempt: 0
  sequence: 5
  reason: Succeeded
  message: the server answered 200
  startedAt: "2026-11-20T07:00:01Z"
  finishedAt: "2026-11-20T07:00:02Z"
  deadline: "2026-11-20T07:10:01Z"
  incarnation: {id: a, epoch: "1.0", pod: {namespace: a, name: b, uid: c, startedAt: "2026-11-20T07:00:00Z"}}
  result: {httpStatus: 200, body: "{}"}
  chain: {latestName: nightly-1795417200, attempts: 1}
  conditions:
  - {type: Complete, status: "True", reason: Succeeded, message: it is, lastTransitionTime: "2026-11-20T07:00:02Z"}
  - {type: Reconciling, status: "False", reason: Succeeded, message: it is, lastTransitionTime: "2026-11-20T07:00:02Z"}
`
)

const (
	schedule = `apiVersion: batch.reprise.dev/v1alpha1
metadata: {name: nightly, namespace: default, uid: "1", resourceVersion: "5"}
kind: ScheduledJob
spec:
  schedule: 0 7 * * *
  runTemplate:
    work: {job: {template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "busybox:1"}]}}}}}}
`
	unfired = `status:
  observedGeneration: 1
  observedSchedule: 0 7 * * *
  handledThrough: "2026-11-19T07:00:00Z"
  nextScheduleTime: "2026-11-20T07:00:00Z"
  conditions: [{type: Ready, status: "True", reason: Accepted, message: it is, lastTransitionTime: "2026-11-19T07:00:02Z"}]
`
	fired = `status:
  observedGeneration: 1
  observedSchedule: 0 7 * * *
  handledThrough: "2026-11-20T07:00:00Z"
  nextScheduleTime: "2026-11-21T07:00:00Z"
  lastScheduleTime: "2026-11-20T07:00:00Z"
  lastRunName: nightly-1795417200
  activeCount: 1
  active: [{name: nightly-1795417200, uid: "2", scheduledTime: "2026-11-20T07:00:00Z"}]
  conditions: [{type: Ready, status: "True", reason: Accepted, message: it is, lastTransitionTime: "2026-11-19T07:00:02Z"}]
`
)

// writes are the writes of a status that every run sees, and one that changes a text alone.
var writes = map[string][2]string{"claim": {queued, claimed}, "end": {claimed, ended}, "note": {noted, notedAgain}}

// Most of what a write costs the API server is memory for the schemas that its rules look at, so allocations stand for time:
// they are the same on every machine. With the rules at the root of the object, and all of them evaluated, a claim of a run with
// a call took 8,600, and of one with a Job 16,100.
func TestTheRulesCostAWriteOfAStatusLittle(t *testing.T) {
	v := validatorOf(t, "jobruns")
	for kind, base := range map[string]string{"http": httpRun, "job": jobRun} {
		for name, most := range map[string]float64{"claim": 1500, "end": 1800, "note": 4500} {
			old, object := v.parsed(t, base+writes[name][0]), v.parsed(t, base+writes[name][1])
			took := testing.AllocsPerRun(100, func() { // maps are compared in any order, so that the number varies
				if errs := v.evaluate(object, old, v.correlate(object, old)); len(errs) > 0 {
					t.Fatal(errs.ToAggregate())
				}
			})
			t.Logf("%s of a run with %s: %.0f", name, kind, took)
			if took > most {
				t.Errorf("the rules of a %s of a run with %s take %.0f allocations, more than %.0f", name, kind, took, most)
			}
		}
	}
}

// A fire is two writes, and when very many are due at once, what these cost the API server is how late the last run is. With a rule
// that walks down a Job template once for each field it asks for, the creation took 2,040 and the record 1,940.
func TestTheRulesCostAFireLittle(t *testing.T) {
	runs, schedules := validatorOf(t, "jobruns"), validatorOf(t, "scheduledjobs")
	created := runs.parsed(t, jobRun)
	before, recorded := schedules.parsed(t, schedule+unfired), schedules.parsed(t, schedule+fired)
	for name, c := range map[string]struct {
		most     float64
		validate func() field.ErrorList
	}{
		"creation of a run with a Job": {1800, func() field.ErrorList { return runs.evaluate(created, nil, nil) }},
		"record in its ScheduledJob": {1800, func() field.ErrorList {
			return schedules.evaluate(recorded, before, schedules.correlate(recorded, before))
		}},
	} {
		took := testing.AllocsPerRun(100, func() {
			if errs := c.validate(); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
		})
		t.Logf("%s: %.0f", name, took)
		if took > c.most {
			t.Errorf("the rules of the %s take %.0f allocations, more than %.0f", name, took, c.most)
		}
	}
}

func BenchmarkValidateAStatus(b *testing.B) {
	v := validatorOf(b, "jobruns")
	for kind, base := range map[string]string{"http": httpRun, "job": jobRun} {
		for name, w := range writes {
			b.Run(fmt.Sprintf("%s/%s", kind, name), func(b *testing.B) {
				old, object := v.parsed(b, base+w[0]), v.parsed(b, base+w[1])
				b.ReportAllocs()
				for b.Loop() {
					if errs := v.updateStatus(object, old); len(errs) > 0 {
						b.Fatal(errs.ToAggregate())
					}
				}
			})
		}
	}
}

func BenchmarkValidateACreation(b *testing.B) {
	v := validatorOf(b, "jobruns")
	for kind, base := range map[string]string{"http": httpRun, "job": jobRun} {
		b.Run(kind, func(b *testing.B) {
			object := v.parsed(b, base)
			b.ReportAllocs()
			for b.Loop() {
				if errs := v.create(object); len(errs) > 0 {
					b.Fatal(errs.ToAggregate())
				}
			}
		})
	}
}
