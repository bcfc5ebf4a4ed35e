// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import "slices"

const (
	// richJob is work with about everything in it.
	richJob = `work: {job: {skipExitCodes: [3, 4], template: {metadata: {labels: {team: a}}, spec: {
		completions: 2, completionMode: Indexed, parallelism: 2, activeDeadlineSeconds: 600, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [5]}}]},
		template: {metadata: {annotations: {note: b}}, spec: {nodeName: node-1, nodeSelector: {disk: ssd}, restartPolicy: Never,
			initContainers: [{name: first, image: busybox}, {name: second, image: busybox}],
			containers: [{name: main, image: busybox, args: [a, b], env: [{name: A, value: a}], ports: [{containerPort: 80}], resources: {requests: {cpu: 100m}}}],
			volumes: [{name: data, emptyDir: {sizeLimit: 1Gi}}]}}}}}}`
	// richHTTP is a call with about everything in it.
	richHTTP = `work: {http: {url: "https://work.example/", method: POST, body: "{}", headers: [{name: A, value: a}, {name: B, secretKeyRef: {name: b, key: c}}],
		cloudEvent: {type: a, subject: b}, successStatusCodes: [200, 201], skipStatusCodes: [204]}}`

	httpRun   = `{kind: JobRun, spec: {work: {http: {url: "https://work.example/"}}}}`
	chainHere = `{rootName: root, rootUID: "1234", queuedAt: "2026-11-20T07:00:00Z", sequence: 7, idempotencyKey: 1234-5}`
	retryRun  = `{kind: JobRun, spec: {retryOf: root, attempt: 1, chain: ` + chainHere + `, work: {http: {url: "https://work.example/"}}}}`
	tickRun   = `{kind: JobRun, spec: {scheduledJobRef: {name: nightly}, scheduledTime: "2026-11-20T07:00:00Z", work: {http: {url: "https://work.example/"}}}}`
)

func jobRuns() rules {
	return joined(jobRunShapes(), jobRunNames(), jobRunFields(), jobRunImmutability(), jobRunPhases(), jobRunStatus())
}

