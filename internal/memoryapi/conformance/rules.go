// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func validation() table {
	work := `work: {http: {url: "https://work.example/"}}`
	cases := table{
		"defaults are filled in": func(s *Script) {
			s.create(`{kind: DirectReservation, metadata: {name: a}}`, ok)
			s.create(`{kind: JobQueue, metadata: {name: a}, spec: {concurrency: {resources: [{name: gpu, capacity: 4}]}, direct: {}, startup: {}}}`, ok)
			s.create(`{kind: JobRun, metadata: {name: a}, spec: {claims: [{name: gpu}], retryPolicy: {}, work: {http: {url: "https://work.example/", body: ""}}}}`, ok)
			s.create(`{kind: ScheduledJob, metadata: {name: a}, spec: {runTemplate: {`+work+`}}}`, ok)
		},
		"fields that the kind does not have are dropped": func(s *Script) {
			o := s.create(`{kind: JobRun, metadata: {name: a, nonsense: b}, nonsense: c, spec: {nonsense: d, `+work+`}, status: {nonsense: e}}`, ok)
			_, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "nonsense")
			s.expect(!found, "it is %v", o.Object)
			s.status(o, "status: {nonsense: e, message: f}", ok)
		},
		"nulls are dropped": func(s *Script) {
			o := s.object(`{kind: JobRun, metadata: {name: a}, spec: {` + work + `}}`)
			s.set(o, nil, "spec", "queue")
			s.set(o, nil, "spec", "claims")
			s.createObject(o, ok)
		},
		"a pod template of a run keeps what it says": func(s *Script) {
			s.create(`{kind: JobRun, metadata: {name: a}, spec: {work: {job: {template: {metadata: {labels: {a: b}}, spec: {template: {metadata: {labels: {c: d}},
				spec: {restartPolicy: Never, containers: [{name: work, image: "work:1", env: [{name: A, value: b}], resources: {limits: {cpu: 500m, memory: 1Gi}}}], volumes: [{name: v, emptyDir: {}}]}}}}}}}}`, ok)
		},
		"wrong types, values and sizes are refused": func(s *Script) {
			for _, spec := range []string{
				`queue: 7`, `queue: ""`, `queue: UPPER`, `priority: high`, `claims: {}`, `claims: [{count: 1}]`, `claims: [{name: a, count: 0}]`,
				`timeoutSeconds: 0`, `recoveryPolicy: Maybe`, `retryPolicy: {maxRetries: -1}`, `notBefore: tomorrow`, `cancel: "yes"`,
			} {
				s.note(spec)
				s.create(`{kind: JobRun, metadata: {name: a}, spec: {`+work+`, `+spec+`}}`, invalid)
			}
			s.create(`{kind: JobRun, metadata: {name: a}}`, invalid)
			s.create(`{kind: QueueLedger, metadata: {name: a}, spec: {}}`, invalid)
			s.create(`{kind: QueueLedger, metadata: {name: a}, spec: {epoch: "1"}}`, invalid)
		},
		"names in a list are unique": func(s *Script) {
			s.create(`{kind: JobRun, metadata: {name: a}, spec: {`+work+`, claims: [{name: a}, {name: a}]}}`, invalid)
			s.create(`{kind: JobGroup, metadata: {name: a}, spec: {members: [{name: a, runTemplate: {`+work+`}}, {name: a, runTemplate: {`+work+`}}]}}`, invalid)
		},
		"rules over several fields hold": func(s *Script) {
			for _, spec := range []string{
				`{}`, `{queue: a}`, `{` + work + `, retryOf: b}`, `{retryOf: a}`, `{` + work + `, scheduledTime: "2026-11-20T07:00:00Z"}`,
				`{work: {http: {url: "https://work.example/"}, job: {template: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}}}}`,
				`{work: {http: {url: nonsense}}}`, `{work: {job: {template: {}}}}`, `{` + work + `, notBefore: "0001-01-01T00:00:00Z"}`,
			} {
				s.note(spec)
				s.create(`{kind: JobRun, metadata: {name: a}, spec: `+spec+`}`, invalid)
			}
		},
		"rules about the name hold": func(s *Script) {
			long := "a123456789b123456789c123456789d123456789e12345678" // 49 letters
			s.create(called(schedule, long), invalid)
			s.create(called(group, long+"012345678"), invalid)
			s.create(called(run, long+"012345678"), invalid)
			s.create(called(run, long+"01234567"), ok)
			s.create(called(queue, "a.b"), invalid)
		},
		"a schedule has exactly one template and readable times": func(s *Script) {
			for _, spec := range []string{
				`{schedule: "@daily"}`, `{schedule: "@daily", runAt: "2026-11-20T07:00:00Z", runTemplate: {` + work + `}}`, `{schedule: "TZ=UTC 0 0 * * *", runTemplate: {` + work + `}}`,
				`{schedule: "@daily", timeZone: Nowhere/Land, runTemplate: {` + work + `}}`, `{runAt: "2026-11-20T07:00:00.5Z", runTemplate: {` + work + `}}`,
			} {
				s.note(spec)
				s.create(`{kind: ScheduledJob, metadata: {name: a}, spec: `+spec+`}`, invalid)
			}
		},
		"a typed object is checked as an untyped one": func(s *Script) {
			r := &batchv1alpha1.JobRun{}
			r.Name, r.Namespace = "a", s.namespace
			s.createObject(r, invalid)
			r.Spec.Work = &batchv1alpha1.Work{HTTP: &batchv1alpha1.HTTPWork{URL: "https://work.example/"}}
			s.createObject(r, ok)
			r.Spec.Queue = "other"
			s.updateObject(r, invalid)
		},
		"a status is checked": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			for _, status := range []string{`{phase: Sleeping}`, `{phase: 7}`, `{slot: Lost}`, `{conditions: [{type: A}]}`, `{announcements: 3}`} {
				s.note(status)
				wrong := o.DeepCopy()
				s.status(wrong, "status: "+status, invalid)
			}
			twice := o.DeepCopy()
			condition := `{type: A, status: "True", reason: B, message: c, lastTransitionTime: "2026-11-20T07:00:00Z"}`
			s.status(twice, `status: {conditions: [`+condition+`, `+condition+`]}`, invalid)
			s.status(o, `status: {conditions: [`+condition+`]}`, ok)
		},
	}
	return cases
}

