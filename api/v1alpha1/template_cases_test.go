// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

// place is where a JobRunTemplateSpec stands in an object.
type place struct {
	// base is an object with a template that asks for nothing but work.
	base string
	// path of the template.
	path string
	// stored makes the object exist, for a template that only an update can write.
	stored []string
	// members is set for a template of one member of a group: the path of the members.
	members string
}

// places are all of them. What a run was resolved to is written by the manager, from what another object was allowed to say.
func places() map[string]place {
	const group, schedule = "spec.members", "spec.groupTemplate.members"
	return map[string]place{
		"in a JobRun":                   {base: "{kind: JobRun, spec: {}}", path: "spec"},
		"in a ScheduledJob":             {base: "{kind: ScheduledJob, spec: {}}", path: "spec.runTemplate"},
		"in a JobGroup":                 {base: "{kind: JobGroup, spec: {}}", path: group + "[0].runTemplate", members: group},
		"in a group of a ScheduledJob":  {base: "{kind: ScheduledJob, spec: {}}", path: schedule + "[0].runTemplate", members: schedule},
		"in what a run was resolved to": {base: "{kind: JobRun, spec: {scheduledJobRef: {name: nightly}}}", path: "status.resolvedSpec", stored: created},
	}
}

// templateRules are the promises about the template, wherever it stands: its base and variants are of the template alone.
func templateRules() rules {
	all := rules{}
	for where, p := range places() {
		for sentence, r := range joined(templateFields(), jobWork(), httpWork(), httpHeaders(), cloudEvents()) {
			all[sentence+", "+where] = p.put(r)
		}
	}
	return all
}

// put turns a promise about a template into one about the object that holds it.
func (p place) put(r rule) rule {
	wrap := func(variants []string) []string {
		wrapped := make([]string, len(variants))
		for i, variant := range variants {
			wrapped[i] = p.hold(merged(parsed(r.base), parsed(variant)))
		}
		return wrapped
	}
	return rule{base: p.base, stored: p.stored, accept: wrap(r.accept), refuse: wrap(r.refuse), at: p.path + "." + r.at, says: r.says, also: r.also}
}

// hold returns the variant of the object that has the template.
func (p place) hold(template map[string]any) string {
	if p.members == "" {
		return nest(p.path, template)
	}
	return nest(p.members, []any{map[string]any{"name": "a", "runTemplate": template}})
}

const httpTemplate = `work: {http: {url: "https://work.example/"}}`

func templateFields() rules {
	s := start{base: httpTemplate}
	return joined(s.label("queue"), s.label("type"), s.claims("claims"),
		s.between("priority", -1000000, 1000000), s.between("timeoutSeconds", 1, 30*24*3600), s.between("staleAfterSeconds", 1, 30*24*3600),
		s.between("ttlSecondsAfterFinished", 0, 365*24*3600), s.between("retryPolicy.maxRetries", 0, 100),
		s.between("retryPolicy.baseDelaySeconds", 1, 24*3600), s.between("retryPolicy.maxDelaySeconds", 1, 7*24*3600),
		rules{
			"work is one of job and http": {
				base:   "{}",
				accept: []string{httpTemplate, jobTemplate},
				refuse: []string{"work: {}", `work: {http: {url: "https://work.example/"}, job: {template: {spec: {template: {spec: {containers: [{name: main, image: busybox}]}}}}}}`},
				at:     "work",
				says:   "set exactly one of work.job (pods) and work.http (a call made by the manager)",
			},
			"recoveryPolicy is Fail or Adopt": s.rule("recoveryPolicy", []any{"Fail", "Adopt"}, []any{"fail", "Retry", ""}, `supported values: "Fail", "Adopt"`),
			"maxDelaySeconds is not less than baseDelaySeconds": {
				base:   httpTemplate,
				accept: []string{"retryPolicy: {baseDelaySeconds: 10, maxDelaySeconds: 10}", "retryPolicy: {baseDelaySeconds: 10}", "retryPolicy: {maxDelaySeconds: 1}"},
				refuse: []string{"retryPolicy: {baseDelaySeconds: 10, maxDelaySeconds: 9}"},
				at:     "retryPolicy",
				says:   "maxDelaySeconds must not be less than baseDelaySeconds",
			},
		})
}