// jobRunShapes are the rules about which fields go together.
func jobRunShapes() rules {
	const nothing = "kind: JobRun"
	variant := func(spec string) string { return "spec: " + spec }
	return rules{
		"a run has something to run": {
			base: nothing,
			accept: []string{
				variant(`{work: {http: {url: "https://work.example/"}}}`), variant("{scheduledJobRef: {name: nightly}}"), variant("{retryOf: root}"),
				variant(`{scheduledJobRef: {name: nightly}, priority: 1, notBefore: "2026-11-20T07:00:00Z", cancel: true, ttlSecondsAfterFinished: 1}`),
			},
			refuse: []string{variant("{}"), variant("{priority: 1}")},
			at:     "spec", says: "a JobRun needs work, or scheduledJobRef (run it now), or retryOf (try that run again)",
		},
		"there is a spec": start{base: httpRun}.needed("spec"),
		"a run without work of its own has no rules of its own": {
			base: "{kind: JobRun, spec: {scheduledJobRef: {name: nightly}}}", accept: []string{"{}", "spec: {priority: 1}", "spec: {ttlSecondsAfterFinished: 1}"},
			refuse: []string{"spec: {queue: big}", "spec: {type: story}", "spec: {claims: [{name: ollama}]}", "spec: {timeoutSeconds: 1}", "spec: {staleAfterSeconds: 1}", "spec: {retryPolicy: {maxRetries: 0}}", "spec: {recoveryPolicy: Adopt}"},
			at:     "spec", says: "without work everything but priority, notBefore, cancel and ttlSecondsAfterFinished comes from scheduledJobRef or retryOf; remove queue, type, claims, timeoutSeconds, staleAfterSeconds, retryPolicy and recoveryPolicy",
		},
		"a run by hand is of a ScheduledJob or of a run": {
			base: nothing, accept: []string{variant("{scheduledJobRef: {name: nightly}}"), variant("{retryOf: root}")},
			refuse: []string{variant("{scheduledJobRef: {name: nightly}, retryOf: root}")},
			at:     "spec", says: "set one of scheduledJobRef and retryOf",
		},
		"a chain is continued by a retry": {
			base: retryRun, accept: []string{"{}", "spec: {scheduledJobRef: {name: nightly}}"}, refuse: []string{"spec: {retryOf: null}", "spec: {retryOf: null, attempt: null}"},
			at: "spec", says: "chain and attempt are set by the manager, both, on the retries it makes",
		},
		"a chain comes with its attempt": {
			base: retryRun, accept: []string{"{}"}, refuse: []string{"spec: {attempt: null}"},
			at: "spec", says: "chain and attempt are set by the manager, both, on the retries it makes",
		},
		"an attempt comes with its chain": {
			base: httpRun, accept: []string{"{}"}, refuse: []string{"spec: {attempt: 1}"},
			at: "spec", says: "chain and attempt are set by the manager, both, on the retries it makes",
		},
		"a retry by hand has no work of its own": {
			base: nothing, accept: []string{variant("{retryOf: root}")}, refuse: []string{variant(`{retryOf: root, work: {http: {url: "https://work.example/"}}}`)},
			at: "spec", says: "a retry by hand names retryOf alone: its work comes from that run",
		},
		"a retry by the manager has its own work": {
			base: retryRun, accept: []string{"{}"}, refuse: []string{"spec: {work: null}"},
			at: "spec", says: "a retry by hand names retryOf alone: its work comes from that run",
		},
		"a tick is that of a ScheduledJob": {
			base: tickRun, accept: []string{"{}"}, refuse: []string{"spec: {scheduledJobRef: null}"}, at: "spec", says: "scheduledTime needs scheduledJobRef",
		},
		"a member of a group has its own work, and no tick": {
			base: "{kind: JobRun, spec: {groupRef: {name: novel, member: outline}}}",
			accept: []string{
				variant("{" + httpTemplate + "}"), variant("{scheduledJobRef: {name: nightly}, " + httpTemplate + "}"),
				variant("{retryOf: root, attempt: 1, chain: " + chainHere + ", " + httpTemplate + "}"),
			},
			refuse: []string{
				variant("{scheduledJobRef: {name: nightly}}"), variant("{retryOf: root}"),
				variant(`{scheduledJobRef: {name: nightly}, scheduledTime: "2026-11-20T07:00:00Z", ` + httpTemplate + "}"),
			},
			at: "spec", says: "groupRef needs work, and excludes scheduledTime: the manager sets it on the members it creates",
		},
		"a run is not its own retry": {
			base: nothing, accept: []string{"{metadata: {name: self}, spec: {retryOf: other}}"}, refuse: []string{"{metadata: {name: self}, spec: {retryOf: self}}"},
			says: "a run cannot be the retry of itself",
		},
	}
}

func jobRunNames() rules {
	const says = "the name of a JobRun may have at most 57 characters, since the names of its retries and its Job are made from it"
	return rules{
		"a name leaves room for the number of a retry": {
			base: httpRun, accept: set("metadata.name", "a", long(57), "a.b"), refuse: set("metadata.name", long(58), long(63), long(253)), says: says,
		},
		"a retry's name is as long as a Job's may be": {
			base: retryRun, accept: set("metadata.name", long(58), long(63)), refuse: set("metadata.name", long(64)), says: says,
		},
	}
}

