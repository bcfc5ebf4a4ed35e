// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

func jobs() table {
	cases := table{
		"a Job knows its pods by labels that the server makes": func(s *Script) {
			o := s.create(`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {x: z}}, spec: {template: {metadata: {labels: {c: d}}, spec: {restartPolicy: OnFailure, containers: [{name: work, image: work}]}}}}`, ok)
			s.update(o, "metadata: {annotations: {a: b}}", ok)
		},
		"a Job without labels has those of its template": func(s *Script) {
			s.create(`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {metadata: {labels: {c: d}}, spec: {restartPolicy: Never, containers: [{name: work, image: "work@sha256:aa"}]}}}}`, ok)
		},
		"a Job is filled in": func(s *Script) {
			s.create(`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: 3, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: "True"}]}]},
				template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 5, serviceAccountName: worker, volumes: [{name: v, secret: {secretName: s}}],
				initContainers: [{name: first, image: "host:5000/first"}], containers: [{name: work, image: "work:latest", ports: [{containerPort: 80}],
				env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], resources: {limits: {cpu: 1}}}]}}}}`, ok)
		},
		"a Job that cannot work is refused": func(s *Script) {
			for _, spec := range []string{
				`{}`, `{template: {spec: {}}}`, `{template: {spec: {containers: [{name: a, image: b}]}}}`,
				`{template: {spec: {restartPolicy: Always, containers: [{name: a, image: b}]}}}`, `{template: {spec: {restartPolicy: Never}}}`,
				`{template: {spec: {restartPolicy: Never, containers: [{image: b}]}}}`, `{template: {spec: {restartPolicy: Never, containers: [{name: a}]}}}`,
				`{template: {spec: {restartPolicy: Never, containers: [{name: A_b, image: b}]}}}`,
				`{template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}, {name: a, image: c}]}}}`,
				`{parallelism: -1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`,
				`{backoffLimit: -1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`,
				`{activeDeadlineSeconds: -1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`,
				`{template: {metadata: {labels: {controller-uid: mine}}, spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`,
				`{selector: {matchLabels: {a: b}}, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}`,
			} {
				s.note(spec)
				s.create(`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: `+spec+`}`, invalid)
			}
		},
		"what is immutable in a Job stays": func(s *Script) {
			o := s.create(called(job, "a"), ok)
			for _, spec := range []string{
				`{completions: 3}`, `{template: {spec: {containers: [{name: work, image: "work:2"}]}}}`, `{template: {metadata: {labels: {more: labels}}}}`,
				`{selector: null}`, `{managedBy: example.com/other}`, `{completionMode: Indexed}`, `{template: {spec: {nodeSelector: {a: b}}}}`,
			} {
				s.note(spec)
				s.update(o.DeepCopy(), "spec: "+spec, invalid)
			}
			s.update(o, "spec: {suspend: true, parallelism: 2, backoffLimit: 3, activeDeadlineSeconds: 9, ttlSecondsAfterFinished: 9}", ok)
			s.expect(o.GetGeneration() == 2, "the generation is %d", o.GetGeneration())
		},
		"a Job is suspended and resumed at any time": func(s *Script) {
			o := s.create(called(job, "a"), ok)
			s.update(o, "spec: {suspend: true}", ok)
			s.update(o, "spec: {suspend: false}", ok)
			s.status(o, `status: {startTime: "2026-11-20T07:00:00Z", active: 1}`, ok)
			s.update(o, "spec: {suspend: true}", ok)
			s.status(o.DeepCopy(), `status: {active: 0, startTime: null, conditions: [{type: Suspended, status: "True", lastTransitionTime: "2026-11-20T07:00:01Z"}]}`, ok)
			s.get(o, ok)
		},
		"a suspended Job that has not begun may be put elsewhere": func(s *Script) {
			o := s.create(called(job, "a"), ok)
			s.update(o, "spec: {suspend: true}", ok)
			s.update(o, "spec: {template: {metadata: {labels: {more: labels}}, spec: {nodeSelector: {a: b}}}}", ok)
			s.update(o.DeepCopy(), `spec: {template: {spec: {containers: [{name: work, image: "work:2"}]}}}`, invalid)
		},
		"a suspended Job that has begun stays where it is until its controller has seen the suspension and its pods have gone": func(s *Script) {
			elsewhere := "spec: {template: {spec: {nodeSelector: {a: b}}}}"
			suspended := `conditions: [{type: Suspended, status: "True", lastTransitionTime: "2026-11-20T07:00:01Z"}]`
			o := s.create(called(job, "a"), ok)
			s.status(o, `status: {startTime: "2026-11-20T07:00:00Z", active: 1}`, ok)
			s.update(o, "spec: {suspend: true}", ok)
			s.update(o.DeepCopy(), elsewhere, invalid)
			s.status(o, `status: {`+suspended+`}`, ok)
			s.update(o.DeepCopy(), elsewhere, invalid)
			s.status(o, `status: {active: 0, conditions: null}`, ok)
			s.update(o.DeepCopy(), elsewhere, invalid)
			s.status(o, `status: {`+suspended+`}`, ok)
			s.update(o, elsewhere, ok)
		},
		"an update of a Job leaves its status alone, and a status write the rest": func(s *Script) {
			o := s.create(called(job, "a"), ok)
			s.status(o, `{metadata: {annotations: {seen: "yes"}}, spec: {suspend: true}, status: {startTime: "2026-11-20T07:00:00Z", active: 1, ready: 1}}`, ok)
			s.update(o, "status: {active: 7}", ok)
			s.get(o, ok)
		},
		"a Job ends in good order": func(s *Script) {
			const began = `startTime: "2026-11-20T07:00:00Z"`
			condition := func(t string) string {
				return `{type: ` + t + `, status: "True", lastTransitionTime: "2026-11-20T07:00:01Z"}`
			}
			o := s.create(called(job, "a"), ok)
			for _, status := range []string{
				`{` + began + `, conditions: [` + condition("Complete") + `], completionTime: "2026-11-20T07:00:01Z"}`,
				`{` + began + `, conditions: [` + condition("SuccessCriteriaMet") + `, ` + condition("Complete") + `]}`,
				`{conditions: [` + condition("SuccessCriteriaMet") + `, ` + condition("Complete") + `], completionTime: "2026-11-20T07:00:01Z"}`,
				`{` + began + `, conditions: [` + condition("Failed") + `]}`,
				`{` + began + `, conditions: [` + condition("SuccessCriteriaMet") + `, ` + condition("FailureTarget") + `]}`,
				`{` + began + `, completionTime: "2026-11-20T07:00:01Z"}`,
				`{` + began + `, active: 1, conditions: [` + condition("SuccessCriteriaMet") + `, ` + condition("Complete") + `], completionTime: "2026-11-20T07:00:01Z"}`,
				`{` + began + `, conditions: [` + condition("SuccessCriteriaMet") + `, ` + condition("Complete") + `], completionTime: "2026-11-20T06:00:01Z"}`,
				`{active: -1}`, `{ready: 1}`,
			} {
				s.note(status)
				s.status(o.DeepCopy(), "status: "+status, invalid)
			}
			s.status(o, `status: {`+began+`, active: 1, failed: 1}`, ok)
			s.status(o.DeepCopy(), `status: {failed: 0}`, invalid)
			s.status(o.DeepCopy(), `status: {startTime: "2026-11-20T07:00:05Z"}`, invalid)
			s.status(o, `status: {active: 0, succeeded: 1, conditions: [`+condition("SuccessCriteriaMet")+`]}`, ok)
			s.status(o, `status: {conditions: [`+condition("SuccessCriteriaMet")+`, `+condition("Complete")+`], completionTime: "2026-11-20T07:00:02Z"}`, ok)
			s.status(o.DeepCopy(), `status: {conditions: []}`, invalid)
			s.status(o.DeepCopy(), `status: {completionTime: "2026-11-20T07:00:03Z"}`, invalid)
			other := s.create(called(job, "b"), ok)
			s.status(other, `status: {`+began+`, failed: 1, conditions: [`+condition("FailureTarget")+`, `+condition("Failed")+`]}`, ok)
		},
		"a Job has the labels and the owner that it is given": func(s *Script) {
			owner := s.create(called(run, "a"), ok)
			o := s.object(called(job, "a"))
			o.SetLabels(map[string]string{"batch.reprise.dev/run-uid": "some"})
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch.reprise.dev/v1alpha1", Kind: "JobRun", Name: "a", UID: owner.GetUID()}})
			s.createObject(o, ok)
		},
	}
	return cases
}