func transitions() table {
	cases := table{
		"what is immutable in a run stays": func(s *Script) {
			o := s.create(`{kind: JobRun, metadata: {name: a}, spec: {queue: q, type: t, timeoutSeconds: 60, claims: [{name: gpu}], work: {http: {url: "https://work.example/"}}}}`, ok)
			for _, spec := range []string{`{queue: other}`, `{queue: null}`, `{type: null}`, `{timeoutSeconds: 61}`, `{claims: null}`, `{work: {http: {url: "https://other.example/"}}}`, `{retryOf: b}`} {
				s.note(spec)
				s.update(o.DeepCopy(), "spec: "+spec, invalid)
			}
			s.update(o, "spec: {priority: 3, cancel: true, ttlSecondsAfterFinished: 9}", ok)
			s.update(o, "spec: {cancel: false}", invalid)
		},
		"a run moves from phase to phase as the rules say, and never back": func(s *Script) {
			o := s.create(called(run, "a"), ok)
			s.status(o.DeepCopy(), "status: {phase: Completed}", invalid)
			s.status(o, "status: {phase: Running, slot: Held}", ok)
			s.status(o.DeepCopy(), "status: {phase: Queued}", invalid)
			s.update(o.DeepCopy(), "spec: {priority: 3}", invalid)
			s.status(o.DeepCopy(), "status: {phase: Cancelled}", invalid)
			s.status(o, "status: {phase: Cancelling}", ok)
			s.status(o, "status: {phase: Cancelled}", ok)
			s.status(o.DeepCopy(), "status: {phase: Failed}", invalid)
			s.status(o, "status: {slot: Free}", ok)
			s.status(o.DeepCopy(), "status: {slot: Held}", invalid)
			s.status(o.DeepCopy(), "status: {slot: null}", invalid)
			s.status(o, "status: {message: over}", ok)
		},
		"a reservation moves on, and is never granted again": func(s *Script) {
			o := s.create(called(reservation, "a"), ok)
			s.status(o, "status: {phase: Active}", ok)
			s.status(o.DeepCopy(), "status: {phase: Pending}", invalid)
			s.status(o, "status: {phase: Granted}", ok)
			s.update(o, `spec: {renewTime: "2026-11-20T07:00:00Z"}`, ok)
			s.update(o.DeepCopy(), `spec: {renewTime: "2026-11-20T06:00:00Z"}`, invalid)
			s.update(o, `spec: {release: true}`, ok)
			s.update(o.DeepCopy(), `spec: {release: false}`, invalid)
			s.status(o, "status: {phase: Released}", ok)
			s.status(o.DeepCopy(), "status: {phase: Granted}", invalid)
			s.update(o.DeepCopy(), "spec: {leaseDurationSeconds: 7}", invalid)
		},
		"the epoch of a ledger only rises": func(s *Script) {
			o := s.create(called(ledger, "a"), ok)
			s.update(o, `spec: {epoch: "100.2"}`, ok)
			s.update(o.DeepCopy(), `spec: {epoch: "100.1"}`, invalid)
			s.update(o.DeepCopy(), `spec: {epoch: "99.9"}`, invalid)
			s.update(o, `spec: {epoch: "101.0", directInRow: 2, intents: [{kind: JobRun, name: a, uid: b, resourceVersion: c}]}`, ok)
			s.update(o, `spec: {intents: null}`, ok)
		},
		"a group keeps its members and moves on": func(s *Script) {
			o := s.create(called(group, "a"), ok)
			s.update(o.DeepCopy(), `spec: {mode: Parallel}`, invalid)
			s.update(o.DeepCopy(), `spec: {members: [{name: b, runTemplate: {work: {http: {url: "https://work.example/"}}}}]}`, invalid)
			s.status(o, "status: {phase: Running}", ok)
			s.status(o.DeepCopy(), "status: {phase: Pending}", invalid)
			s.update(o, "spec: {cancel: true}", ok)
			s.status(o, "status: {phase: Cancelling}", ok)
			s.status(o, "status: {phase: Cancelled}", ok)
			s.status(o.DeepCopy(), "status: {phase: Running}", invalid)
		},
		"a queue and a schedule change as one likes": func(s *Script) {
			o := s.create(called(queue, "a"), ok)
			s.update(o, `spec: {suspend: true, concurrency: {limit: 0, types: [{name: big, limit: 1}]}}`, ok)
			s.update(o, `spec: {concurrency: null}`, ok)
			o = s.create(called(schedule, "a"), ok)
			s.update(o, `spec: {schedule: "*/5 * * * *", timeZone: Europe/Lisbon, suspend: true}`, ok)
			s.update(o, `spec: {schedule: null, timeZone: null, runAt: "2026-11-20T07:00:00Z"}`, ok)
			s.status(o, `status: {active: [], lastRunName: a}`, ok)
		},
		"rules do not look at what was never set": func(s *Script) {
			o := s.create(`{kind: JobRun, metadata: {name: a}, spec: {work: {http: {url: "https://work.example/"}}}}`, ok)
			s.update(o.DeepCopy(), "spec: {queue: late}", invalid)
			s.status(o, "status: {slot: Free}", ok)
		},
	}
	return cases
}