func jobRunFields() rules {
	run, retry := start{base: httpRun}, start{base: retryRun}
	member := run.inside("spec.groupRef", "{name: a, member: b}")
	return joined(rules{
		"retryOf has a bound":              start{base: "kind: JobRun"}.upTo("spec.retryOf", 63),
		"retryOf is not empty":             start{base: "kind: JobRun"}.filled("spec.retryOf"),
		"scheduledJobRef has a bound":      run.upTo("spec.scheduledJobRef.name", 63),
		"scheduledJobRef is not empty":     run.filled("spec.scheduledJobRef.name"),
		"scheduledJobRef has a name":       {base: httpRun, accept: []string{"spec: {scheduledJobRef: {name: a}}"}, refuse: []string{"spec: {scheduledJobRef: {}}"}, at: "spec.scheduledJobRef.name", says: "Required value"},
		"scheduledTime is a readable time": {base: tickRun, accept: set("spec.scheduledTime", goodTimes()...), refuse: set("spec.scheduledTime", append(badTimes(), fractions()...)...), at: "spec.scheduledTime", says: badSecond},
		"notBefore is a readable time":     {base: httpRun, accept: set("spec.notBefore", append(goodTimes(), fractions()...)...), refuse: set("spec.notBefore", badTimes()...), at: "spec.notBefore", says: badTime},
		"groupRef names a group":           member.needed("name"),
		"a group's name is not empty":      member.filled("name"),
		"a group's name has a bound":       member.upTo("name", 63),
		"groupRef names a member":          member.needed("member"),
		"a member's name is not empty":     member.filled("member"),
		"a member's name has a bound":      member.upTo("member", 63),
		"attempts begin at 1":              retry.least("spec.attempt", 1),
		"attempts end at a million":        retry.most("spec.attempt", 1000000),
	}, retry.chain("spec.chain"))
}

// chain are the rules of what a retry carries.
func (s start) chain(path string) rules {
	return rules{
		path + " has a root":              s.needed(path + ".rootName"),
		path + " has a root with a name":  s.filled(path + ".rootName"),
		path + " has a root's name":       s.upTo(path+".rootName", 63),
		path + " has a root's UID":        s.needed(path + ".rootUID"),
		path + " has a root with a UID":   s.filled(path + ".rootUID"),
		path + " has a short UID":         s.upTo(path+".rootUID", 64),
		path + " has its place":           s.needed(path + ".queuedAt"),
		path + " has a readable place":    {base: s.base, stored: s.stored, accept: set(path+".queuedAt", goodTimes()...), refuse: set(path+".queuedAt", append(badTimes(), fractions()...)...), at: path + ".queuedAt", says: badSecond},
		path + " has a sequence":          s.needed(path + ".sequence"),
		path + " counts from nothing":     s.least(path+".sequence", 0),
		path + " has a key":               s.needed(path + ".idempotencyKey"),
		path + " has a key with a letter": s.filled(path + ".idempotencyKey"),
		path + " has a short key":         s.upTo(path+".idempotencyKey", 128),
	}
}

// fixed are the fields of spec that never change: a value, and another one.
func fixed() map[string][2]any {
	return map[string][2]any{
		"queue":             {"a", "b"},
		"type":              {"a", "b"},
		"claims":            {[]any{map[string]any{"name": "a"}}, []any{map[string]any{"name": "a", "count": 2}}},
		"timeoutSeconds":    {1, 2},
		"staleAfterSeconds": {1, 2},
		"retryPolicy":       {map[string]any{"maxRetries": 1}, map[string]any{"baseDelaySeconds": 1, "maxRetries": 1}},
		"recoveryPolicy":    {"Fail", "Adopt"},
		"scheduledJobRef":   {map[string]any{"name": "a"}, map[string]any{"name": "b"}},
		"groupRef":          {map[string]any{"name": "a", "member": "b"}, map[string]any{"name": "a", "member": "c"}},
	}
}

// free are the fields of spec that a person may edit.
var free = []string{"cancel", "priority", "notBefore", "ttlSecondsAfterFinished"}