func pods() table {
	cases := table{
		"a pod is filled in": func(s *Script) {
			s.create(called(nodePod, "a"), ok)
			s.create(`{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: a, image: b, resources: {limits: {cpu: 1, memory: 1Gi}}}]}}`, ok)
			s.create(`{apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: [{name: a, image: b, resources: {requests: {cpu: 1}}}]}}`, ok)
		},
		"a kubelet reports the status of a pod": func(s *Script) {
			o := s.create(called(nodePod, "a"), ok)
			s.status(o, `{spec: {nodeName: other}, status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: work, image: "work:1", imageID: "", ready: true, restartCount: 0, state: {running: {startedAt: "2026-11-20T07:00:00Z"}}}]}}`, ok)
			s.update(o, "{metadata: {labels: {a: b}}, status: {phase: Failed}}", ok)
			read := s.get(o, ok)
			s.expect(read.GetGeneration() == 1, "the generation is %d", read.GetGeneration())
		},
		"what a pod is stays": func(s *Script) {
			o := s.create(called(pod, "a"), ok)
			s.update(o.DeepCopy(), `spec: {nodeName: node}`, invalid)
			s.update(o.DeepCopy(), `spec: {restartPolicy: Never}`, invalid)
			s.status(o.DeepCopy(), `status: {qosClass: Guaranteed}`, invalid)
			s.update(o, `spec: {activeDeadlineSeconds: 60}`, ok)
			s.update(o, `spec: {activeDeadlineSeconds: 50}`, ok)
			s.update(o.DeepCopy(), `spec: {activeDeadlineSeconds: 70}`, invalid)
			s.update(o.DeepCopy(), `spec: {activeDeadlineSeconds: null}`, invalid)
		},
		"a pod that cannot run is refused": func(s *Script) {
			s.create(`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}`, invalid)
			s.create(`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}]}}`, invalid)
		},
	}
	return cases
}

