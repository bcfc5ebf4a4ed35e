// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// root is the checkout, as the tests of this package see it.
const root = "../.."

func TestEveryMutantCanBeMade(t *testing.T) {
	for _, m := range all() {
		t.Run(m.name, func(t *testing.T) {
			_, _, err := scratch{dir: root}.edited(m.edits)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestEveryMutantNamesTestsThatExist(t *testing.T) {
	declared := map[string]string{}
	for _, m := range all() {
		g := NewWithT(t)
		if declared[m.pkg] == "" {
			declared[m.pkg] = testsIn(g, filepath.Join(root, m.pkg))
		}
		g.Expect(m.tests).NotTo(BeEmpty(), m.name)
		for _, test := range m.tests {
			g.Expect(declared[m.pkg]).To(ContainSubstring("\nfunc "+test+"(t *testing.T) {"), "%s of %s", test, m.name)
		}
	}
}

// testsIn returns the test code of a package.
func testsIn(g *WithT, dir string) string {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	g.Expect(err).NotTo(HaveOccurred())
	var code strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		code.Write(content)
	}
	return code.String()
}

func TestMutantsBreakEverySectionOfTheDesignOnceEach(t *testing.T) {
	g := NewWithT(t)
	g.Expect(len(all())).To(BeNumerically(">=", 30))
	shape := regexp.MustCompile(`^§(\d+)(\.\d)?: [^A-Z]?.+[^.]$`)
	names, rules, sections := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range all() {
		g.Expect(m.name).To(MatchRegexp(`^[a-z]+(-[a-z]+)+$`))
		g.Expect(names[m.name]).To(BeFalse(), "two are called %s", m.name)
		g.Expect(rules[m.rule]).To(BeFalse(), "two break the same rule: %s", m.rule)
		names[m.name], rules[m.rule] = true, true
		part := shape.FindStringSubmatch(m.rule)
		g.Expect(part).NotTo(BeNil(), m.rule)
		sections[part[1]+part[2]] = true
	}
	for _, section := range []string{"3", "4", "5", "6", "6.1", "6.2", "6.3", "6.4", "6.5", "6.6", "6.7", "6.8", "6.9", "7", "8", "9", "10"} {
		g.Expect(sections[section]).To(BeTrue(), "no mutant breaks a rule of section %s", section)
	}
}

func TestOneMutantIsFoundByItsName(t *testing.T) {
	g := NewWithT(t)
	found := named(all(), "fence-dropped")
	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].name).To(Equal("fence-dropped"))
	g.Expect(named(all(), "no such")).To(BeEmpty())
	g.Expect(named(all(), "")).To(Equal(all()))
}