func jobRunImmutability() rules {
	all := rules{}
	for field, values := range fixed() {
		path, says := "spec."+field, field+" is immutable"
		base := with(httpRun, set(path, values[0])[0])
		all[field+" cannot be changed or removed"] = rule{base: base, stored: created, accept: set(path, values[0]), refuse: set(path, values[1], nil), at: "spec", says: says}
		all[field+" cannot be added"] = rule{base: httpRun, stored: created, accept: []string{"{}"}, refuse: set(path, values[1]), at: "spec", says: says}
	}
	const job, pod, http = "spec.work.job.", "spec.work.job.template.spec.template.spec.", "spec.work.http."
	const work = "work is immutable; create a new run instead"
	return joined(all, rules{
		"the order of claims says nothing": {
			base: with(httpRun, "spec: {claims: [{name: a}, {name: b, count: 2}]}"), stored: created, accept: []string{"spec: {claims: [{name: b, count: 2}, {name: a}]}"},
			refuse: []string{"spec: {claims: [{name: a}]}", "spec: {claims: [{name: a}, {name: c, count: 2}]}", "spec: {claims: []}"}, at: "spec", says: "claims is immutable",
		},
		"scheduledTime cannot be changed or removed": {
			base: tickRun, stored: created, accept: set("spec.scheduledTime", "2026-11-20T07:00:00Z"), refuse: set("spec.scheduledTime", "2026-11-20T07:00:01Z", nil),
			at: "spec", says: "scheduledTime is immutable",
		},
		"scheduledTime cannot be added": {
			base: with(tickRun, "spec: {scheduledTime: null}"), stored: created, accept: []string{"{}"}, refuse: set("spec.scheduledTime", "2026-11-20T07:00:00Z"),
			at: "spec", says: "scheduledTime is immutable",
		},
		"retryOf cannot be changed": {
			base: "{kind: JobRun, spec: {retryOf: a}}", stored: created, accept: set("spec.retryOf", "a"), refuse: set("spec.retryOf", "b"), at: "spec", says: "retryOf is immutable",
		},
		"retryOf cannot be removed": {
			base: retryRun, stored: created, accept: []string{"{}"}, refuse: set("spec.retryOf", nil), at: "spec", says: "retryOf is immutable", also: []string{"chain and attempt are set by the manager"},
		},
		"retryOf cannot be added": {
			base: httpRun, stored: created, accept: []string{"{}"}, refuse: set("spec.retryOf", "a"), at: "spec", says: "retryOf is immutable", also: []string{"a retry by hand names retryOf alone"},
		},
		"attempt cannot be changed": {
			base: retryRun, stored: created, accept: set("spec.attempt", 1), refuse: set("spec.attempt", 2), at: "spec", says: "attempt is immutable",
		},
		"attempt cannot be removed": {
			base: retryRun, stored: created, accept: []string{"{}"}, refuse: set("spec.attempt", nil), at: "spec", says: "attempt is immutable", also: []string{"chain and attempt are set by the manager"},
		},
		"chain cannot be changed": {
			base: retryRun, stored: created, accept: set("spec.chain.sequence", 7), at: "spec", says: "chain is immutable",
			refuse: []string{set("spec.chain.sequence", 8)[0], set("spec.chain.rootName", "b")[0], set("spec.chain.rootUID", "b")[0], set("spec.chain.queuedAt", "2026-11-20T07:00:01Z")[0], set("spec.chain.idempotencyKey", "b")[0]},
		},
		"chain cannot be removed": {
			base: retryRun, stored: created, accept: []string{"{}"}, refuse: set("spec.chain", nil), at: "spec", says: "chain is immutable", also: []string{"chain and attempt are set by the manager", "a retry by hand names retryOf alone"},
		},
		"the work of a Job cannot be changed anywhere": {
			base: "{kind: JobRun, spec: {" + richJob + "}}", stored: created, accept: []string{"{}", set(job+"template.spec.completions", 2)[0]}, at: "spec", says: work,
			refuse: []string{
				set(job+"skipExitCodes", []any{3})[0], set(job+"skipExitCodes", []any{3, 4, 5})[0], set(job+"skipExitCodes", nil)[0],
				set(job+"template.metadata.labels.team", "b")[0], set(job+"template.metadata.labels.other", "b")[0], set(job+"template.metadata", nil)[0],
				set(job+"template.spec.completions", 1)[0], set(job+"template.spec.activeDeadlineSeconds", nil)[0], set(job+"template.spec.maxFailedIndexes", 1)[0],
				set(pod+"nodeName", "node-2")[0], set(pod+"nodeName", nil)[0], set(pod+"schedulerName", "other")[0], set(pod+"nodeSelector.disk", nil)[0],
				set(pod+"containers", []any{map[string]any{"name": "main", "image": "other"}})[0], set(pod+"volumes", nil)[0], set(pod+"hostUsers", false)[0],
			},
		},
		"the work of a call cannot be changed anywhere": {
			base: "{kind: JobRun, spec: {" + richHTTP + "}}", stored: created, accept: []string{"{}", set(http+"method", "POST")[0]}, at: "spec", says: work,
			refuse: []string{
				set(http+"url", "https://other.example/")[0], set(http+"method", nil)[0], set(http+"body", "")[0], set(http+"body", nil)[0], set(http+"headers", nil)[0],
				set(http+"headers", []any{map[string]any{"name": "A", "value": "a"}})[0], set(http+"cloudEvent.subject", "c")[0], set(http+"cloudEvent.subject", nil)[0], set(http+"cloudEvent.source", "/a")[0],
				set(http+"cloudEvent", nil)[0], set(http+"successStatusCodes", nil)[0], set(http+"skipStatusCodes", []any{204, 205})[0],
				"spec: {work: {http: null, job: {template: {spec: {template: {spec: {containers: [{name: main, image: busybox}]}}}}}}}",
			},
		},
		"work cannot be added": {
			base: "{kind: JobRun, spec: {scheduledJobRef: {name: nightly}}}", stored: created, accept: []string{"{}"}, refuse: []string{"spec: {" + httpTemplate + "}"}, at: "spec", says: work,
		},
		"work cannot be removed": {
			base: tickRun, stored: created, accept: []string{"{}"}, refuse: []string{"spec: {work: null}"}, at: "spec", says: work,
		},
		"the order of init containers cannot be changed": {
			base: "{kind: JobRun, spec: {" + richJob + "}}", stored: created, accept: []string{"{}"}, at: "spec",
			refuse: set(pod+"initContainers", []any{map[string]any{"name": "second", "image": "busybox"}, map[string]any{"name": "first", "image": "busybox"}}),
			says:   "the order of initContainers is immutable, as all of work is; create a new run instead",
		},
		"cancel cannot be taken back": {
			base: httpRun, stored: []string{"spec: {cancel: true}"}, accept: set("spec.cancel", true), refuse: set("spec.cancel", false, nil),
			at: "spec", says: "cancel cannot be taken back; create a new run instead",
		},
		"a run may be cancelled, and be kept for another time, at any time": {
			base: httpRun, stored: []string{"status: {phase: Running}", "status: {phase: Completed}"}, accept: []string{"spec: {cancel: true}", "spec: {ttlSecondsAfterFinished: 1}"},
		},
		"priority changes only while Queued": {
			base: with(httpRun, "spec: {priority: 1}"), stored: []string{"status: {phase: Running}"}, accept: set("spec.priority", 1), refuse: set("spec.priority", 2, nil),
			at: "spec", says: "priority can be changed only while the run is Queued",
		},
		"priority is added only while Queued": {
			base: httpRun, stored: []string{"status: {phase: Running}"}, accept: []string{"{}"}, refuse: set("spec.priority", 2), at: "spec", says: "priority can be changed only while the run is Queued",
		},
		"notBefore changes only while Queued": {
			base: with(httpRun, `spec: {notBefore: "2026-11-20T07:00:00Z"}`), stored: []string{"status: {phase: Cancelled}"}, accept: []string{"{}"}, refuse: set("spec.notBefore", "2026-11-20T07:00:01Z", nil),
			at: "spec", says: "notBefore can be changed only while the run is Queued",
		},
		"notBefore is added only while Queued": {
			base: httpRun, stored: []string{"status: {phase: Running}"}, accept: []string{"{}"}, refuse: set("spec.notBefore", "2026-11-20T07:00:00Z"), at: "spec", says: "notBefore can be changed only while the run is Queued",
		},
		"while Queued the place in the queue can be changed": {
			base: httpRun, stored: created, accept: []string{"spec: {priority: 5}", `spec: {notBefore: "2026-11-20T07:00:00Z"}`},
		},
	})
}

