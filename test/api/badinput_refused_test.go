// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
)

// apply hands an object to kubectl, as a person does, and returns what kubectl says.
func (w *world) apply(object string) (string, error) {
	cmd := plane.Kubectl(w.ctx, "apply", "-n", w.ns, "-f", "-")
	cmd.Stdin = strings.NewReader("apiVersion: batch.reprise.dev/v1alpha1\n" + object)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const (
	calls = `work: {http: {url: "https://work.example/"}}`
	pods  = `{template: {spec: {template: {spec: {containers: [{name: main, image: work}]}}}}}`
)

func TestBadInputIsRefusedInWordsThatSayWhatToWriteAndStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newServer(t, nil)
	w.start()
	scheduled := func(spec string) string {
		return "kind: ScheduledJob\nmetadata: {name: bad}\nspec: {" + spec + "}"
	}
	run := func(spec string) string { return "kind: JobRun\nmetadata: {name: bad}\nspec: {" + spec + "}" }
	queue := func(spec string) string { return "kind: JobQueue\nmetadata: {name: bad}\nspec: {" + spec + "}" }
	for name, c := range map[string]struct{ object, says string }{
		"a schedule that is no cron expression": {scheduled(`schedule: "often", runTemplate: {` + calls + `}`), "schedule needs five fields (minute, hour, day of month, month, day of week), or @hourly"},
		"a schedule with a zone in it":          {scheduled(`schedule: "TZ=UTC 0 6 * * *", runTemplate: {` + calls + `}`), "TZ= and CRON_TZ= are not supported in schedule; set spec.timeZone"},
		"an interval that is too short":         {scheduled(`schedule: "@every 500ms", runTemplate: {` + calls + `}`), "at least 1s, such as @every 90s or @every 1h30m"},
		"a zone that does not exist":            {scheduled(`schedule: "@daily", timeZone: Mars/Olympus, runTemplate: {` + calls + `}`), "timeZone must be a name of the IANA zone database, such as Europe/Lisbon"},
		"a schedule and a time":                 {scheduled(`schedule: "@daily", runAt: "2026-11-20T07:00:00Z", runTemplate: {` + calls + `}`), "set at most one of schedule (recurring) and runAt (once)"},
		"a time in the Middle Ages":             {scheduled(`runAt: "1066-10-14T09:00:00Z", runTemplate: {` + calls + `}`), "write a time of the years 1970 to 2199"},
		"a schedule without work":               {scheduled(`schedule: "@daily", runTemplate: {}`), "runTemplate.work is required: exactly one of job and http"},
		"a run without work":                    {run(``), "a JobRun needs work, or scheduledJobRef (run it now), or retryOf (try that run again)"},
		"a run with an empty work":              {run(`work: {}`), "set exactly one of work.job (pods) and work.http (a call made by the manager)"},
		"a run with two sorts of work":          {run(`work: {http: {url: "https://work.example/"}, job: ` + pods + `}`), "set exactly one of work.job (pods) and work.http (a call made by the manager)"},
		"a Job without containers":              {run(`work: {job: {template: {spec: {template: {spec: {containers: []}}}}}}`), "work.job.template needs spec.template.spec.containers with at least one container"},
		"a Job that removes its evidence":       {run(`work: {job: {template: {spec: {ttlSecondsAfterFinished: 0, template: {spec: {containers: [{name: main, image: work}]}}}}}}`), "use the run's own ttlSecondsAfterFinished"},
		"an address that is none":               {run(`work: {http: {url: "work.example"}}`), "url must be an absolute http or https address with a host, such as https://example.org/path"},
		"a password in the address":             {run(`work: {http: {url: "https://me:secret@work.example/"}}`), "url must hold no user name or password; use a header from a Secret"},
		"a timeout of no time":                  {run(`timeoutSeconds: 0, ` + calls), "should be greater than or equal to 1"},
		"a timeout of a year":                   {run(`timeoutSeconds: 31536000, ` + calls), "should be less than or equal to 2592000"},
		"fewer than no retries":                 {run(`retryPolicy: {maxRetries: -1}, ` + calls), "should be greater than or equal to 0"},
		"a billion retries":                     {run(`retryPolicy: {maxRetries: 1000000000}, ` + calls), "should be less than or equal to 100"},
		"a delay before the last one":           {run(`retryPolicy: {baseDelaySeconds: 60, maxDelaySeconds: 1}, ` + calls), "maxDelaySeconds must not be less than baseDelaySeconds"},
		"a priority beyond all others":          {run(`priority: 99999999999, ` + calls), "should be less than or equal to 1000000"},
		"fewer than no slots":                   {queue(`concurrency: {limit: -1}`), "should be greater than or equal to 0"},
		"more slots than there can be":          {queue(`concurrency: {limit: 1000000}`), "should be less than or equal to 100000"},
		"a number that is a word":               {queue(`concurrency: {limit: many}`), `spec.concurrency.limit: Invalid value: "string"`},
		"a field that does not exist":           {queue(`concurrency: {limits: 3}`), `unknown field "spec.concurrency.limits"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			out, err := w.apply(c.object)
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring(c.says))
			g.Expect(out).NotTo(ContainSubstring("panic"))
		})
	}
	w.create(w.httpRun("next", s.URL))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
}

func TestNoEditOfARunAtWorkChangesWhatItDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer, release := block(t)
	s := newServer(t, map[string]http.HandlerFunc{"/slow": answer})
	w.start()
	w.create(w.httpRun("busy", s.URL+"/slow"), w.httpRun("next", s.URL+"/next"))
	w.eventually("busy", batchv1alpha1.JobRunRunning)
	for says, change := range map[string]func(*batchv1alpha1.JobRunSpec){
		"work is immutable; create a new run instead":         func(s *batchv1alpha1.JobRunSpec) { s.Work.HTTP.URL += "er" },
		"queue is immutable":                                  func(s *batchv1alpha1.JobRunSpec) { s.Queue = "other" },
		"timeoutSeconds is immutable":                         func(s *batchv1alpha1.JobRunSpec) { s.TimeoutSeconds = ptr.To[int64](1) },
		"retryPolicy is immutable":                            func(s *batchv1alpha1.JobRunSpec) { s.RetryPolicy = nil },
		"priority can be changed only while the run is Queue": func(s *batchv1alpha1.JobRunSpec) { s.Priority = ptr.To[int32](9) },
	} {
		r := w.get("busy")
		change(&r.Spec)
		w.Expect(w.Update(w.ctx, r)).To(MatchError(ContainSubstring(says)))
	}
	release()
	r := w.eventually("busy", batchv1alpha1.JobRunCompleted)
	w.Expect(r.Generation).To(BeEquivalentTo(1))
	w.eventually("next", batchv1alpha1.JobRunCompleted)
	w.Expect(s.on("/slow")).To(HaveLen(1))
}
