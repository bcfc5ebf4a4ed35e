// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestReferences(t *testing.T) {
	for arg, want := range map[string][2]string{
		"x": {JobRun, "x"}, "jr/x": {JobRun, "x"}, "jobrun/x": {JobRun, "x"}, "jobruns.batch.reprise.dev/x": {JobRun, "x"}, "JobGroup/x": {JobGroup, "x"}, "jg/x": {JobGroup, "x"},
	} {
		g := NewWithT(t)
		kind, name, err := ParseRef(arg, JobRun, JobGroup)
		g.Expect(err).NotTo(HaveOccurred(), arg)
		g.Expect([2]string{kind, name}).To(Equal(want), arg)
	}
	for arg, message := range map[string]string{
		"sj/x":  `"sj/x" is of no kind that this command takes: write NAME or jg/NAME`,
		"/x":    `"/x" is of no kind that this command takes: write NAME or jg/NAME`,
		"jg/":   `"jg/" is no name: write NAME or jg/NAME`,
		"":      `"" is no name: write NAME or jg/NAME`,
		"x/y/z": `"x/y/z" is of no kind that this command takes: write NAME or jg/NAME`,
	} {
		g := NewWithT(t)
		_, _, err := ParseRef(arg, JobRun, JobGroup)
		g.Expect(err).To(MatchError(message))
		g.Expect(Code(err)).To(Equal(ExitUsage))
	}
}
