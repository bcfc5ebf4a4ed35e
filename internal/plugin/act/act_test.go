// SPDX-License-Identifier: Apache-2.0

package act

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	batchv1alpha1 "reprise.dev/reprise/api/v1alpha1"
	"reprise.dev/reprise/internal/plugin/cli"
)

func TestANameThatIsMadeIsOneOfARun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.StringMatching(`[a-z]([a-z0-9-]{0,60}[a-z0-9])?`).Draw(t, "from")
		for _, name := range []string{manualName(from), named(from, "-retry-")} {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > longest {
				t.Fatalf("%s: %v", name, problems)
			}
		}
	})
}

func TestTheEndsThatAPersonWants(t *testing.T) {
	for name, c := range map[string]struct {
		end  outcome
		want string
	}{
		"success":                  {outcome{phase: "Completed"}, ""},
		"nothing to do":            {outcome{phase: "Skipped", reason: "NothingToDo"}, ""},
		"never to be executed":     {outcome{name: "x", phase: "Skipped", reason: "RetryRefused", message: "so it is"}, "x is Skipped (RetryRefused): so it is"},
		"failure":                  {outcome{name: "x", phase: "Failed", reason: "WorkFailed", message: "exit code 3"}, "x is Failed (WorkFailed): exit code 3"},
		"cancelled without a word": {outcome{name: "x", phase: "Cancelled"}, "x is Cancelled (no reason): it says nothing more"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			if err := c.end.err(); c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(c.want))
			}
		})
	}
}

func TestFlagsThatContradictEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		patience
		refused bool
	}{
		"none":                    {patience{}, false},
		"a timeout alone":         {patience{timeout: time.Second}, true},
		"a timeout of a wait":     {patience{timeout: time.Second, wait: true}, false},
		"a timeout while it logs": {patience{timeout: time.Second, follow: true}, false},
		"a timeout in the past":   {patience{timeout: -time.Second, wait: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := c.check(&cli.Output{})
			g.Expect(err != nil).To(Equal(c.refused))
			g.Expect(c.wait).To(Equal(c.follow || name != "none" && name != "a timeout alone"))
		})
	}
}

func TestWhatWaitsForItsTime(t *testing.T) {
	g := NewWithT(t)
	now := time.Unix(1000, 0)
	retry := &batchv1alpha1.JobRun{Spec: batchv1alpha1.JobRunSpec{Chain: &batchv1alpha1.Chain{}, NotBefore: &metav1.Time{Time: now.Add(time.Second)}}}
	retry.Status.Phase = batchv1alpha1.JobRunQueued
	g.Expect(waitsForItsTime(retry, now)).To(BeTrue())
	g.Expect(waitsForItsTime(retry, now.Add(time.Second))).To(BeFalse(), "its time has come")
	retry.Status.Phase = batchv1alpha1.JobRunRunning
	g.Expect(waitsForItsTime(retry, now)).To(BeFalse(), "it is at work")
}

func TestAFailureThatIsToBeRetriedCanBeCancelled(t *testing.T) {
	g := NewWithT(t)
	failed := &batchv1alpha1.JobRun{Status: batchv1alpha1.JobRunStatus{Phase: batchv1alpha1.JobRunFailed}}
	g.Expect(goesOn(failed)).To(BeTrue())
	failed.Status.Retry = &batchv1alpha1.RetryRecord{Name: "x-r1"}
	g.Expect(goesOn(failed)).To(BeFalse(), "its retry exists")
	g.Expect(goesOn(&batchv1alpha1.JobGroup{})).To(BeFalse())
}
