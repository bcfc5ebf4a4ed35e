// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
)

func TestNamesThatAreCalledAlike(t *testing.T) {
	all := []string{"nightly-report", "nightly-report-r1", "nightly-repost", "weekly-report", "gpu", "cpu", "a"}
	for wanted, similar := range map[string][]string{
		"nightly-reprot": {"nightly-report", "nightly-repost"},
		"nightly":        {"nightly-report", "nightly-report-r1", "nightly-repost"},
		"gpu2":           {"gpu", "cpu"},
		"gpu-r1":         {"gpu"},
		"month-end":      nil,
		"zz":             nil,
		"b":              nil,
	} {
		NewWithT(t).Expect(Similar(wanted, all)).To(Equal(similar), wanted)
	}
}

func TestTheDistanceOfNames(t *testing.T) {
	for pair, apart := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", "abc"}: 0, {"abc", "abd"}: 1, {"abc", "ab"}: 1, {"abc", "acb"}: 1, {"kitten", "sitting"}: 3, {"ab", "ba"}: 1,
	} {
		NewWithT(t).Expect(distance(pair[0], pair[1])).To(Equal(apart), "%v", pair)
	}
}

func TestTheDistanceIsTheSameBothWaysAndNoLongerThanTheNames(t *testing.T) {
	names := rapid.StringMatching(`[a-c-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := names.Draw(t, "a"), names.Draw(t, "b")
		if there, back := distance(a, b), distance(b, a); there != back || there > max(len(a), len(b)) || (there == 0) != (a == b) {
			t.Fatalf("%q and %q: %d, and back %d", a, b, there, back)
		}
	})
}

func TestAnObjectThatDoesNotExist(t *testing.T) {
	for text, missing := range map[string]Missing{
		"there is no JobRun \"x\" in namespace \"n\"":                                                                                                     {},
		"there is no JobRun \"x\" in namespace \"n\"\ndid you mean y, or z?":                                                                              {Similar: []string{"y", "z"}, elsewhere: []string{"m"}},
		"there is no JobRun \"x\" in namespace \"n\"\nthere is one in namespace m and in o: add --namespace":                                              {elsewhere: []string{"m", "o"}, none: true},
		"there is no JobRun \"x\" in namespace \"n\", nor any other JobRun\nis it the right namespace? add --namespace, or --context for another cluster": {none: true},
	} {
		missing.Kind, missing.Name, missing.Namespace = "JobRun", "x", "n"
		NewWithT(t).Expect(missing.Error()).To(Equal(text))
	}
}
