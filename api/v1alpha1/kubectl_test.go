// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// kubectl returns the output, or fails the test.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := plane.Kubectl(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The first apply was that of TestMain.
func TestApplyingTheKindsAgainChangesNothing(t *testing.T) {
	g := NewWithT(t)
	lines := strings.Split(strings.TrimSpace(kubectl(t, "apply", "-f", bases)), "\n")
	g.Expect(lines).To(HaveLen(len(definitions(t))))
	for _, line := range lines {
		g.Expect(line).To(HaveSuffix(" unchanged"))
	}
}

func TestKubectlExplainsTheFieldsInOurWords(t *testing.T) {
	for path, words := range map[string][]string{
		"jobrun":                        {"one entry of a queue and its one execution"},
		"jobrun.spec.retryPolicy":       {"how often and how soon a failed run is tried again", "maxRetries is the number of automatic retries"},
		"jobrun.spec.work":              {"exactly one of job (pods) and http"},
		"jobrun.spec.work.job.template": {"template is the Job to create", "REPRISE_IDEMPOTENCY_KEY"},
		"jobrun.status.phase":           {"phase of this attempt", "Queued Running Cancelling Completed Failed Skipped Cancelled"},
		"scheduledjob.spec":             {"schedule is a cron expression of five fields", "suspend stops firing"},
		"scheduledjob.spec.runTemplate.work.http.cloudEvent": {"CloudEvents 1.0 envelope", "agent:agent-7:scheduled"},
		"scheduledjob.spec.groupTemplate":                    {"what each tick runs: several runs, as one JobGroup", "members of the group, in order", "onFailure says what the failure of one member does to the rest"},
		"jobgroup":                                           {"several runs in order, or side by side"},
		"jobgroup.spec":                                      {"mode says when the members are queued", "Default: Sequential", "Default: Stop", "cancel asks for the end of the group"},
		"jobgroup.spec.members":                              {"runTemplate is what the member runs"},
		"jobgroup.status.members.phase":                      {"Waiting Queued Running Completed Failed Skipped Cancelled"},
		"jobrun.spec.claims":                                 {"count is how many are taken. Default: 1."},
		"jobrun.spec.staleAfterSeconds":                      {"no sign of life"},
		"jobqueue.spec":                                      {"startup throttles the queue after a manager has started to lead", "direct lets people use a slot"},
		"jobqueue.spec.concurrency":                          {"types bound the runs and reservations of one type each", "resources are what runs and reservations may claim"},
		"jobqueue.spec.concurrency.limit":                    {"number of slots"},
		"jobqueue.spec.direct":                               {"upstream is the absolute http or https address", "how many reservations are granted in a row while runs wait. Default: 10."},
		"jobqueue.spec.onStale":                              {"Warn Fail", "Default: Warn."},
		"directreservation.spec":                             {"type is the concurrency class whose slot is reserved", "claims are what is reserved"},
		"directreservation.spec.renewTime":                   {"to show that it lives"},
	} {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			for _, word := range words {
				// The API server publishes what kubectl explains a moment after it serves the kind.
				g.Eventually(func() string {
					out, _ := plane.Kubectl(t.Context(), "explain", path).CombinedOutput()
					return strings.Join(strings.Fields(string(out)), " ")
				}).WithTimeout(30 * time.Second).Should(ContainSubstring(word))
			}
		})
	}
}

func TestKubectlGetShowsTheColumns(t *testing.T) {
	for short, c := range map[string]struct {
		base    string
		columns []string
	}{
		"jr": {httpRun, []string{"NAME", "PHASE", "QUEUE", "TYPE", "ATTEMPT", "RETRY-OF", "REASON", "STARTED", "FINISHED", "AGE"}},
		"sj": {recurring, []string{"NAME", "SCHEDULE", "TIME-ZONE", "SUSPEND", "ACTIVE", "LAST", "NEXT", "AGE"}},
		"jg": {group, []string{"NAME", "PHASE", "MODE", "ON-FAILURE", "SETTLED", "REASON", "STARTED", "FINISHED", "AGE"}},
		"jq": {queue, []string{"NAME", "QUEUED", "RUNNING", "LIMIT", "RESERVED", "SUSPENDED", "AGE"}},
		"dr": {reservation, []string{"NAME", "PHASE", "QUEUE", "TYPE", "HOLDER", "EXPIRES", "REASON", "AGE"}},
		"ql": {ledger, []string{"NAME", "EPOCH", "AGE"}},
	} {
		t.Run(short, func(t *testing.T) {
			o := stored(t, c.base)
			lines := strings.Split(kubectl(t, "get", short, o.GetName(), "-n", namespace), "\n")
			NewWithT(t).Expect(strings.Fields(lines[0])).To(Equal(c.columns))
		})
	}
}

func TestKubectlGetTakesTheShortNamesTogether(t *testing.T) {
	g := NewWithT(t)
	for _, base := range []string{reservation, queue, group} {
		stored(t, base)
	}
	out := kubectl(t, "get", "dr,jq,jg", "-n", namespace)
	g.Expect(out).To(And(ContainSubstring("directreservation."), ContainSubstring("jobqueue."), ContainSubstring("jobgroup.")))
	g.Expect(out).To(MatchRegexp(`jobgroup\S+ +Pending +Sequential +Stop`), "what applies is shown, said or not")
}

func TestKubectlGetRepriseShowsWhatUsersWorkWith(t *testing.T) {
	g := NewWithT(t)
	kinds := []string{"jobrun", "scheduledjob", "jobgroup", "jobqueue", "directreservation"}
	for _, base := range []string{httpRun, recurring, group, queue, reservation, ledger} {
		stored(t, base)
	}
	var seen []string
	for _, line := range strings.Fields(kubectl(t, "get", "reprise", "-n", namespace, "-o", "name")) {
		kind, _, _ := strings.Cut(line, ".")
		seen = append(seen, kind)
	}
	slices.Sort(seen)
	g.Expect(slices.Compact(seen)).To(ConsistOf(kinds))
}

func TestEveryFieldOfOursHasAText(t *testing.T) {
	for kind, crd := range definitions(t) {
		unexplained(t, kind, "", crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
}

func unexplained(t *testing.T, kind, path string, s *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if inherited.MatchString(path) {
		return
	}
	for name, child := range s.Properties {
		below := strings.TrimPrefix(path+"."+name, ".")
		if child.Description == "" && !inherited.MatchString(below) {
			t.Errorf("%s.%s has none", kind, below)
		}
		unexplained(t, kind, below, &child)
	}
	if s.Items != nil {
		unexplained(t, kind, path+"[]", s.Items.Schema)
	}
}