// journeys leads to each phase.
var journeys = map[string][]string{
	"Queued":     {"{}"},
	"Running":    {"status: {phase: Running}"},
	"Cancelling": {"status: {phase: Running}", "status: {phase: Cancelling}"},
	"Completed":  {"status: {phase: Running}", "status: {phase: Completed}"},
	"Failed":     {"status: {phase: Running}", "status: {phase: Failed}"},
	"Skipped":    {"status: {phase: Skipped}"},
	"Cancelled":  {"status: {phase: Cancelled}"},
}

func jobRunPhases() rules {
	final := "a terminal phase never changes"
	all := rules{}
	for from, next := range map[string]struct {
		to       []string
		at, says string
	}{
		"Queued":     {[]string{"Running", "Skipped", "Cancelled"}, "status", "a Queued run becomes Running, Skipped or Cancelled"},
		"Running":    {[]string{"Cancelling", "Completed", "Failed", "Skipped"}, "status.phase", "a Running run becomes Cancelling, Completed, Failed or Skipped; nothing returns to Queued"},
		"Cancelling": {[]string{"Cancelled", "Failed"}, "status.phase", "a Cancelling run becomes Cancelled or Failed; nothing returns to Queued"},
		"Completed":  {nil, "status.phase", final},
		"Failed":     {nil, "status.phase", final},
		"Skipped":    {nil, "status.phase", final},
		"Cancelled":  {nil, "status.phase", final},
	} {
		all[from+" is followed only by what the life of a run allows"] = phases(httpRun, journeys, from, next.to, next.at, next.says)
	}
	return joined(all, rules{
		"a write of status without a phase brings nothing back": {
			base: httpRun, stored: journeys["Running"], accept: []string{"status: {reason: Good}"}, refuse: []string{"status: {phase: null}", "status: null"},
			at: "status.phase", says: "a Running run becomes Cancelling, Completed, Failed or Skipped; nothing returns to Queued",
		},
		"a write of status without a phase brings nothing terminal back": {
			base: httpRun, stored: journeys["Failed"], accept: []string{"status: {reason: Good}"}, refuse: []string{"status: {phase: null}", "status: null"}, at: "status.phase", says: final,
		},
		"a phase is one of seven": {
			base: httpRun, stored: created, accept: set("status.phase", "Running"), refuse: set("status.phase", "Lost", "queued", ""), at: "status.phase", says: "supported values", also: []string{"a Queued run becomes"},
		},
		"a run that nobody has acted upon takes the status of one that had ended, as a restore writes it": {
			base: httpRun, stored: created, accept: []string{"status: {phase: Completed, sequence: 7, finishedAt: 2026-11-20T07:00:00Z}", "status: {phase: Failed, sequence: 7, finishedAt: 2026-11-20T07:00:00Z}"},
			refuse: []string{"status: {phase: Completed, sequence: 7}", "status: {phase: Completed, finishedAt: 2026-11-20T07:00:00Z}"}, at: "status", says: "a Queued run becomes Running, Skipped or Cancelled",
		},
		"a run that waits is not ended without having been at work": {
			base: httpRun, stored: []string{"status: {sequence: 7}"}, accept: []string{"status: {phase: Cancelled, finishedAt: 2026-11-20T07:00:00Z}"},
			refuse: []string{"status: {phase: Completed, finishedAt: 2026-11-20T07:00:00Z}"}, at: "status", says: "a Queued run becomes Running, Skipped or Cancelled",
		},
		"a slot that was freed is never held again": {
			base: httpRun, stored: []string{"status: {phase: Running, slot: Held}", "status: {phase: Failed, slot: Free}"}, accept: set("status.slot", "Free"), refuse: set("status.slot", "Held"),
			at: "status.slot", says: "a slot once freed is never held again",
		},
		"a slot that was freed is not forgotten": {
			base: httpRun, stored: []string{"status: {phase: Running, slot: Held}", "status: {phase: Failed, slot: Free}"}, accept: set("status.slot", "Free"), refuse: set("status.slot", nil),
			at: "status", says: "a slot is freed, not forgotten",
		},
		"a slot that is held is freed, not forgotten": {
			base: httpRun, stored: []string{"status: {phase: Running, slot: Held}"}, accept: set("status.slot", "Held", "Free"), refuse: set("status.slot", nil), at: "status", says: "a slot is freed, not forgotten",
		},
	})
}

