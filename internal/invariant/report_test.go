// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestInvariant7(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	g.Expect(s.check().Checked[7]).To(BeZero(), "nobody restarted it")
	s.RestartChanged = []string{}
	g.Expect(s.check().Checked[7]).To(Equal(1))
	g.Expect(s.check().Violations).To(BeEmpty())
	s.RestartChanged = []string{"JobRun ns/a: status.message"}
	report := s.check()
	g.Expect(report.Violations).To(HaveLen(1))
	g.Expect(report.Violations[0].Invariant).To(Equal(7))
	g.Expect(report.Violations[0].Subject).To(Equal("JobRun ns/a: status.message"))
}

func TestAReportIsATableOfTheInvariantsAndTheirViolations(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	s.drop(s.run("a"))
	text := s.check().String()
	g.Expect(text).To(ContainSubstring("  1. no lost run"))
	g.Expect(text).To(ContainSubstring(" 13. settles"))
	g.Expect(text).To(ContainSubstring("histories: 1, violations: 1, http-window: 0\n"))
	g.Expect(text).To(ContainSubstring("invariant 1 (no lost run) JobRun ns/a: it was Queued"))
}

func TestReportsAddUp(t *testing.T) {
	g := NewWithT(t)
	s := newStory(1)
	s.drop(s.run("a"))
	one := s.check()
	sum := Report{}
	sum.Merge(one)
	sum.Merge(one)
	g.Expect(sum.Histories).To(Equal(2))
	g.Expect(sum.Violations).To(HaveLen(2))
	g.Expect(sum.Checked[1]).To(Equal(2 * one.Checked[1]))
	g.Expect(one.Checked[1]).To(Equal(1), "what was added is unchanged")
}
