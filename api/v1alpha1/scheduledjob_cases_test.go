// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

const (
	manual    = `{kind: ScheduledJob, spec: {runTemplate: {work: {http: {url: "https://work.example/"}}}}}`
	recurring = `{kind: ScheduledJob, spec: {schedule: "@daily", runTemplate: {work: {http: {url: "https://work.example/"}}}}}`
	once      = `{kind: ScheduledJob, spec: {runAt: "2026-11-20T07:00:00Z", runTemplate: {work: {http: {url: "https://work.example/"}}}}}`
)

const (
	// badTime is said of every time that is out of bounds or not well written.
	badTime = "write a time of the years 1970 to 2199 like 2026-11-20T07:00:00Z"
	// badSecond is said of a time that is compared with others, and must be whole besides: clients write no fractions.
	badSecond = "write a time of the years 1970 to 2199, in whole seconds, like 2026-11-20T07:00:00Z"
)

// goodTimes can be read by Kubernetes' clients.
func goodTimes() []any {
	return []any{"2026-11-20T07:00:00Z", "2026-11-20T07:00:00.000Z", "2026-11-20T07:00:00+01:00", "1970-01-01T00:00:00Z", "2199-12-31T23:59:59Z"}
}

// fractions are of a second.
func fractions() []any { return []any{"2026-11-20T07:00:00.5Z", "2026-11-20T07:00:00.000000001Z"} }

// badTimes pass for times to the format date-time, but for the first three, which are out of bounds: one that was stored
// would keep every client that reads the kind, the manager included, from reading any object of it.
func badTimes() []any {
	return []any{
		"1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "0001-01-01T00:00:00Z",
		"2026-11-20t07:00:00z", "2026-11-20T07:00:00+99:99", []any{},
	}
}