// phases is the rule of what may follow a phase, which may always stay.
func phases(base string, ways map[string][]string, from string, to []string, at, says string) rule {
	r := rule{base: base, stored: ways[from], accept: set("status.phase", from), at: at, says: says}
	for phase := range ways {
		variant := set("status.phase", phase)[0]
		switch {
		case slices.Contains(to, phase):
			r.accept = append(r.accept, variant)
		case phase != from:
			r.refuse = append(r.refuse, variant)
		}
	}
	return r
}

func jobRunStatus() rules {
	full := start{base: httpRun, stored: []string{`status: {
		incarnation: {id: a, epoch: "1.0", pod: {namespace: a, name: b, uid: c, startedAt: "2026-11-20T07:00:00Z"}},
		retry: {name: a, uid: b}, chain: {latestName: a, attempts: 1}}`}}
	resolved := start{base: "{kind: JobRun, spec: {retryOf: root}}", stored: []string{"status: {resolvedSpec: {attempt: 1, " + httpTemplate + ", chain: " + chainHere + "}}"}}
	all := rules{
		"who was asked to end before the work may be asked to end during it": {
			base: httpRun, stored: []string{"status: {halt: {phase: Skipped, reason: MemberFailed, message: a}}"},
			accept: []string{"{}", "status: {halt: {phase: Cancelled, reason: GroupCancelled, message: b}}"},
			refuse: []string{"status: {halt: {reason: Other}}", "status: {halt: {message: Other}}"},
			at:     "status.halt", says: "halt cannot be changed; only one that asks for Skipped may come to ask for Cancelled",
		},
		"slot is Held or Free":                            full.one("status.slot", "Held", "Free"),
		"an incarnation has an id":                        full.needed("status.incarnation.id"),
		"an incarnation has an epoch":                     full.needed("status.incarnation.epoch"),
		"a pod has a namespace":                           full.needed("status.incarnation.pod.namespace"),
		"a pod has a name":                                full.needed("status.incarnation.pod.name"),
		"a pod has a uid":                                 full.needed("status.incarnation.pod.uid"),
		"a pod has a start":                               full.needed("status.incarnation.pod.startedAt"),
		"a record of a retry has a name":                  full.needed("status.retry.name"),
		"a record of a retry has a uid":                   full.needed("status.retry.uid"),
		"what a root tells has a latest run":              full.needed("status.chain.latestName"),
		"what a root tells has a count":                   full.needed("status.chain.attempts"),
		"the attempt of a resolved run begins at 1":       resolved.least("status.resolvedSpec.attempt", 1),
		"the attempt of a resolved run ends at a million": resolved.most("status.resolvedSpec.attempt", 1000000),
	}
	return joined(all, full.conditions(), full.announcements(), start{base: httpRun, stored: created}.halt(), resolved.chain("status.resolvedSpec.chain"),
		resolved.texts(map[string]int{"status.resolvedSpec.scheduledJob": 63}), full.texts(map[string]int{
			"status.reason": 64, "status.message": 2048, "status.queue": 63, "status.jobName": 63, "status.fencedBy": 64, "status.result.body": 1024,
			"status.incarnation.id": 256, "status.incarnation.epoch": 64,
			"status.incarnation.pod.namespace": 63, "status.incarnation.pod.name": 253, "status.incarnation.pod.uid": 64,
			"status.retry.name": 63, "status.retry.uid": 64, "status.chain.latestName": 63,
		}))
}
