// SPDX-License-Identifier: Apache-2.0

package group

import (
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestTheRunOfAMemberIsNamedAfterBoth(t *testing.T) {
	g := NewWithT(t)
	g.Expect(RunName("edition-12", "collect", 0)).To(Equal("edition-12-collect"))
	g.Expect(RunName(strings.Repeat("g", 50), "member", 0)).To(HaveLen(57), "the longest that fits")
	long := RunName(strings.Repeat("g", 50), "members", 0)
	g.Expect(long).To(MatchRegexp(`^g{46}-[0-9a-f]{10}$`))
	g.Expect(RunName("edition-12", "collect", 1)).To(MatchRegexp(`^edition-12-collect-[0-9a-f]{10}$`), "another object has the name")
	g.Expect(RunName(strings.Repeat("g", 45)+".x", "members-of-it", 0)).To(MatchRegexp(`^g{45}-[0-9a-f]{10}$`), "a cut ends in no dot")
}

func TestNamesAreValidStableAndDistinct(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	part := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,55}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		group, member, n := part.Draw(t, "group"), part.Draw(t, "member"), rapid.IntRange(0, 5).Draw(t, "collision")
		name := RunName(group, member, n)
		if len(name) > nameLimit || !valid.MatchString(name) || name != RunName(group, member, n) {
			t.Fatalf("%q", name)
		}
		other, others, m := part.Draw(t, "other group"), part.Draw(t, "other member"), rapid.IntRange(0, 5).Draw(t, "other collision")
		plain := group+"-"+member == other+"-"+others
		if (group != other || member != others || n != m) && !plain && name == RunName(other, others, m) {
			t.Fatalf("%s/%s/%d and %s/%s/%d are both %q", group, member, n, other, others, m, name)
		}
	})
}

func TestLongNamesThatBeginAlikeAreDistinct(t *testing.T) {
	group := strings.Repeat("g", 57)
	NewWithT(t).Expect(RunName(group, "a", 0)).NotTo(Equal(RunName(group, "b", 0)))
}