func others() table {
	cases := table{
		"a lease is taken by whoever writes first": func(s *Script) {
			o := s.create(called(lease, "a"), ok)
			rival := o.DeepCopy()
			s.update(o, `spec: {holderIdentity: first, leaseTransitions: 2, renewTime: "2026-11-20T07:00:01.123456Z"}`, ok)
			s.update(rival, `spec: {holderIdentity: second}`, conflict)
			s.update(o, `spec: {holderIdentity: "", leaseDurationSeconds: 1}`, ok)
		},
		"times have the precision that their format has": func(s *Script) {
			exact := time.Date(2026, 11, 20, 7, 0, 0, 987654321, time.UTC)
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: s.namespace}}
			l.Spec.RenewTime = &metav1.MicroTime{Time: exact}
			s.createObject(l, ok)
			s.expect(l.Spec.RenewTime.Nanosecond() == 987654000, "the lease was renewed at %s", l.Spec.RenewTime)
			j := &batchv1.Job{}
			s.create(called(job, "a"), ok)
			s.expect(s.client.Get(s.ctx, keyIn(s.namespace, "a"), j) == nil, "no Job")
			j.Status.StartTime = &metav1.Time{Time: exact}
			s.statusObject(j, ok)
			s.expect(j.Status.StartTime.Nanosecond() == 0, "the Job began at %s", j.Status.StartTime)
			r := &batchv1alpha1.JobRun{}
			s.create(called(run, "a"), ok)
			s.expect(s.client.Get(s.ctx, keyIn(s.namespace, "a"), r) == nil, "no run")
			r.Status.StartedAt = &metav1.Time{Time: exact}
			s.statusObject(r, ok)
			s.expect(r.Status.StartedAt.Nanosecond() == 0, "the run began at %s", r.Status.StartedAt)
		},
		"a lease has a duration": func(s *Script) {
			o := s.create(called(lease, "a"), ok)
			s.update(o.DeepCopy(), `spec: {leaseDurationSeconds: 0}`, invalid)
			s.update(o.DeepCopy(), `spec: {leaseTransitions: -1}`, invalid)
		},
		"an update creates a lease that is not there": func(s *Script) {
			s.updateObject(s.object(called(lease, "a")), ok)
			o := s.create(called(lease, "b"), ok)
			s.delete(o, ok)
			s.updateObject(o, conflict)
			o.SetUID("")
			s.updateObject(o, ok)
		},
		"an event is of something in its namespace": func(s *Script) {
			o := s.object(called(event, "a"))
			s.createObject(o.DeepCopy(), invalid)
			s.set(o, s.namespace, "regarding", "namespace")
			s.createObject(o.DeepCopy(), ok)
			for _, missing := range []string{"eventTime", "type", "reason", "action", "reportingController", "reportingInstance"} {
				wrong := o.DeepCopy()
				wrong.SetName("b")
				delete(wrong.Object, missing)
				s.note(missing)
				s.createObject(wrong, invalid)
			}
		},
		"the series of an event goes on": func(s *Script) {
			o := s.object(called(event, "a"))
			s.set(o, s.namespace, "regarding", "namespace")
			s.createObject(o, ok)
			s.update(o, `series: {count: 2, lastObservedTime: "2026-11-20T07:00:01.000001Z"}`, ok)
			s.update(o.DeepCopy(), `note: something else`, invalid)
			s.update(o.DeepCopy(), `series: {count: 1}`, invalid)
		},
		"a secret keeps its type, and its plain strings as data": func(s *Script) {
			o := s.create(called(secret, "a"), ok)
			s.update(o.DeepCopy(), "type: example.com/other", invalid)
			s.update(o, "stringData: {key: other, more: b}", ok)
			typed := &corev1.Secret{}
			s.expect(s.client.Get(s.ctx, keyOf(o), typed) == nil && string(typed.Data["key"]) == "other", "it is %v", typed.Data)
		},
		"a namespace has its name as a label": func(s *Script) {
			ns := &corev1.Namespace{}
			s.expect(s.client.Get(s.ctx, keyIn("", s.namespace), ns) == nil, "no namespace")
			s.note(s.shown(ns))
			s.createObject(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, exists)
		},
	}
	return cases
}
