// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import "fmt"

const (
	groupMember = "{name: outline, runTemplate: {" + httpTemplate + "}}"
	otherMember = "{name: chapter, runTemplate: {queue: big, claims: [{name: ollama}], " + httpTemplate + "}}"
	group       = "{kind: JobGroup, spec: {members: [" + groupMember + ", " + otherMember + "]}}"
	tickGroup   = `{kind: JobGroup, spec: {scheduledJobRef: {name: nightly}, scheduledTime: "2026-11-20T07:00:00Z", members: [` + groupMember + "]}}"
)

func jobGroups() rules {
	s := start{base: group}
	return joined(s.group("spec"), jobGroupImmutability(), jobGroupPhases(), jobGroupStatus(), rules{
		"a group has a spec": {base: group, accept: []string{"{}"}, refuse: []string{"spec: null"}, at: "spec", says: "Required value"},
		"a name leaves room for the names of the members": {
			base: group, accept: set("metadata.name", "a", long(57), "a.b"), refuse: set("metadata.name", long(58), long(253)),
			says: "the name of a JobGroup may have at most 57 characters, since the names of its runs are made from it",
		},
		"a tick is that of a ScheduledJob": {
			base: tickGroup, accept: []string{"{}"}, refuse: []string{"spec: {scheduledJobRef: null}"}, at: "spec", says: "scheduledTime needs scheduledJobRef",
		},
		"scheduledTime is a readable time": {
			base: tickGroup, accept: set("spec.scheduledTime", goodTimes()...), refuse: set("spec.scheduledTime", append(badTimes(), fractions()...)...), at: "spec.scheduledTime", says: badSecond,
		},
		"scheduledJobRef has a name":   s.inside("spec.scheduledJobRef", "{name: a}").needed("name"),
		"scheduledJobRef is not empty": s.filled("spec.scheduledJobRef.name"),
		"scheduledJobRef has a bound":  s.upTo("spec.scheduledJobRef.name", 63),
		"a group may be as large as its bounds allow": {
			base: group, accept: []string{largeGroup()},
		},
		"a large group can be cancelled": {
			base: with(group, largeGroup()), stored: created, accept: []string{"spec: {cancel: true}", "status: {phase: Running}"},
		},
	})
}

// largeGroup has as many members as a group can have, each with as many headers and claims as a run can have.
func largeGroup() string {
	member := fmt.Sprintf(`{name: %s$i, runTemplate: {claims: %s, work: {http: {url: "https://a/%s", headers: %s}}}}`,
		long(61), list(16, "{name: a$i, count: 100000}"), long(2038), list(32, "{name: "+long(98)+"$i, value: b}"))
	return "spec: {members: " + list(64, member) + "}"
}

// group are the rules of what a group consists of, wherever that stands.
func (s start) group(path string) rules {
	members := path + ".members"
	member := s.each(members, groupMember)
	return joined(s.distinct(members, "{name: a$i, runTemplate: {"+httpTemplate+"}}", 64), member.label("name"), s.between(path+".ttlSecondsAfterFinished", 0, 365*24*3600), rules{
		"members are one after the other or side by side": s.one(path+".mode", "Sequential", "Parallel"),
		"there are three ways to go on after a failure":   s.one(path+".onFailure", "Stop", "Continue", "Skip"),
		"a group has members":                             s.needed(members),
		"a group has a member": {
			base: s.base, accept: []string{member.variant("{}")}, refuse: set(members, []any{}), at: members, says: "at least 1 items",
		},
		"a member has a name":     member.needed("name"),
		"a member has a template": member.needed("runTemplate"),
		"a member has something to run": {
			base: s.base, accept: []string{member.variant("{}")}, refuse: []string{member.variant("{runTemplate: {work: null}}"), member.variant("{runTemplate: {work: null, queue: big}}")},
			at: members + "[0].runTemplate", says: "runTemplate.work is required: exactly one of job and http",
		},
	})
}