func scheduledJobs() rules {
	hand, group := start{base: manual}, start{base: `{kind: ScheduledJob, spec: {groupTemplate: {members: [` + groupMember + `]}}}`}
	all := rules{
		"it is recurring, for one time or by hand": {
			base: manual, accept: []string{"{}", `spec: {schedule: "@daily"}`, `spec: {runAt: "2026-11-20T07:00:00Z"}`},
			refuse: []string{`spec: {schedule: "@daily", runAt: "2026-11-20T07:00:00Z"}`},
			at:     "spec", says: "set at most one of schedule (recurring) and runAt (once); with neither, the ScheduledJob is a template for manual runs",
		},
		"a zone is that of a schedule": {
			base: recurring, accept: []string{"spec: {timeZone: Europe/Lisbon}"},
			refuse: []string{"spec: {schedule: null, timeZone: Europe/Lisbon}", `spec: {schedule: null, timeZone: Europe/Lisbon, runAt: "2026-11-20T07:00:00Z"}`},
			at:     "spec", says: "timeZone needs schedule; runAt carries its own offset",
		},
		"only a one-time job goes when it has fired": {
			base: once, accept: []string{"spec: {ttlSecondsAfterFired: 0}"},
			refuse: []string{"spec: {runAt: null, ttlSecondsAfterFired: 0}", `spec: {runAt: null, schedule: "@daily", ttlSecondsAfterFired: 0}`},
			at:     "spec", says: "ttlSecondsAfterFired needs runAt",
		},
		"there is something to run": {
			base: manual, accept: []string{"{}"}, refuse: []string{"spec: {runTemplate: {work: null}}"},
			at: "spec", says: "runTemplate.work is required: exactly one of job and http",
		},
		"a tick is a run or a group": {
			base:   manual,
			accept: []string{"{}", "spec: {runTemplate: null, groupTemplate: {members: [" + groupMember + "]}}"},
			refuse: []string{"spec: {runTemplate: null}", "spec: {groupTemplate: {members: [" + groupMember + "]}}"},
			at:     "spec", says: "set exactly one of runTemplate (a run) and groupTemplate (several runs in order)",
		},
		"there is a spec": {
			base: manual, accept: []string{"{}"}, refuse: []string{"spec: null"}, at: "spec", says: "Required value",
		},
		"a schedule is not empty": {
			base: manual, accept: set("spec.schedule", "@daily"), refuse: set("spec.schedule", ""), at: "spec.schedule", says: "at least 1 chars long", also: []string{"schedule needs five fields"},
		},
		"a schedule has at most 256 letters": {
			base: manual, accept: set("spec.schedule", "* * * * "+long(248)), refuse: set("spec.schedule", "* * * * "+long(249)), at: "spec.schedule", says: "may not be more than 256",
		},
		"a zone does not hide in the schedule": {
			base: manual, accept: set("spec.schedule", "0 6 * * *"), refuse: set("spec.schedule", "TZ=UTC 0 6 * * *", "CRON_TZ=Europe/Lisbon 0 6 * * *", "TZ=", "TZ=0"),
			at: "spec.schedule", says: "TZ= and CRON_TZ= are not supported in schedule; set spec.timeZone",
		},
		"a schedule has five fields or is a descriptor": {
			base:   manual,
			accept: set("spec.schedule", "* * * * *", "*/5 0-6,12 1 JAN-mar ?", "0  6 * * MON-FRI", "@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "@every 5s"),
			refuse: set("spec.schedule", "nonsense", "* * * *", "0 * * * * *", "@reboot", "@Daily", "@daily ", " 0 6 * * *", "0 6 * * *\n", "5 * * * $", "1 2 3 4 ö"),
			at:     "spec.schedule",
			says:   "schedule needs five fields (minute, hour, day of month, month, day of week), or @hourly, @daily, @weekly, @monthly, @yearly, or @every and a duration",
		},
		"an interval is at least a second, and whole": {
			base:   manual,
			accept: set("spec.schedule", "@every 1s", "@every 90s", "@every 1h30m", "@every 1h30m15s", "@every 1.5h", "@every 0h1s", "@every 99999h9999999m999999999s"),
			refuse: set("spec.schedule", "@every 500ms", "@every -1h", "@every 0s", "@every", "@every ", "@every h", "@every 5", "@every 1.5s", "@every 0.001m", "@every 1500ms", "@every 1d",
				"@every 5s ", "@every  5s", "@every 5s 5s", "@every +5s", "@every 99999999999999999999h", "@everyday", "@every one hour", "@every 1s1h"),
			at:   "spec.schedule",
			says: "@every needs hours, minutes and whole seconds, at least 1s, such as @every 90s or @every 1h30m",
		},
		"runAt is a time that can be read": {
			base: manual, accept: set("spec.runAt", goodTimes()...), refuse: set("spec.runAt", append(badTimes(), fractions()...)...), at: "spec.runAt", says: badSecond,
		},
		"a zone is not empty": {
			base: recurring, accept: set("spec.timeZone", "UTC"), refuse: set("spec.timeZone", ""), at: "spec.timeZone", says: "at least 1 chars long",
		},
		"a zone has at most 64 letters": {
			base: recurring, accept: set("spec.timeZone", "America/Argentina/ComodRivadavia"), refuse: set("spec.timeZone", long(65)), at: "spec.timeZone", says: "may not be more than 64", also: []string{"timeZone must be"},
		},
		"a zone is in the zone database": {
			base: recurring, accept: set("spec.timeZone", "UTC", "Etc/UTC", "Europe/Lisbon", "America/New_York", "Australia/Lord_Howe", "Etc/GMT+5", "America/Argentina/Buenos_Aires"),
			refuse: set("spec.timeZone", "Mars/Olympus", "Local", "+02:00", "02:00", "europe/lisbon", "../etc/passwd", "/etc/localtime", "Europe/Lisbon ", "GMT+5", "Europe"),
			at:     "spec.timeZone", says: "timeZone must be a name of the IANA zone database, such as Europe/Lisbon",
		},
		"missedRunPolicy is one of three": {
			base: manual, accept: set("spec.missedRunPolicy", "RunOnce", "RunAll", "Skip"), refuse: set("spec.missedRunPolicy", "runonce", "", "Ignore"), at: "spec.missedRunPolicy", says: "supported values",
		},
		"concurrencyPolicy is one of three": {
			base: manual, accept: set("spec.concurrencyPolicy", "Allow", "Forbid", "Replace"), refuse: set("spec.concurrencyPolicy", "replace", "", "Cancel"), at: "spec.concurrencyPolicy", says: "supported values",
		},
		"a name leaves room for the time of a tick": {
			base: manual, accept: set("metadata.name", "a", long(46), "a.b"), refuse: set("metadata.name", long(47), long(253)),
			says: "the name of a ScheduledJob may have at most 46 characters, since the names of its runs are made from it",
		},
		"everything but the name can be edited": {
			base: recurring, stored: created,
			accept: []string{
				`spec: {schedule: "0 6 * * *", timeZone: Europe/Lisbon, suspend: true}`, `spec: {schedule: null, runAt: "2026-11-20T07:00:00Z", ttlSecondsAfterFired: 0}`,
				"spec: {runTemplate: {work: {http: null, job: {template: {spec: {template: {spec: {nodeName: a, containers: [{name: main, image: busybox}]}}}}}}}}",
				"spec: {runTemplate: null, groupTemplate: {members: [" + groupMember + "]}}",
			},
		},
		"a group that is yet to come can be edited": {
			base: with(group.base, "spec: {groupTemplate: {members: ["+groupMember+", "+otherMember+"]}}"), stored: created,
			accept: []string{
				"spec: {groupTemplate: {mode: Parallel, onFailure: Skip}}", "spec: {groupTemplate: {members: [" + otherMember + ", " + groupMember + "]}}",
				"spec: {groupTemplate: {members: [" + otherMember + "]}}", "spec: {groupTemplate: null, runTemplate: {" + httpTemplate + "}}",
			},
		},
		"no rule that Jobs have is in the way of an edit of the template": {
			base: `{kind: ScheduledJob, spec: {runTemplate: {` + richJob + `}}}`, stored: created,
			accept: func() []string {
				const spec = "spec.runTemplate.work.job.template.spec."
				return []string{
					set(spec+"completions", 5)[0], set(spec+"completionMode", "NonIndexed")[0], set(spec+"parallelism", 1)[0], set(spec+"podFailurePolicy", nil)[0],
					set(spec+"template.spec.nodeName", "other")[0], set(spec+"template.spec.nodeName", nil)[0], set(spec+"template.spec.nodeSelector", nil)[0],
					set(spec+"template.spec.schedulerName", "other")[0], set(spec+"template.spec.hostNetwork", true)[0], set(spec+"template.spec.serviceAccountName", "other")[0],
					set(spec+"template.spec.schedulingGates", []any{map[string]any{"name": "a.example/b"}})[0], set(spec+"template.spec.resourceClaims", []any{map[string]any{"name": "c", "resourceClaimName": "d"}})[0],
					set(spec+"template.spec.initContainers", nil)[0], set(spec+"template.spec.volumes", nil)[0],
					set(spec+"template.spec.containers", []any{map[string]any{"name": "b", "image": "other"}})[0],
				}
			}(),
		},
	}
	return joined(all, scheduledJobStatus(), hand.receivers(), group.group("spec.groupTemplate"),
		hand.between("spec.startingDeadlineSeconds", 1, 365*24*3600), hand.between("spec.maxQueuedRuns", 1, 1000), hand.between("spec.completedHistoryLimit", 0, 1000),
		hand.between("spec.failedHistoryLimit", 0, 1000), start{base: once}.between("spec.ttlSecondsAfterFired", 0, 365*24*3600))
}

func scheduledJobStatus() rules {
	s := start{base: manual, stored: created}
	const path, good = "status.active", `{name: a, uid: "$i", scheduledTime: "2026-11-20T07:00:00Z"}`
	active := s.each(path, good)
	return joined(s.conditions(), s.texts(map[string]int{"status.observedSchedule": 512, "status.lastRunName": 63, "status.nextScheduleTime": 64}),
		s.distinct(path, good, 1000), active.texts(map[string]int{"name": 63, "uid": 64}),
		rules{
			"an active run has a name": active.needed("name"),
			"an active run has a uid":  active.needed("uid"),
			"an active run has a tick": active.needed("scheduledTime"),
		})
}
