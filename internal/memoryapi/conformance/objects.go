// SPDX-License-Identifier: Apache-2.0

package conformance

// Objects in YAML, one of each kind. NAME stands for the name.
const (
	run         = `{kind: JobRun, metadata: {name: NAME}, spec: {queue: q, work: {http: {url: "https://work.example/"}}}}`
	queue       = `{kind: JobQueue, metadata: {name: NAME}, spec: {concurrency: {limit: 2}}}`
	ledger      = `{kind: QueueLedger, metadata: {name: NAME}, spec: {epoch: "100.1"}}`
	schedule    = `{kind: ScheduledJob, metadata: {name: NAME}, spec: {schedule: "@daily", runTemplate: {work: {http: {url: "https://work.example/"}}}}}`
	reservation = `{kind: DirectReservation, metadata: {name: NAME}, spec: {queue: q}}`
	group       = `{kind: JobGroup, metadata: {name: NAME}, spec: {members: [{name: a, runTemplate: {work: {http: {url: "https://work.example/"}}}}]}}`
	job         = `{apiVersion: batch/v1, kind: Job, metadata: {name: NAME}, spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: work, image: "work:1"}]}}}}`
	pod         = `{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {containers: [{name: work, image: "work:1"}]}}`
	nodePod     = `{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {nodeName: node, containers: [{name: work, image: "work:1"}]}}`
	lease       = `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: NAME}, spec: {holderIdentity: me, leaseDurationSeconds: 15, leaseTransitions: 1, renewTime: "2026-11-20T07:00:00.000001Z"}}`
	secret      = `{apiVersion: v1, kind: Secret, metadata: {name: NAME}, stringData: {key: value}}`
	account     = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: NAME}}`
	event       = `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: NAME}, eventTime: "2026-11-20T07:00:00.000001Z", type: Normal, reason: Began, action: Begin, note: it began, reportingController: reprise.dev/manager, reportingInstance: me, regarding: {kind: JobRun, name: a}}`
)