func jobGroupImmutability() rules {
	const members = "members is immutable, its order included; create a new group instead"
	of := func(items string) string { return "spec: {members: [" + items + "]}" }
	return rules{
		"no member is changed, added, removed or moved": {
			base: group, stored: created, accept: []string{"{}", of(groupMember + ", " + otherMember)},
			refuse: []string{
				of(groupMember), of(otherMember), of(otherMember + ", " + groupMember), of(groupMember + ", " + otherMember + ", {name: more, runTemplate: {" + httpTemplate + "}}"),
				of(groupMember + ", " + with(otherMember, "name: other")), of(groupMember + ", " + with(otherMember, "runTemplate: {queue: other}")),
				of(groupMember + ", " + with(otherMember, "runTemplate: {queue: null}")), of(groupMember + ", " + with(otherMember, "runTemplate: {claims: [{name: ollama, count: 2}]}")),
				of(groupMember + ", " + with(otherMember, "runTemplate: {priority: 1}")), of(groupMember + ", " + with(otherMember, `runTemplate: {work: {http: {url: "https://other.example/"}}}`)),
			},
			at: "spec", says: members,
		},
		"no member is changed while the group runs": {
			base: group, stored: []string{"status: {phase: Running}"}, accept: []string{"{}"}, refuse: []string{of(with(groupMember, "runTemplate: {priority: 1}") + ", " + otherMember)}, at: "spec", says: members,
		},
		"the work of a Job in a group cannot be changed": {
			base: "{kind: JobGroup, spec: {members: [{name: a, runTemplate: {" + richJob + "}}]}}", stored: created, accept: []string{of("{name: a, runTemplate: {" + richJob + "}}")},
			refuse: []string{of("{name: a, runTemplate: {" + jobTemplate + "}}")}, at: "spec", says: members,
		},
		"mode cannot be changed": {
			base: with(group, "spec: {mode: Parallel}"), stored: created, accept: set("spec.mode", "Parallel"), refuse: set("spec.mode", "Sequential", nil), at: "spec", says: "mode is immutable; create a new group instead",
		},
		"mode cannot be added": {
			base: group, stored: created, accept: set("spec.mode", "Sequential"), refuse: set("spec.mode", "Parallel"), at: "spec", says: "mode is immutable; create a new group instead",
		},
		"onFailure cannot be changed": {
			base: with(group, "spec: {onFailure: Skip}"), stored: created, accept: set("spec.onFailure", "Skip"), refuse: set("spec.onFailure", "Continue", "Stop", nil),
			at: "spec", says: "onFailure is immutable; create a new group instead",
		},
		"onFailure cannot be added": {
			base: group, stored: created, accept: set("spec.onFailure", "Stop"), refuse: set("spec.onFailure", "Continue"), at: "spec", says: "onFailure is immutable; create a new group instead",
		},
		"a group's ScheduledJob cannot be changed": {
			base: tickGroup, stored: created, accept: []string{"{}"}, refuse: set("spec.scheduledJobRef.name", "other"), at: "spec", says: "scheduledJobRef is immutable",
		},
		"a group's ScheduledJob cannot be removed": {
			base: with(tickGroup, "spec: {scheduledTime: null}"), stored: created, accept: []string{"{}"}, refuse: set("spec.scheduledJobRef", nil), at: "spec", says: "scheduledJobRef is immutable",
		},
		"a group's ScheduledJob cannot be added": {
			base: group, stored: created, accept: []string{"{}"}, refuse: set("spec.scheduledJobRef.name", "other"), at: "spec", says: "scheduledJobRef is immutable",
		},
		"a group's tick cannot be changed or removed": {
			base: tickGroup, stored: created, accept: set("spec.scheduledTime", "2026-11-20T07:00:00Z"), refuse: set("spec.scheduledTime", "2026-11-20T07:00:01Z", nil), at: "spec", says: "scheduledTime is immutable",
		},
		"a group's tick cannot be added": {
			base: with(tickGroup, "spec: {scheduledTime: null}"), stored: created, accept: []string{"{}"}, refuse: set("spec.scheduledTime", "2026-11-20T07:00:00Z"), at: "spec", says: "scheduledTime is immutable",
		},
		"the cancelling of a group cannot be taken back": {
			base: group, stored: []string{"spec: {cancel: true}"}, accept: set("spec.cancel", true), refuse: set("spec.cancel", false, nil), at: "spec", says: "cancel cannot be taken back; create a new group instead",
		},
		"a group may be cancelled, and be kept for another time, at any time": {
			base: group, stored: groupWays["Failed"], accept: []string{"spec: {cancel: true}", "spec: {ttlSecondsAfterFinished: 1}"},
		},
	}
}

// groupFree are the fields of spec that a person may edit.
var groupFree = []string{"cancel", "ttlSecondsAfterFinished"}

// groupWays leads to each phase.
var groupWays = map[string][]string{
	"Pending":    {"{}"},
	"Running":    {"status: {phase: Running}"},
	"Cancelling": {"status: {phase: Running}", "status: {phase: Cancelling}"},
	"Completed":  {"status: {phase: Running}", "status: {phase: Completed}"},
	"Failed":     {"status: {phase: Running}", "status: {phase: Failed}"},
	"Skipped":    {"status: {phase: Skipped}"},
	"Cancelled":  {"status: {phase: Cancelled}"},
}

func jobGroupPhases() rules {
	const (
		final      = "a terminal phase never changes"
		noWayBack  = "nothing returns to Pending"
		cancelling = "a Cancelling group becomes Cancelled or Failed"
	)
	all := rules{
		"a group's phase is one of seven": {
			base: group, stored: created, accept: set("status.phase", "Running"), refuse: set("status.phase", "Queued", "running", ""), at: "status.phase", says: "supported values",
		},
		"a write of status without a phase brings no group back": {
			base: group, stored: groupWays["Running"], accept: []string{"status: {reason: Good}"}, refuse: []string{"status: {phase: null}", "status: null"}, at: "status.phase", says: noWayBack,
		},
	}
	for from, next := range map[string]struct {
		to   []string
		says string
	}{
		"Pending":    {[]string{"Running", "Cancelling", "Completed", "Failed", "Skipped", "Cancelled"}, ""},
		"Running":    {[]string{"Cancelling", "Completed", "Failed", "Skipped", "Cancelled"}, noWayBack},
		"Cancelling": {[]string{"Cancelled", "Failed"}, cancelling},
		"Completed":  {nil, final},
		"Failed":     {nil, final},
		"Skipped":    {nil, final},
		"Cancelled":  {nil, final},
	} {
		r := phases(group, groupWays, from, next.to, "status.phase", next.says)
		r.also = []string{noWayBack}
		all[from+" is followed only by what the life of a group allows"] = r
	}
	return all
}

func jobGroupStatus() rules {
	s := start{base: group, stored: created}
	const path = "status.members"
	member := s.each(path, "{name: a, phase: Waiting}")
	return joined(s.conditions(), s.announcements(), s.halt(), s.texts(map[string]int{"status.reason": 64, "status.message": 2048, "status.settled": 16}),
		s.distinct(path, "{name: a$i, phase: Waiting}", 64), member.texts(map[string]int{"name": 63, "reason": 64, "message": 512, "runName": 63, "runUID": 64}),
		rules{
			"what is told of a member has its name":  member.needed("name"),
			"what is told of a member has its phase": member.needed("phase"),
			"a member's phase is one of seven":       member.one("phase", "Waiting", "Queued", "Running", "Completed", "Failed", "Skipped", "Cancelled"),
		})
}
