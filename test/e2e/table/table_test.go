// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

const output = `=== RUN   TestOne
=== PAUSE TestOne
=== RUN   TestGroup
=== RUN   TestGroup/part_a
=== RUN   TestGroup/part_b
--- PASS: TestGroup (3.00s)
    --- PASS: TestGroup/part_a (1.00s)
    --- PASS: TestGroup/part_b (3.00s)
=== RUN   TestTwo
    two_test.go:7: what it saw
--- FAIL: TestTwo (0.25s)
=== RUN   TestAbsent
--- SKIP: TestAbsent (0.00s)
=== CONT  TestOne
--- PASS: TestOne (12.50s)
`

func TestTheTableHasARowForEachTestWithFailuresLast(t *testing.T) {
	g := NewWithT(t)
	var passedOn, printed strings.Builder
	tab := New(&passedOn)
	for _, b := range []byte(output) { // in the smallest parts
		_, err := tab.Write([]byte{b})
		g.Expect(err).NotTo(HaveOccurred())
	}
	tab.Absent("TestAbsent", "needs a node of its own")
	g.Expect(tab.Print(&printed)).To(Equal(1))
	g.Expect(printed.String()).To(Equal(`passed       12.50  TestOne
passed        1.00  TestGroup/part_a
passed        3.00  TestGroup/part_b
not here      0.00  TestAbsent
                    needs a node of its own
FAILED        0.25  TestTwo
e2e: 3 passed, 1 failed, 1 not here
`))
	g.Expect(passedOn.String()).To(ContainSubstring("two_test.go:7: what it saw"))
	g.Expect(passedOn.String()).NotTo(ContainSubstring("==="))
}

func TestATestThatNeverEndedCountsAsFailed(t *testing.T) {
	g := NewWithT(t)
	var printed strings.Builder
	tab := New(&strings.Builder{})
	_, _ = tab.Write([]byte("=== RUN   TestHangs\n"))
	g.Expect(tab.Print(&printed)).To(Equal(1))
	g.Expect(printed.String()).To(HavePrefix("CUT SHORT"))
}

func TestAGroupThatFailsByItselfHasARow(t *testing.T) {
	g := NewWithT(t)
	var printed strings.Builder
	tab := New(&strings.Builder{})
	_, _ = tab.Write([]byte("=== RUN   TestGroup\n=== RUN   TestGroup/a\n--- FAIL: TestGroup (1.00s)\n    --- PASS: TestGroup/a (1.00s)\n"))
	g.Expect(tab.Print(&printed)).To(Equal(1))
	g.Expect(printed.String()).To(ContainSubstring("FAILED        1.00  TestGroup\n"))
}

func TestAGroupThatFailsByOneOfItsPartsHasNoRow(t *testing.T) {
	g := NewWithT(t)
	var printed strings.Builder
	tab := New(&strings.Builder{})
	_, _ = tab.Write([]byte("=== RUN   TestGroup\n=== RUN   TestGroup/a\n--- FAIL: TestGroup (1.00s)\n    --- FAIL: TestGroup/a (1.00s)\n"))
	g.Expect(tab.Print(&printed)).To(Equal(1))
	g.Expect(printed.String()).To(HavePrefix("FAILED        1.00  TestGroup/a\n"))
}

func TestACheckAtTheEndHasARow(t *testing.T) {
	g := NewWithT(t)
	var printed strings.Builder
	tab := New(&strings.Builder{})
	tab.Add("everything is used", 0.5, nil)
	tab.Add("nothing is left", 1, errors.New("a pod\na mount"))
	g.Expect(tab.Print(&printed)).To(Equal(1))
	g.Expect(printed.String()).To(Equal(`passed        0.50  everything is used
FAILED        1.00  nothing is left
                    a pod
                    a mount
e2e: 1 passed, 1 failed, 0 not here
`))
}
